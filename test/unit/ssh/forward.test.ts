import type { Socket } from 'node:net';
import { promisify } from 'node:util';
import type { ClientChannel } from 'ssh2';
import { describe, expect, it } from 'vitest';
import type { AuditRecord } from '../../../src/ssh/audit.ts';
import { channelServer, frame } from '../../support/channel-server.ts';
import { loginTo, loneGateway } from '../../support/ssh-gateway.ts';
import { waitFor } from '../../support/wait-for.ts';

const TARGET = { namespace: 'team', pod: 'p', container: 'main', uid: 'u', tools: false };
const TO = { srcIP: '127.0.0.1', srcPort: 1, dstIP: '127.0.0.1', dstPort: 80 };

/** What ssh2's client keeps to itself (lib/client.js, 1.17). */
interface Insides {
  _sock: Socket;
  config: { strictVendor: boolean };
  _protocol: { directTcpip(channel: number, window: number, packet: number, to: typeof TO): void };
}

describe('a forward that is not opened', () => {
  const toolless = { namespace: 'team', pod: 'p', container: 'main', uid: 'u', tools: false };

  it.each([
    [undefined, '127.0.0.1', 80, 'instance i-one is stopped'],
    [toolless, '127.0.0.1', 0, '0 is not the number of a port'],
    [toolless, '10.0.0.1', 80, 'only ports of the instance itself can be forwarded: the instance carries no tools.'],
    [toolless, '127.0.0.1', 80, 'the instance cannot be reached: '],
  ])('says why (%j, %s, %d)', async (target, host, port, reason) => {
    const { server, key } = await loneGateway({}, target);
    const client = await loginTo(server, key);
    if (client === undefined) throw new Error('refused');
    const forward = promisify<string, number, string, number, ClientChannel>(client.forwardOut.bind(client));
    await expect(forward('', 0, host, port)).rejects.toThrow(`(SSH) Channel open failure: berth: ${reason}`);
    client.destroy();
    await server.close(0);
  });

  it.each([
    [undefined, 'instance i-one is stopped'],
    [toolless, 'only ports of the instance itself can be forwarded: the instance carries no tools.'],
  ])('says why, to a socket by its path (%j)', async (target, reason) => {
    const { server, key } = await loneGateway({}, target);
    const client = await loginTo(server, key);
    if (client === undefined) throw new Error('refused');
    // Else it sends such requests to OpenSSH only.
    (client as unknown as Insides).config.strictVendor = false;
    for (const path of ['/run/containerd/containerd.sock', '/proc/1/root/run/a.sock', '@a', ''])
      await expect(
        promisify<string, ClientChannel>(client.openssh_forwardOutStreamLocal.bind(client))(path),
      ).rejects.toThrow(`(SSH) Channel open failure: berth: ${reason}`);
    const listen = promisify<string, void>(client.openssh_forwardInStreamLocal.bind(client));
    await expect(listen('/tmp/a.sock')).rejects.toThrow('Unable to bind to /tmp/a.sock');
    client.destroy();
    await server.close(0);
  });
});

it('a forward ends with its client also when its last bytes wait for the window', async () => {
  const kubelet = await channelServer('v4.channel.k8s.io');
  const ended = Promise.withResolvers<void>();
  kubelet.onStream = (stream) => {
    stream.on('close', () => ended.resolve());
    stream.send(frame(0, Buffer.from([80, 0])));
    stream.send(frame(0, Buffer.alloc(1024)));
    stream.close();
  };
  const events: AuditRecord[] = [];
  const { server, key } = await loneGateway(
    { endpoint: kubelet.endpoint, audit: (event) => void events.push(event) },
    TARGET,
  );
  const client = await loginTo(server, key);
  (client as unknown as Insides)._protocol.directTcpip(0, 16, 32 * 1024, TO);
  await ended.promise;
  client?.destroy();
  const told = await waitFor('the end of the forward', () => events.find(({ event }) => event === 'session'), 5_000);
  expect(told).toMatchObject({ kind: 'forward' });
  await server.close(0);
  await kubelet.close();
});
