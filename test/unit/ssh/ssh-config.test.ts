import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { knownHosts, sshConfig, sshConfigCommand } from '../../../src/ssh/ssh-config.ts';
import { run } from '../../../tools/lib/shell.ts';
import { testWith } from '../../support/needs.ts';

function instance(name: string, host = 'gpu.example.com'): GpuInstance {
  const ssh = { host, port: 2222, user: name, knownHosts: `[${host}]:2222 ssh-ed25519 AAAA` };
  return { metadata: { name, namespace: 'team' }, spec: {}, status: { ssh } } as unknown as GpuInstance;
}

const PENDING = { metadata: { name: 'i-new', namespace: 'team' }, spec: {} } as unknown as GpuInstance;

describe('sshConfig', () => {
  testWith('ssh')('has a block per instance that can be reached, as ssh itself reads it', async () => {
    const text = sshConfig([instance('i-b'), PENDING, instance('i-a')], { knownHostsFile: '/tmp/my hosts' });
    expect(text.match(/^Host .*/gm)).toEqual(['Host i-a.berth', 'Host i-b.berth']);
    const folder = mkdtempSync(join(tmpdir(), 'berth-config-'));
    writeFileSync(join(folder, 'config'), text);
    const { stdout } = await run('ssh', ['-G', '-F', join(folder, 'config'), 'i-b.berth']);
    rmSync(folder, { recursive: true });
    expect(stdout).toContain('hostname gpu.example.com\n');
    expect(stdout).toContain('port 2222\n');
    expect(stdout).toContain('user i-b\n');
    expect(stdout).toMatch(/^stricthostkeychecking (yes|true)$/m);
    expect(stdout).toMatch(/^userknownhostsfile "?\/tmp\/my hosts"?$/m);
  });

  testWith('ssh')('shadows no host of the user, whatever an instance is called', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-config-'));
    writeFileSync(join(folder, 'config'), sshConfig([instance('github.com'), instance('dev')]));
    for (const host of ['github.com', 'dev']) {
      const { stdout } = await run('ssh', ['-G', '-F', join(folder, 'config'), host]);
      expect(stdout).toContain(`hostname ${host}\n`);
      expect(stdout).toContain('port 22\n');
    }
    rmSync(folder, { recursive: true });
  });

  it('cannot be made to carry other directives', () => {
    expect(() => sshConfig([instance('i-a', 'host\n  ProxyCommand evil')])).toThrow(RangeError);
  });

  it('is empty without instances', () => {
    expect(sshConfig([PENDING])).toBe('');
    expect(knownHosts([PENDING])).toBe('');
  });
});

describe('sshConfigCommand', () => {
  it('saves each host key once', async () => {
    const client = { list: async () => ({ items: [instance('i-a'), instance('i-b')], resourceVersion: '1' }) };
    const saved: string[] = [];
    const save = async (path: string, text: string): Promise<void> => {
      saved.push(path, text);
    };
    const text = await sshConfigCommand(client as unknown as KubeClient, 'team', { knownHostsFile: 'hosts', save });
    expect(saved).toEqual(['hosts', '[gpu.example.com]:2222 ssh-ed25519 AAAA\n']);
    expect(text).toContain('UserKnownHostsFile hosts');
  });
});
