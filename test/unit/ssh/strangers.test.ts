import { type EventEmitter, once } from 'node:events';
import { connect } from 'node:net';
import type { Client, KexAlgorithm } from 'ssh2';
import { afterEach, describe, expect, it } from 'vitest';
import { DEFAULT_CEILINGS } from '../../../src/resources/tenants/ceilings.ts';
import { newEd25519Key } from '../../../src/ssh/login/ed25519-key.ts';
import type { SshServer } from '../../../src/ssh/server.ts';
import { ssh2 } from '../../../src/ssh/ssh2/load.ts';
import { loginTo, loneGateway } from '../../support/ssh-gateway.ts';

/** What ssh2's client keeps to itself (lib/client.js, 1.17). */
interface Insides {
  _protocol: { rekey(): void; authNone(user: string): void; _handlers: Record<string, () => void> };
}

let server: SshServer;
afterEach(() => server.close(0));

/** Unlike `once`, it takes errors for an end too. */
function closeOf(client: EventEmitter): Promise<unknown> {
  return new Promise((resolve) => {
    client.once('close', resolve);
  });
}

/** A client that exchanges keys and then does not log in. */
function stranger(kex?: KexAlgorithm): { client: Client; inside: Insides; closed: Promise<unknown> } {
  const client = new ssh2.Client();
  client.on('error', () => undefined);
  const { port } = server.address;
  const algorithms = kex === undefined ? {} : { kex: [kex] };
  client.connect({ host: '127.0.0.1', port, username: 'i-one', algorithms, authHandler: () => undefined });
  return { client, inside: client as unknown as Insides, closed: closeOf(client) };
}

describe('a stranger', () => {
  it('that exchanges keys again before its login is hung up on', async () => {
    ({ server } = await loneGateway());
    const { client, inside, closed } = stranger();
    let exchanges = 0;
    const many = new Promise((resolve) => {
      client.on('handshake', () => {
        exchanges += 1;
        if (exchanges === 10) resolve(undefined);
        else inside._protocol.rekey();
      });
    });
    await Promise.race([many, closed]);
    client.destroy();
    expect(exchanges).toBe(1);
  });

  it('that sends more packets than a login needs is hung up on', async () => {
    ({ server } = await loneGateway());
    const { client, inside, closed } = stranger();
    await once(client, 'handshake');
    let answers = 0;
    const many = new Promise((resolve) => {
      inside._protocol._handlers['USERAUTH_FAILURE'] = () => {
        answers += 1;
        if (answers === 1000) resolve(undefined);
      };
    });
    for (let count = 0; count < 1000; count += 1) inside._protocol.authNone('i-one');
    await Promise.race([many, closed]);
    client.destroy();
    expect(answers).toBeLessThan(200);
  });

  it('that sends more bytes than a login needs is hung up on, before any keys too', async () => {
    ({ server } = await loneGateway());
    const socket = connect(server.address.port, '127.0.0.1').on('error', () => undefined);
    socket.resume();
    const closed = closeOf(socket);
    // SSH_MSG_IGNORE, which may come at any time (RFC 4253 section 11.2).
    const ignore = Buffer.from([0, 0, 0, 12, 4, 2, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0]);
    socket.write('SSH-2.0-flood\r\n');
    socket.write(Buffer.concat(Array.from({ length: 8192 }, () => ignore)));
    await closed;
  });

  it('that begins a packet of more bytes than a login needs is hung up on', async () => {
    ({ server } = await loneGateway());
    const socket = connect(server.address.port, '127.0.0.1').on('error', () => undefined);
    socket.resume();
    const closed = closeOf(socket);
    const began = performance.now();
    socket.write('SSH-2.0-large\r\n');
    socket.write(Buffer.from([0, 3, 0, 4, 4, 2, 0, 0]));
    await closed;
    // Otherwise the time for a login would end it.
    expect(performance.now() - began).toBeLessThan(60_000);
  });

  it.each<[KexAlgorithm, boolean]>([
    ['curve25519-sha256', true],
    ['ecdh-sha2-nistp256', true],
    ['diffie-hellman-group14-sha256', true],
    ['ecdh-sha2-nistp384', false],
    ['ecdh-sha2-nistp521', false],
    ['diffie-hellman-group16-sha512', false],
  ])('may exchange keys by %s: %s', async (kex, offered) => {
    ({ server } = await loneGateway());
    const { client, closed } = stranger(kex);
    let exchanged = false;
    const done = new Promise((resolve) => {
      client.once('handshake', () => resolve((exchanged = true)));
    });
    await Promise.race([done, closed]);
    expect(exchanged).toBe(offered);
    client.destroy();
  });
});

describe('the login of a known address', () => {
  it('needs no place that strangers hold', async () => {
    const ssh = { ...DEFAULT_CEILINGS.ssh, connections: 1 };
    const started = await loneGateway({ maxPending: 8, ceilingsOf: () => ({ ...DEFAULT_CEILINGS, ssh }) });
    ({ server } = started);
    const silent = Array.from({ length: 4 }, (_, index) =>
      connect({ port: server.address.port, host: '127.0.0.1', localAddress: `127.0.1.${1 + index}` }),
    );
    await Promise.all(
      silent.map((socket) =>
        once(
          socket.on('error', () => undefined),
          'connect',
        ),
      ),
    );
    const client = await loginTo(server, started.key);
    expect(client).toBeDefined();
    expect(await loginTo(server, newEd25519Key('').private)).toBeUndefined();
    client?.destroy();
    for (const socket of silent) socket.destroy();
  });
});
