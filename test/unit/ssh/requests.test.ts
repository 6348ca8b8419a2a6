import { EventEmitter } from 'node:events';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import type { Client, ClientChannel, Connection, Session } from 'ssh2';
import { afterEach, describe, expect, it } from 'vitest';
import type { LiveConnection } from '../../../src/ssh/connection.ts';
import type { SshServer } from '../../../src/ssh/server.ts';
import { ProgramSession } from '../../../src/ssh/session/session.ts';
import { closeUnstarted } from '../../../src/ssh/ssh2/private.ts';
import { loginTo, loneGateway } from '../../support/ssh-gateway.ts';
import { waitFor } from '../../support/wait-for.ts';

/** What a client sends that ssh2's own client never would, and what it hears (lib/protocol/Protocol.js, 1.17). */
interface RawClient {
  session(channel: number, window: number, packet: number): void;
  channelClose(channel: number): void;
  tcpipForward(address: string, port: number, wantReply: boolean): void;
  _handlers: Record<string, (protocol: unknown, ...heard: unknown[]) => void>;
}

let server: SshServer | undefined;
let client: Client | undefined;
afterEach(async () => {
  client?.destroy();
  await server?.close(0);
});

async function login(): Promise<Client> {
  const started = await loneGateway();
  server = started.server;
  client = await loginTo(started.server, started.key);
  if (client === undefined) throw new Error('refused');
  return client;
}

function rawOf(from: Client): RawClient {
  return (from as unknown as { _protocol: RawClient })._protocol;
}

describe('a session that is closed before anything was started in it', () => {
  it('is closed on our side, too', async () => {
    const raw = rawOf(await login());
    const closed: unknown[] = [];
    raw._handlers['CHANNEL_OPEN_CONFIRMATION'] = () => undefined;
    raw._handlers['CHANNEL_CLOSE'] = (_protocol, channel) => closed.push(channel);
    for (let channel = 0; channel < 300; channel += 1) {
      raw.session(channel, 65_536, 32_768);
      raw.channelClose(channel);
    }
    await waitFor('300 answers', () => closed.length === 300);
    expect(new Set(closed).size).toBe(300);
  });

  it('is forgotten, and one in which something was started is left to ssh2', () => {
    const done: string[] = [];
    const connection = {
      _chanMgr: { remove: (id: number) => done.push(`remove ${id}`) },
      _protocol: { channelClose: (id: number) => done.push(`close ${id}`) },
    } as unknown as Connection;
    const ids = { _chanInfo: { incoming: { id: 1 }, outgoing: { id: 2 } } };
    closeUnstarted(connection, { ...ids, _channel: {} } as unknown as Session);
    expect(done).toEqual([]);
    closeUnstarted(connection, { ...ids, _channel: undefined } as unknown as Session);
    expect(done).toEqual(['remove 1', 'close 2']);
  });
});

describe('a channel whose client takes packets', () => {
  it.each([
    [0, false],
    [1, false],
    [255, false],
    [256, true],
  ])('of %d bytes is opened: %s', async (size, opened) => {
    const raw = rawOf(await login());
    const heard = new Promise((resolve) => {
      raw._handlers['CHANNEL_OPEN_CONFIRMATION'] = () => resolve(true);
      raw._handlers['CHANNEL_OPEN_FAILURE'] = () => resolve(false);
    });
    raw.session(0, 65_536, size);
    expect(await heard).toBe(opened);
  });
});

describe('names that a client sends', () => {
  it.each([
    ['env', { key: 'A'.repeat(256), val: 'v' }, true],
    ['env', { key: 'A'.repeat(257), val: 'v' }, false],
    ['pty', { term: 'x'.repeat(256), cols: 80, rows: 24 }, true],
    ['pty', { term: 'x'.repeat(257), cols: 80, rows: 24 }, false],
  ])('are kept while they are short (%s)', (request, info, expected) => {
    const session = new EventEmitter();
    const connection = { gone: new AbortController().signal, key: {} } as LiveConnection;
    new ProgramSession(connection).listen(session as unknown as Session);
    const answers: boolean[] = [];
    const answer = (accepted: boolean) => () => answers.push(accepted);
    session.emit(request, answer(true), answer(false), info);
    expect(answers).toEqual([expected]);
  });
});

describe('remote forwards that a client asks for', () => {
  it('are named as refused once, however many they were', async () => {
    const connected = await login();
    const raw = rawOf(connected);
    for (let port = 1; port <= 100; port += 1) raw.tcpipForward('', port, false);
    const channel = await promisify<string, ClientChannel>(connected.exec.bind(connected))('true');
    expect((await text(channel.resume().stderr)).match(/remote forwarding/g)).toHaveLength(1);
  });
});
