import { expect, it } from 'vitest';
import type { InstanceRecord } from '../../../src/wire/records.ts';
import { loginOf, remotePath, withHostKeys } from '../../../src/cli/commands/ssh.ts';

const ssh = { host: 'gpu.example.com', port: 22, user: 'i-1.team', command: '', known_hosts: 'line' };
const running = (changes: object): InstanceRecord =>
  ({ id: 'i-1', state: 'running', simulated: false, ssh: { ...ssh, ...changes } }) as InstanceRecord;

it('a login has words that ssh reads as host and user', () => {
  expect(loginOf(running({}))).toEqual({ host: 'gpu.example.com', port: 22, user: 'i-1.team', knownHosts: 'line' });
  for (const host of ['-oProxyCommand=sh', 'a b', 'a;b', '']) {
    expect(() => loginOf(running({ host })), host).toThrow('a login that is none');
  }
  expect(() => loginOf(running({ user: '-l' }))).toThrow('a login that is none');
  expect(() => loginOf({ ...running({}), state: 'stopped' })).toThrow('nothing to log in to');
});

it('host keys replace those of the same host, so that a key that was changed does not stay', () => {
  const before = '[a]:1 ssh-ed25519 OLD\n[b]:1 ssh-ed25519 KEPT\n';
  const after = withHostKeys(before, ['[a]:1 ssh-ed25519 NEW\n[a]:1 ssh-ed25519 NEXT', '[a]:1 ssh-ed25519 NEW']);
  expect(after).toBe('[b]:1 ssh-ed25519 KEPT\n[a]:1 ssh-ed25519 NEW\n[a]:1 ssh-ed25519 NEXT\n');
  expect(withHostKeys(after, ['[a]:1 ssh-ed25519 NEW\n[a]:1 ssh-ed25519 NEXT'])).toBe(after);
});

it('a colon after a slash does not make a path remote', () => {
  expect([remotePath('i-1:/x:y'), remotePath('i-1:'), remotePath('./a:b'), remotePath('file')]).toEqual([
    { instance: 'i-1', path: '/x:y' },
    { instance: 'i-1', path: '' },
    undefined,
    undefined,
  ]);
});
