import { once } from 'node:events';
import type { Socket } from 'node:net';
import type { Client, ClientChannel } from 'ssh2';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { SshServer, SshServerDeps } from '../../../src/ssh/server.ts';
import { silentProgram } from '../../support/silent-program.ts';
import { loginTo, loneGateway } from '../../support/ssh-gateway.ts';
import { waitFor } from '../../support/wait-for.ts';

const MIB = 1024 * 1024;
const TARGET = { namespace: 'team', pod: 'p', container: 'main', uid: 'u', tools: true };

let silence: Awaited<ReturnType<typeof silentProgram>>;
let server: SshServer | undefined;
const clients: Client[] = [];

beforeEach(async () => {
  silence = await silentProgram();
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  await server?.close(0);
  await silence.end();
});

async function gateway(overrides: Partial<SshServerDeps> = {}): Promise<() => Promise<Client>> {
  const started = await loneGateway({ endpoint: silence.endpoint, ...overrides }, TARGET);
  server = started.server;
  return async () => {
    const client = await loginTo(started.server, started.key);
    if (client === undefined) throw new Error('refused');
    clients.push(client);
    return client;
  };
}

/** A command that never reads what it is sent. */
function send(client: Client, bytes: number): Promise<ClientChannel> {
  return new Promise((resolve, reject) => {
    client.exec('sleep', (error, channel) => {
      if (error) {
        reject(error);
        return;
      }
      channel.on('error', () => undefined);
      channel.write(Buffer.alloc(bytes));
      resolve(channel);
    });
  });
}

/** Resolves when the server has answered what was sent before: here with a refusal. */
function answered(client: Client): Promise<void> {
  return new Promise((resolve) => {
    client.forwardOut('127.0.0.1', 0, '127.0.0.1', 0, () => resolve());
  });
}

function sentBy(client: Client): number {
  return (client as unknown as { _sock: Socket })._sock.bytesWritten;
}

/** Bytes that the client has sent when it may send no more. */
async function sentInAll(client: Client): Promise<number> {
  await waitFor('the end of what may be sent', async () => {
    const before = sentBy(client);
    await answered(client);
    await answered(client);
    return sentBy(client) - before < 4096;
  });
  return sentBy(client);
}

describe('input that nobody reads', () => {
  it('is held back at the client, and not in the gateway', async () => {
    const client = await (await gateway())();
    let ended = false;
    client.once('close', () => (ended = true));
    await Promise.all(Array.from({ length: 100 }, () => send(client, 3 * MIB)));
    expect(await sentInAll(client)).toBeLessThan(8 * MIB);
    expect(ended).toBe(false);
  });

  it('costs the connection that holds most of it, when all of them hold too much', async () => {
    const connect = await gateway({ maxBuffered: 2 * MIB });
    const [greedy, modest] = [await connect(), await connect()];
    const ended = once(greedy, 'close');
    await send(modest, 3 * MIB);
    const sent = Promise.allSettled(Array.from({ length: 60 }, () => send(greedy, 3 * MIB)));
    await ended;
    await sent;
    await answered(modest);
    expect(server?.connections).toBe(1);
  });
});
