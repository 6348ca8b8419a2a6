import {
  chmodSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { InstanceRecord } from '../../../src/wire/records.ts';
import type { CliFailure } from '../../../src/cli/failure.ts';
import { berth, json, list } from '../../support/scripted-cli.ts';
import { openFolder } from '../../../src/cli/commands/code.ts';
import type { Input } from '../../../src/cli/options.ts';
import type { Session } from '../../../src/cli/session.ts';
import { hostsOf, loginOf, prependLine, remotePath, withHostKeys } from '../../../src/cli/commands/ssh.ts';

const LINE = 'gpu.example.com ssh-ed25519 AAAA';
const ssh = { host: 'gpu.example.com', port: 22, user: 'i-1.team', command: '', known_hosts: LINE };
const running = (changes: object): InstanceRecord =>
  ({ id: 'i-1', state: 'running', simulated: false, ssh: { ...ssh, ...changes } }) as InstanceRecord;

it('a login has words that ssh reads as host and user', () => {
  expect(loginOf(running({}))).toEqual({ host: 'gpu.example.com', port: 22, user: 'i-1.team', knownHosts: LINE });
  for (const host of ['-oProxyCommand=sh', 'a b', 'a;b', '']) {
    expect(() => loginOf(running({ host })), host).toThrow('a login that is none');
  }
  expect(() => loginOf(running({ user: '-l' }))).toThrow('a login that is none');
  expect(() => loginOf({ ...running({}), state: 'stopped' })).toThrow('nothing to log in to');
});

it.each([
  ['* ssh-ed25519 EVIL', 22],
  ['@cert-authority * ssh-ed25519 EVIL', 22],
  ['other.example.com ssh-ed25519 EVIL', 22],
  ['gpu.example.com,* ssh-ed25519 EVIL', 22],
  ['gpu.example.com ssh-ed25519 EVIL', 2222],
  ['[gpu.example.com]:22 ssh-ed25519 EVIL', 2222],
  ['|1|a=|b= ssh-ed25519 EVIL', 22],
  ['gpu.example.com ssh-ed25519 AAAA\r* ssh-ed25519 EVIL', 22],
])('a server says nothing of the keys of others: %s', (evil, port) => {
  const own = port === 22 ? LINE : `[gpu.example.com]:${port} ssh-ed25519 AAAA`;
  expect(loginOf(running({ port, known_hosts: `${own}\n${evil}` })).knownHosts).toBe(own);
  expect(loginOf(running({ port, known_hosts: evil })).knownHosts).toBe('');
});

it('an editor gets no word of a server that it would read as an option', async () => {
  const record = { ...running({ known_hosts: null }), id: '-oProxyCommand=x', name: null };
  await expect(openFolder(record, '/workspace', {} as Input, {} as Session)).rejects.toThrow('cannot name an instance');
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

it('names that others chose shadow no host of the user', () => {
  expect(hostsOf({ id: 'i-1a2b3c4d5e6f', name: 'github.com' })).toEqual([
    'i-1a2b3c4d5e6f',
    'i-1a2b3c4d5e6f.berth',
    'github.com.berth',
  ]);
  expect(hostsOf({ id: 'dev', name: 'dev' })).toEqual(['dev.berth']);
  expect(hostsOf({ id: 'i-1a2b3c4d5e6f', name: '* !x' })).toEqual(['i-1a2b3c4d5e6f', 'i-1a2b3c4d5e6f.berth']);
});

it('a name that is another instance’s, or that two have, leads to neither', async () => {
  const home = mkdtempSync(join(tmpdir(), 'berth-hosts-'));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const one = (id: string, name: string | null): object => ({ ...running({ known_hosts: null }), id, name });
  const answer = list(
    one('i-aaaaaaaaaaaa', 'i-bbbbbbbbbbbb'),
    one('i-bbbbbbbbbbbb', 'train'),
    one('i-cccccccccccc', 'train'),
    { ...one('i-dddddddddddd', 'serve'), state: 'stopped' },
    one('i-eeeeeeeeeeee', 'serve'),
    one('i-ffffffffffff', 'lab'),
  );
  expect((await berth(['ssh', '--config'], [answer], [], { env: { HOME: home } })).code).toBe(0);
  const hosts = readFileSync(join(home, '.config/berth/ssh_config'), 'utf8').match(/^Host .*$/gm);
  expect(hosts).toEqual([
    ...['a', 'b', 'c', 'e'].map((letter) => `Host i-${letter.repeat(12)} i-${letter.repeat(12)}.berth`),
    'Host i-ffffffffffff i-ffffffffffff.berth lab.berth',
  ]);
});

it('who is not let in by a host of the cluster alone hears why, and others hear ssh', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-ssh-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  onTestFinished(() => void vi.unstubAllEnvs());
  const login = async (host: string, code: number): Promise<string> => {
    writeFileSync(join(folder, 'ssh'), `#!/bin/sh\nexit ${code}\n`, { mode: 0o755 });
    const answer = json(200, { ...running({ host, known_hosts: null }), name: null });
    const env = { HOME: folder, PATH: `${folder}:/usr/bin:/bin` };
    vi.stubEnv('PATH', env.PATH);
    const ran = await berth(['ssh', 'i-aaaaaaaaaaaa'], [answer], [], { env });
    expect(ran.code).toBe(code);
    return ran.said;
  };
  expect(await login('berth-ssh.berth-system.svc', 255)).toBe(
    'berth-ssh.berth-system.svc is a host that only programs in the cluster find. The operator gives others one: ssh.publicHost of the chart.',
  );
  expect(await login('berth-ssh.berth-system.svc', 1)).toBe('');
  expect(await login('svc.example.com', 255)).toBe('');
});

describe('a file of the user', () => {
  const place = (): string => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-user-file-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    return folder;
  };
  const LATIN = Buffer.from('# Ger\xe4t von J\xf6rg\r\nHost dev\r\n', 'latin1');

  it('gets a line in front, and keeps every other byte, its mode and its link', async () => {
    const folder = place();
    writeFileSync(join(folder, 'dotfile'), LATIN);
    chmodSync(join(folder, 'dotfile'), 0o640);
    symlinkSync('dotfile', join(folder, 'config'));
    expect(await prependLine(join(folder, 'config'), 'Include "/home/J\u00f6rg"')).toBe(true);
    const after = readFileSync(join(folder, 'dotfile'));
    expect(after.equals(Buffer.concat([Buffer.from('Include "/home/J\u00f6rg"\n\n'), LATIN]))).toBe(true);
    expect(lstatSync(join(folder, 'config')).isSymbolicLink()).toBe(true);
    expect(lstatSync(join(folder, 'dotfile')).mode & 0o777).toBe(0o640);
    expect(await prependLine(join(folder, 'config'), 'Include "/home/J\u00f6rg"')).toBe(false);
    expect(readFileSync(join(folder, 'dotfile')).equals(after)).toBe(true);
    expect(readdirSync(folder).toSorted()).toEqual(['config', 'dotfile']);
  });

  it('that has the line with the line ends of Windows is left alone', async () => {
    const path = join(place(), 'config');
    writeFileSync(path, 'Include "x"\r\nHost a\r\n');
    expect(await prependLine(path, 'Include "x"')).toBe(false);
  });

  it('that is not there is made for its owner only', async () => {
    const path = join(place(), '.ssh', 'config');
    expect(await prependLine(path, 'Include "x"')).toBe(true);
    expect([readFileSync(path, 'utf8'), lstatSync(path).mode & 0o777]).toEqual(['Include "x"\n', 0o600]);
  });

  it('that stands where nobody may write, or is a link to nothing, is not changed, and the line is told', async () => {
    const folder = place();
    symlinkSync('/proc/self/status', join(folder, 'fixed'));
    symlinkSync(join(folder, 'gone'), join(folder, 'dangling'));
    for (const name of ['fixed', 'dangling']) {
      const path = join(folder, name);
      const refusal = await prependLine(path, 'Include "x"').then(String, (error: CliFailure) => error);
      expect(refusal).toMatchObject({
        message: expect.stringContaining(`${path} was not changed: Error: `) as string,
        next: 'Write this line at its start: Include "x"',
      });
    }
    expect(readdirSync(folder).toSorted()).toEqual(['dangling', 'fixed']);
  });

  it('that cannot be read is not changed', async () => {
    const folder = place();
    await expect(prependLine(folder, 'Include "x"')).rejects.toThrow('cannot be read, so it was not changed');
  });
});
