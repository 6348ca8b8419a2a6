import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PODS } from '../../../src/kube/types.ts';
import { BARE } from '../../support/ssh-images.ts';
import { finished, sshClient } from '../../support/ssh-client.ts';
import { sshWorld, type SshWorld } from '../../support/ssh-world.ts';
import { waitFor } from '../../support/wait-for.ts';
import { describeWith } from '../../support/needs.ts';

const onNode = describeWith('real node', 'mmdebstrap');

const MIB = 1024 * 1024;
let world: SshWorld;
let key: string;

beforeAll(async () => {
  world = await sshWorld();
  key = await world.addKey('laptop');
  await world.addInstance('steady', { image: BARE });
});
afterAll(() => world.end());

function handles(): number {
  return process.getActiveResourcesInfo().filter((name) => /TCP|TLS/.test(name)).length;
}

/** Stands between the gateway and the API server and can fall down as one that restarts does. */
async function apiServerProxy(
  target: URL,
): Promise<{ port: number; fall: () => void; rise: () => Promise<void>; close: () => void }> {
  const sockets = new Set<Socket>();
  const make = (): Server =>
    createServer((socket) => {
      const upstream = connect(Number(target.port), target.hostname);
      for (const each of [socket, upstream]) {
        sockets.add(each);
        each.on('error', () => undefined);
        each.on('close', () => {
          socket.destroy();
          upstream.destroy();
          sockets.delete(each);
        });
      }
      socket.pipe(upstream).pipe(socket);
    });
  let server = make().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const fall = (): void => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return {
    port,
    fall,
    rise: async () => {
      server = make().listen(port, '127.0.0.1');
      await once(server, 'listening');
    },
    close: fall,
  };
}

function collected(child: { stdout: NodeJS.ReadableStream }): () => string {
  let output = '';
  child.stdout.on('data', (part) => (output += String(part)));
  return () => output;
}

onNode('what breaks under a session', () => {
  it('a pod that is killed ends the session with a status that is not 0', async () => {
    await world.addInstance('victim', { image: BARE });
    const child = sshClient(world.configOf(world.server, key)).start('victim', 'echo up; sleep 300');
    const output = collected(child);
    const result = finished(child);
    await waitFor('the session', () => output().includes('up'));
    await world.client.delete(PODS, { namespace: world.namespace, name: 'victim' }, { gracePeriodSeconds: 1 });
    expect((await result).code).toBeGreaterThan(0);
    const after = await sshClient(world.configOf(world.server, key)).ssh('victim', 'true');
    expect(after.code).toBe(255);
    expect(after.stderr).toMatch(/instance victim /);
  });

  it('an API server that restarts ends sessions with 255 and a reason, and their processes once it is back', async () => {
    const proxy = await apiServerProxy(new URL(world.connection.server));
    const endpoint = {
      server: `https://127.0.0.1:${proxy.port}`,
      headers: world.connection.headers,
      tls: { ...world.connection.tls, rejectUnauthorized: false },
    };
    const gateway = await world.startGateway({ endpoint });
    const client = sshClient(world.configOf(gateway, key));
    const child = client.start('steady', 'echo up; sleep 4721');
    const output = collected(child);
    const result = finished(child);
    await waitFor('the session', () => output().includes('up'));
    proxy.fall();
    const { code, stderr } = await result;
    expect(code).toBe(255);
    expect(stderr).toContain('berth: the connection to the instance was lost.');
    const refused = await client.ssh('steady', 'true');
    expect(refused).toMatchObject({ code: 255 });
    expect(refused.stderr).toContain('instance steady cannot be reached');
    await proxy.rise();
    expect((await client.ssh('steady', 'true')).code).toBe(0);
    await waitFor(
      'the end of the command',
      async () => (await client.ssh('steady', 'grep -sl sleep.472[1] /proc/[0-9]*/cmdline')).code !== 0,
      30_000,
    );
    proxy.close();
  });

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

  it('a key that is deleted in the middle of a copy stops it within a second', async () => {
    const path = await world.addKey('brief');
    const child = sshClient(world.configOf(world.server, path)).start('steady', 'cat >/dev/null');
    const result = new Promise<number | null>((resolve) => child.once('close', resolve));
    child.stdin.on('error', () => undefined);
    let sent = 0;
    const chunk = Buffer.alloc(MIB);
    const feed = (): void => {
      if (!child.stdin.writable) return;
      child.stdin.write(chunk, (error) => {
        if (error) return;
        sent += chunk.length;
        feed();
      });
    };
    feed();
    await waitFor('bytes on their way', () => sent > 8 * MIB);
    const began = performance.now();
    await world.removeKey('brief');
    expect(await result).toBe(255);
    expect(performance.now() - began).toBeLessThan(1000);
  });

  it('a client that stops reading costs no memory', async () => {
    const client = sshClient(world.configOf(world.server, key));
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

  it('two hundred connections come and go and leave nothing', async () => {
    const { port } = world.server.address;
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
    await waitFor('the connections to go', () => world.server.connections === 0);
  });
});
