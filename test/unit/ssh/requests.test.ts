import { EventEmitter } from 'node:events';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import fc from 'fast-check';
import type { Client, ClientChannel, Connection, Session } from 'ssh2';
import { afterEach, describe, expect, it } from 'vitest';
import { type LiveConnection, Notices } from '../../../src/ssh/connection.ts';
import type { SshServer } from '../../../src/ssh/server.ts';
import { ProgramSession } from '../../../src/ssh/session/session.ts';
import { sttyArguments } from '../../../src/ssh/session/terminal-modes.ts';
import { closeUnstarted, takeOverRequests } from '../../../src/ssh/ssh2/private.ts';
import { wireString } from '../../../src/lib/ssh-strings.ts';
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
    const bytes = () => Buffer.alloc(0);
    const connection = { gone: new AbortController().signal, key: {}, notices: new Notices(), bytes } as LiveConnection;
    new ProgramSession(connection).listen(session as unknown as Session);
    const answers: boolean[] = [];
    const answer = (accepted: boolean) => () => answers.push(accepted);
    session.emit(request, answer(true), answer(false), info);
    expect(answers).toEqual([expected]);
  });
});

/** What a client that asks for a terminal sends beside its kind and size (RFC 4254 section 8). */
const MODES: readonly [opcode: number, value: number][] = [
  [129, 38_400],
  [3, 8],
  [1, 24],
  [5, 255],
  [9, 0xe9],
  [38, 0],
  [42, 1],
  [159, 1],
];

function encoded(modes: typeof MODES): Buffer {
  return Buffer.concat([
    ...modes.map(([opcode, value]) => {
      const bytes = Buffer.alloc(5, opcode);
      bytes.writeUInt32BE(value, 1);
      return bytes;
    }),
    Buffer.of(0),
  ]);
}

describe('the modes of a terminal', () => {
  it('are those of the client, as stty takes them', () => {
    const told = 'erase ^H intr ^X eof undef stop 0xe9 -ixon iutf8';
    expect(sttyArguments(encoded(MODES))).toEqual(told.split(' '));
  });

  it('end where they cannot be read any more', () => {
    expect(
      sttyArguments(
        encoded([
          [38, 1],
          [160, 1],
          [42, 1],
        ]),
      ),
    ).toEqual(['ixon']);
    expect(sttyArguments(Buffer.of(38, 0, 0))).toEqual([]);
    fc.assert(fc.property(fc.uint8Array(), (bytes) => Array.isArray(sttyArguments(Buffer.from(bytes)))));
  });

  it('are read in the place of ssh2, which sees none', () => {
    const passed: Buffer[] = [];
    const read: Buffer[] = [];
    const protocol = {
      _onPayload: (payload: Uint8Array) => {
        passed.push(Buffer.from(payload));
        read.push(modes());
      },
    };
    const modes = takeOverRequests({ _protocol: protocol } as unknown as Connection);
    const head = (name: string): Buffer => Buffer.concat([Buffer.of(98, 0, 0, 0, 7), wireString(name), Buffer.of(1)]);
    const request = Buffer.concat([head('pty-req'), wireString('xterm'), Buffer.alloc(16, 1)]);
    protocol._onPayload(Buffer.concat([request, wireString(encoded(MODES))]));
    expect(read).toEqual([encoded(MODES)]);
    expect(passed[0]?.subarray(0, request.length + 4)).toEqual(Buffer.concat([request, Buffer.alloc(4)]));
    for (const other of [Buffer.of(98), Buffer.concat([head('env'), wireString('A')]), request, Buffer.of(94, 1)]) {
      protocol._onPayload(other);
      expect(passed.at(-1)).toEqual(other);
      expect(read.at(-1)).toEqual(Buffer.alloc(0));
    }
  });
});

describe('a text that is no UTF-8', () => {
  it.each([
    ['exec', [], Buffer.from('ls J\u00f6rg', 'latin1')],
    ['env', [wireString('LC_NAME')], Buffer.of(0xff, 0, 0x80)],
    ['exec', [], Buffer.alloc(0)],
  ])('comes as it was sent, by %s', (type, before, text) => {
    const passed: Uint8Array[] = [];
    const protocol = {
      _onPayload: (payload: Uint8Array) => {
        passed.push(payload);
        expect(bytes()).toEqual(text);
      },
    };
    const bytes = takeOverRequests({ _protocol: protocol } as unknown as Connection);
    const head = Buffer.concat([Buffer.of(98, 0, 0, 0, 7), wireString(type), Buffer.of(0)]);
    const message = Buffer.concat([head, ...before, wireString(text)]);
    protocol._onPayload(Buffer.from(message));
    expect(passed).toEqual([message]);
    expect(bytes()).toEqual(Buffer.alloc(0));
  });
});

describe('the variables of a session', () => {
  it('count while it lives', () => {
    const bytes = () => Buffer.from('x'.repeat(1000));
    const connection = {
      gone: new AbortController().signal,
      key: {},
      notices: new Notices(),
      bytes,
      variables: 0,
    } as LiveConnection;
    const session = new EventEmitter();
    new ProgramSession(connection).listen(session as unknown as Session);
    const answers: boolean[] = [];
    for (let index = 0; index < 300; index += 1) {
      const name = `V${String(index).padStart(3, '0')}`;
      session.emit(
        'env',
        () => answers.push(true),
        () => answers.push(false),
        { key: name },
      );
    }
    expect(answers.filter(Boolean)).toHaveLength(129);
    expect(connection.variables).toBe(129 * 1005);
    session.emit('close');
    expect(connection.variables).toBe(0);
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

describe('what a session asks for and does not get', () => {
  it('is said, once for a connection', () => {
    const notices = new Notices();
    const bytes = () => Buffer.from('x');
    const connection = { gone: new AbortController().signal, key: {}, notices, bytes } as LiveConnection;
    const answers: string[] = [];
    const ask = (request: string, info?: object): void => {
      const session = new EventEmitter();
      new ProgramSession(connection).listen(session as unknown as Session);
      session.emit(
        request,
        () => answers.push('accepted'),
        () => answers.push('refused'),
        info,
      );
    };
    for (const _ of [1, 2]) {
      ask('auth-agent');
      ask('x11', {});
      ask('env', { key: 'not-a-name', val: 'x' });
      ask('pty', { term: 'x'.repeat(257), cols: 80, rows: 24 });
    }
    expect(answers).toEqual(Array(8).fill('refused'));
    expect(notices.take()).toEqual([
      expect.stringContaining('agent forwarding (-A) is not offered'),
      expect.stringContaining('X11 forwarding (-X) is not offered'),
      expect.stringContaining('a variable of your client was not set'),
      expect.stringContaining('its kind (TERM) has more than 256 bytes'),
    ]);
    ask('auth-agent');
    expect(notices.take()).toEqual([]);
  });
});
