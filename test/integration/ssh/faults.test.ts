import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { stat, truncate, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { PODS } from '../../../src/kube/types.ts';
import { GPU_INSTANCES, LAST_ACTIVITY } from '../../../src/resources/instances/gpu-instance.ts';
import { DEFAULT_ADDRESS_LIMITS } from '../../../src/ssh/login/address-limits.ts';
import { startBerth } from '../../support/berth-process.ts';
import { killApiServer } from '../../support/kill-api-server.ts';
import { BARE } from '../../support/ssh-images.ts';
import { finished, sshClient } from '../../support/ssh-client.ts';
import { sshWorld, WAYS, type SshWorld } from '../../support/ssh-world.ts';
import { waitFor } from '../../support/wait-for.ts';
import { describeWith } from '../../support/needs.ts';

const onNode = describeWith('real node', 'ssh', 'mmdebstrap');

const MIB = 1024 * 1024;
let world: SshWorld;
let key: string;

beforeAll(async () => {
  world = await sshWorld();
  key = await world.addKey('laptop');
  await world.addInstance('steady', { image: BARE, idleTimeout: '1h' });
});
afterAll(() => world.end());

function handles(): number {
  return process.getActiveResourcesInfo().filter((name) => /TCP|TLS/.test(name)).length;
}

function collected(child: { stdout: NodeJS.ReadableStream }): () => string {
  let output = '';
  child.stdout.on('data', (part) => (output += String(part)));
  return () => output;
}

async function exitCode(child: ChildProcess): Promise<number | null> {
  const [code] = (await once(child, 'close')) as [number | null];
  return code;
}

onNode.each(WAYS)('what breaks under a session, %s:', (way) => {
  it('a pod that is killed ends the session with a status that is not 0', async () => {
    const name = `victim-${way}`;
    await world.addInstance(name, { image: BARE });
    const client = sshClient(world.configOf(world.gateways[way], key));
    const child = client.start(name, 'echo up; sleep 300');
    const output = collected(child);
    const result = finished(child);
    await waitFor('the session', () => output().includes('up'));
    await world.client.delete(PODS, { namespace: world.namespace, name }, { gracePeriodSeconds: 1 });
    expect((await result).code).toBeGreaterThan(0);
    const after = await client.ssh(name, 'true');
    expect(after.code).toBe(255);
    expect(after.stderr).toContain(`instance ${name} `);
  });

  it.each(['upload', 'download'])(
    'a key that is deleted in the middle of an %s stops it within a second',
    async (direction) => {
      const client = sshClient(world.configOf(world.gateways[way], await world.addKey('brief')));
      const big = join(world.folder, 'big');
      await writeFile(big, '');
      await truncate(big, 2048 * MIB);
      const owner = sshClient(world.configOf(world.gateways[way], key));
      await owner.ssh('steady', 'truncate -s 2G /tmp/big');
      const [from, to] =
        direction === 'upload' ? [big, 'steady@127.0.0.1:/tmp/copy'] : ['steady@127.0.0.1:/tmp/big', `${big}.copy`];
      const copy = client.run('scp', ['-q', from, to]);
      const arrived = async (): Promise<number> =>
        direction === 'upload'
          ? Number((await owner.ssh('steady', 'stat -c %s /tmp/copy')).stdout)
          : ((await stat(to).catch(() => undefined))?.size ?? 0);
      await waitFor('bytes on their way', async () => (await arrived()) > 8 * MIB);
      const began = performance.now();
      await world.removeKey('brief');
      const { code, stderr } = await copy;
      expect(performance.now() - began).toBeLessThan(1000);
      expect(code).not.toBe(0);
      // A client with its hands full may read the reason too late: the connection does not wait for it.
      expect(stderr).toMatch(/no longer opens instance steady|lost connection|Connection (reset|closed)/);
      expect(await arrived()).toBeLessThan(2048 * MIB);
      await owner.ssh('steady', 'rm -f /tmp/copy /tmp/big');
    },
  );

  it('a client that stops reading costs no memory', async () => {
    const client = sshClient(world.configOf(world.gateways[way], key));
    await client.ssh('steady', 'true');
    globalThis.gc?.();
    const before = process.memoryUsage().rss;
    // The child's stdout is never read: its pipe fills, then the client's window, then ours.
    const child = client.start('steady', 'head -c 1073741824 /dev/zero; echo never');
    const closed = once(child, 'close');
    let peak = 0;
    const until = performance.now() + 5000;
    await waitFor('five seconds', () => {
      peak = Math.max(peak, process.memoryUsage().rss);
      return performance.now() > until;
    });
    expect(peak - before).toBeLessThan(32 * MIB);
    expect(world.records.some((each) => each.event === 'session' && each.bytesOut > 512 * MIB)).toBe(false);
    child.kill();
    child.stdout.resume();
    await closed;
  });

  it('programs that read late slow their connection and lose nothing', async () => {
    const client = sshClient(world.configOf(world.gateways[way], key));
    const control = join(world.folder, `control-${way}`);
    const flags = ['-o', `ControlPath=${control}`];
    const master = client.start('steady', 'cat', [...flags, '-M']);
    await waitFor('the shared connection', () => existsSync(control));
    const input = Buffer.alloc(4 * MIB);
    const uploads = Array.from({ length: 20 }, () => client.ssh('steady', 'sleep 2; wc -c', { flags, input }));
    const counts = (await Promise.all(uploads)).map(({ stdout }) => Number(stdout));
    expect(new Set(counts)).toEqual(new Set([4 * MIB]));
    expect((await finished(master)).code).toBe(0);
  });
});

onNode('what breaks under a gateway', () => {
  it('a gateway that drains takes nobody new, lets sessions finish, and cuts the rest with a word', async () => {
    const gateway = await world.startGateway();
    const client = sshClient(world.configOf(gateway, key));
    const short = client.start('steady', 'echo up; read line; echo done; exit 3');
    const long = client.start('steady', 'echo up; sleep 300');
    const outputs = [collected(short), collected(long)];
    const longResult = finished(long);
    let shortCode: number | null = null;
    short.once('close', (code) => (shortCode = code));
    await waitFor('both sessions', () => outputs.every((output) => output().includes('up')));
    const closed = gateway.close(3000);
    const late = await client.ssh('steady', 'true');
    expect(late.code).toBe(255);
    short.stdin.write('go\n');
    await waitFor('the end of the short one', () => shortCode === 3);
    expect(outputs[0]?.()).toContain('done');
    await closed;
    const { code, stderr } = await longResult;
    expect(code).toBe(255);
    expect(stderr).toContain('The gateway restarts');
  });

  it('SIGTERM to the gateway lets a session finish, takes nobody new, and ends the process with 0', async () => {
    const { kubeconfig } = inject('cluster');
    await using gateway = await startBerth(kubeconfig, 'ssh', world.home);
    const client = sshClient(world.configOf({ address: { port: gateway.sshPort } }, key));
    const user = `steady.${world.namespace}`;
    const child = client.start(user, 'echo up; read line; echo done; exit 3');
    const output = collected(child);
    const code = exitCode(child);
    await waitFor('the session', () => output().includes('up'));
    const exited = once(gateway.child, 'exit');
    gateway.child.kill('SIGTERM');
    await waitFor('the refusal of a new connection', async () =>
      (await client.ssh(user, 'true')).stderr.includes('Connection refused'),
    );
    child.stdin.end('go\n');
    expect(await code).toBe(3);
    expect(output()).toContain('done');
    expect(await exited).toEqual([0, null]);
    const { metadata } = await world.client.get(GPU_INSTANCES, { namespace: world.namespace, name: 'steady' });
    expect(Date.now() - Date.parse(metadata.annotations?.[LAST_ACTIVITY] ?? '')).toBeLessThan(60_000);
  });

  it('two hundred connections come and go and leave nothing', async () => {
    // One address may not open so many at once.
    const gateway = await world.startGateway({ addressLimits: { ...DEFAULT_ADDRESS_LIMITS, burst: 1000 } });
    const { port } = gateway.address;
    const round = async (): Promise<void> => {
      const socket = connect(port, '127.0.0.1');
      await once(socket, 'connect');
      socket.write('SSH-2.0-OpenSSH_9.9\r\n');
      await once(socket, 'data');
      socket.destroy();
      await once(socket, 'close');
    };
    await round();
    const before = handles();
    for (let batch = 0; batch < 20; batch += 1) await Promise.all(Array.from({ length: 10 }, round));
    await waitFor('the handles to go', () => handles() <= before);
    await waitFor('the connections to go', () => gateway.connections === 0);
    await gateway.close(0);
  });

  it('a helper that is killed ends its sessions with 255 and a reason, and their processes', async () => {
    const client = sshClient(world.configOf(world.server, key));
    const child = client.start('steady', 'echo up; sh -c "sleep 4731; true"; true');
    const output = collected(child);
    const result = finished(child);
    await waitFor('the session', () => output().includes('up'));
    // By exec, so that no other helper runs.
    const observer = sshClient(world.configOf(world.gateways.exec, key));
    expect((await observer.ssh('steady', 'killall -9 direct')).code).toBe(0);
    expect(await result).toMatchObject({
      code: 255,
      stderr: expect.stringContaining('berth: the connection to the instance was lost.') as string,
    });
    await waitFor(
      'the end of the command',
      async () => (await observer.ssh('steady', 'grep -sl sleep.473[1] /proc/[0-9]*/cmdline')).code !== 0,
    );
    expect((await client.ssh('steady', 'true')).code).toBe(0);
  });

  it('sessions by the direct way outlive an API server that is killed, and end with their key once it is back', async () => {
    const { initPid = 0 } = inject('cluster');
    const client = sshClient(world.configOf(world.server, await world.addKey('patient')));
    const child = client.start('steady', 'echo up; while read -r line; do echo "got $line"; done; sleep 4741');
    const output = collected(child);
    let stderr = '';
    child.stderr.on('data', (part) => (stderr += String(part)));
    const code = exitCode(child);
    await waitFor('the session', () => output().includes('up'));
    const apiServer = killApiServer(initPid);
    await waitFor('a login by exec to fail', async () =>
      (await sshClient(world.configOf(world.gateways.exec, key)).ssh('steady', 'true')).stderr.includes(
        'cannot be reached',
      ),
    );
    child.stdin.write('meanwhile\n');
    await waitFor('the answer', () => output().includes('got meanwhile'));
    const refused = await client.ssh('steady', 'true');
    expect(refused).toMatchObject({ code: 255 });
    expect(refused.stderr).toContain('instance steady cannot be reached: The API server cannot be reached');
    await apiServer.restart(world.client);
    child.stdin.write('after\n');
    await waitFor('the second answer', () => output().includes('got after'));
    await waitFor('the key to be deleted', () =>
      world.removeKey('patient').then(
        () => true,
        () => false,
      ),
    );
    expect(await code).toBe(255);
    expect(stderr).toContain('no longer opens instance steady');
    const owner = sshClient(world.configOf(world.server, key));
    await waitFor('a login', async () => (await owner.ssh('steady', 'true')).code === 0);
    await waitFor(
      'the end of the command',
      async () => (await owner.ssh('steady', 'grep -sl sleep.474[1] /proc/[0-9]*/cmdline')).code !== 0,
    );
  });

  it('an API server that is killed ends sessions by exec with 255 and a reason, and their processes once it is back', async () => {
    const { initPid = 0 } = inject('cluster');
    const client = sshClient(world.configOf(world.gateways.exec, key));
    const child = client.start('steady', 'echo up; sleep 4721');
    const output = collected(child);
    const result = finished(child);
    await waitFor('the session', () => output().includes('up'));
    const apiServer = killApiServer(initPid);
    const { code, stderr } = await result;
    expect(code).toBe(255);
    expect(stderr).toContain('berth: the connection to the instance was lost.');
    const refused = await client.ssh('steady', 'true');
    expect(refused).toMatchObject({ code: 255 });
    expect(refused.stderr).toContain('instance steady cannot be reached');
    await apiServer.restart(world.client);
    await waitFor('a login', async () => (await client.ssh('steady', 'true')).code === 0);
    await waitFor(
      'the end of the command',
      async () => (await client.ssh('steady', 'grep -sl sleep.472[1] /proc/[0-9]*/cmdline')).code !== 0,
    );
    // The gateway follows keys again.
    const late = sshClient(world.configOf(world.server, await world.addKey('late')));
    expect((await late.ssh('steady', 'true')).code).toBe(0);
  });
});
