import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { Connection, Server, ServerChannel, Session } from 'ssh2';
import { type GcmCipher, sendData } from './gcm-data.ts';
import { Ssh2VersionError } from './load.ts';
import { readStrings, wireString } from '../../lib/ssh-strings.ts';

/** lib/server.js and lib/protocol/Protocol.js. */
interface PrivateConnection {
  _sock: Socket;
  _chanMgr: { remove(local: number): void };
  _protocol: {
    /** Our KEXINIT, until the keys that it began are in use. */
    _kexinit: Buffer | undefined;
    _kex: { remoteExtInfoEnabled: boolean; _remoteKexinit: Uint8Array } | undefined;
    _offer: { lists: Record<'kex' | 'serverHostKey', { array: readonly string[] }> };
    /** Set where the client guessed its first packet, and cleared when that was thrown away. */
    _skipNextInboundPacket: boolean;
    /** Takes every packet that comes when keys are in use and none are being exchanged. */
    _onPayload: (payload: Uint8Array) => unknown;
    _onHandshakeComplete: (...negotiated: unknown[]) => void;
    cleanup(): void;
    /** `_packet` is what has come of a packet so far: as much memory as all of it needs. */
    _decipher: { _packet: Uint8Array | null };
    _cipher: { encrypt(packet: Buffer): void } | ({ encrypt(packet: Buffer): void } & GcmCipher);
    _packetRW: { write: { allocStart: number; alloc(length: number): Buffer; finalize(packet: Buffer): Buffer } };
    _handlers: { CHANNEL_OPEN: (protocol: unknown, info: ChannelOpen) => void };
    channelClose(remote: number): void;
    channelData(remote: number, data: Buffer): void;
    channelOpenConfirm(remote: number, local: number, window: number, packetSize: number): void;
    channelOpenFail(remote: number, reason: number, description: string): void;
    channelWindowAdjust(remote: number, bytes: number): void;
  };
}

interface ChannelOpen {
  sender: number;
  packetSize: number;
}

/** lib/server.js. `_channel` is undefined before shell, exec or subsystem. */
interface PrivateSession {
  _channel: unknown;
  _chanInfo: { incoming: { id: number }; outgoing: { id: number } };
}

/** lib/Channel.js. */
interface PrivateChannel {
  outgoing: { id: number; state: 'open' | 'eof' | 'closing' | 'closed' };
}

/** Where a channel keeps the rest of a write that waits for the window. */
const WAITING_WRITE = { _chunk: undefined, _chunkcb: undefined, _chunkErr: undefined, _chunkcbErr: undefined };

/** Every private field that this file uses; `()` marks functions. */
const FIELDS = {
  Connection: ['_sock', '_chanMgr.remove()', '_protocol'],
  Protocol: [
    '_kexinit',
    '_kex',
    '_offer.lists.kex.array',
    '_offer.lists.serverHostKey.array',
    '_skipNextInboundPacket',
    '_onPayload()',
    '_onHandshakeComplete()',
    '_decipher._packet',
    '_cipher.encrypt()',
    '_packetRW.write.allocStart',
    '_packetRW.write.alloc()',
    '_packetRW.write.finalize()',
    '_handlers.CHANNEL_OPEN()',
    'cleanup()',
    'channelClose()',
    'channelData()',
    'channelOpenConfirm()',
    'channelOpenFail()',
    'channelWindowAdjust()',
  ],
  Session: ['_channel', '_chanInfo.incoming.id', '_chanInfo.outgoing.id'],
  Channel: [...Object.keys(WAITING_WRITE), 'outgoing.id', 'outgoing.state'],
};

function isPresent(object: unknown, field: string): boolean {
  let value = object;
  for (const name of field.replace('()', '').split('.')) {
    if (typeof value !== 'object' || value === null || !(name in value)) return false;
    value = (value as Record<string, unknown>)[name];
  }
  return !field.endsWith('()') || typeof value === 'function';
}

/** Throws {@link Ssh2VersionError} with every field that an object of ssh2 lacks. */
export function checkFields(kind: keyof typeof FIELDS, object: unknown): void {
  const missing = FIELDS[kind].filter((field) => !isPresent(object, field)).map((field) => `${kind}.${field}`);
  if (missing.length > 0) throw new Ssh2VersionError(missing.join(', '), 'private.ts');
}

/** Checks the private fields of objects that no client opened. Rejects with {@link Ssh2VersionError}. */
export async function checkPrivateFields(server: Server): Promise<void> {
  const socket = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
  socket.push('SSH-2.0-check\r\n');
  const connection = await new Promise<Connection>((resolve) => {
    server.once('connection', (client) => resolve(client.on('error', () => undefined)));
    server.injectSocket(socket as Socket);
  });
  try {
    checkFields('Connection', connection);
    const { _protocol: protocol } = inside(connection);
    checkFields('Protocol', protocol);
    connection.authenticated = true;
    let session: Session | undefined;
    let channel: ServerChannel | undefined;
    connection.once('session', (accept) => (session = accept()));
    connection.once('tcpip', (accept) => (channel = accept()));
    for (const type of ['session', 'direct-tcpip']) {
      const info = { type, sender: 0, window: 0, packetSize: SMALLEST_PACKET, data: {} };
      protocol._handlers.CHANNEL_OPEN(protocol, info);
    }
    checkFields('Session', session);
    checkFields('Channel', channel);
  } finally {
    socket.destroy();
  }
}

function inside(connection: Connection): PrivateConnection {
  return connection as unknown as PrivateConnection;
}

/** Message numbers (RFC 4250 section 4.1.2). */
export const KEXINIT = 20;
const DISCONNECT = 1;
const EXT_INFO = 7;
const USERAUTH_BANNER = 53;
const CHANNEL_REQUEST = 98;
/** Reasons for which a channel is not opened (RFC 4250 section 4.3). */
export const PROHIBITED = 1;
export const CONNECT_FAILED = 2;
export const RESOURCE_SHORTAGE = 4;
/** A reason for which a connection ends (RFC 4253 section 11.1). */
const PROTOCOL_ERROR = 2;
type ChannelRefusal = typeof PROHIBITED | typeof CONNECT_FAILED | typeof RESOURCE_SHORTAGE;
/** Bytes. OpenSSH's smallest packet is 16 KiB; no client is known that takes less than some KiB. */
const SMALLEST_PACKET = 256;

/** The socket that a connection was given. */
export function socketOf(connection: Connection): Socket {
  return inside(connection)._sock;
}

/** Hangs up. Unlike for a socket that is destroyed, what the client sent already is not worked on. */
export function hangUpOn(connection: Connection): void {
  const { _protocol: protocol, _sock: socket } = inside(connection);
  protocol.cleanup();
  socket.destroy();
}

/** Hangs up before keys are exchanged, with words. What the client sent already is not worked on. */
export function turnAway(connection: Connection, text: string): void {
  sendLastWords(connection, text);
  const { _protocol: protocol, _sock: socket } = inside(connection);
  protocol.cleanup();
  socket.end();
}

function send(connection: Connection, message: Buffer): void {
  const { _protocol: protocol } = inside(connection);
  const { write } = protocol._packetRW;
  const packet = write.alloc(message.length);
  message.copy(packet, write.allocStart);
  protocol._cipher.encrypt(write.finalize(packet));
}

/**
 * Sends SSH_MSG_USERAUTH_BANNER (RFC 4252 section 5.4). Clients print it before they report how the login ended: it is
 * the only way to say why a login is refused.
 */
export function sendBanner(connection: Connection, text: string): void {
  send(connection, Buffer.concat([Buffer.of(USERAUTH_BANNER), wireString(`${text}\r\n`), wireString('')]));
}

/** Sends SSH_MSG_DISCONNECT (RFC 4253 section 11.1), which clients print, and reads no packet any more. */
export function sendLastWords(connection: Connection, text: string): void {
  send(connection, Buffer.concat([Buffer.of(DISCONNECT, 0, 0, 0, PROTOCOL_ERROR), wireString(text), wireString('')]));
  socketOf(connection).removeAllListeners('data').resume();
}

/** Bytes that are held for a packet of which the client has sent a part. */
export function unfinishedPacket(connection: Connection): number {
  return inside(connection)._protocol._decipher._packet?.length ?? 0;
}

/**
 * Tells the client which signatures it may log in with (RFC 8308 section 3.1), in the place of ssh2, whose list lacks a
 * comma and names algorithms that are refused here. Call it before keys are exchanged.
 */
export function announceSignatures(connection: Connection, algorithms: readonly string[]): void {
  const { _protocol: protocol } = inside(connection);
  const complete = protocol._onHandshakeComplete.bind(protocol);
  let isFirst = true;
  protocol._onHandshakeComplete = (...negotiated) => {
    const { _kex: exchange } = protocol;
    const isAsked = isFirst && exchange?.remoteExtInfoEnabled === true;
    isFirst = false;
    if (exchange !== undefined) exchange.remoteExtInfoEnabled = false;
    complete(...negotiated);
    if (!isAsked) return;
    const one = Buffer.of(0, 0, 0, 1);
    const extension = [wireString('server-sig-algs'), wireString(algorithms.join(','))];
    send(connection, Buffer.concat([Buffer.of(EXT_INFO), one, ...extension]));
  };
}

/** Bytes of a KEXINIT before its first list: its number, and the cookie. */
const KEXINIT_HEAD = 17;

/** Whether the first packet that a client guessed is the one that follows (RFC 4253 section 7). */
function isRightGuess({ _kex: exchange, _offer: { lists } }: PrivateConnection['_protocol']): boolean {
  const theirs = readStrings(Buffer.from(exchange?._remoteKexinit ?? []).subarray(KEXINIT_HEAD), 2)?.strings;
  const ours = [lists.kex.array[0], lists.serverHostKey.array[0]];
  return theirs?.every((names, index) => names.toString('latin1').split(',', 1)[0] === ours[index]) === true;
}

/**
 * Keeps the first packet of a key exchange that a client guessed right, as Dropbear's does. ssh2 throws every such packet
 * away, and would wait for it for ever. Call it before keys are exchanged.
 */
export function keepRightGuesses(connection: Connection): void {
  const { _protocol: protocol } = inside(connection);
  let isGuess = false;
  Object.defineProperty(protocol, '_skipNextInboundPacket', {
    get: () => {
      if (isGuess && isRightGuess(protocol)) isGuess = false;
      return isGuess;
    },
    set: (value: boolean) => {
      isGuess = value;
    },
  });
}

const NOTHING = Buffer.alloc(0);

/** Requests whose last string is a text of the user, and how many strings they have (RFC 4254 sections 6.4 and 6.5). */
const TEXTS: Readonly<Record<string, number>> = { env: 2, exec: 1 };

/**
 * The bytes of a request that ssh2 reads otherwise: the terminal modes of `pty-req`, the value of `env`, the command of
 * `exec`. `at` is where they begin, with their length; undefined for any other message.
 */
function bytesIn(message: Buffer): { at: number; bytes: Buffer; isModes: boolean } | undefined {
  if (message[0] !== CHANNEL_REQUEST) return undefined;
  const type = readStrings(message.subarray(5), 1);
  const name = type?.strings[0]?.toString('latin1') ?? '';
  // After whether an answer is wanted.
  const after = type?.rest.subarray(1) ?? Buffer.alloc(0);
  const isModes = name === 'pty-req';
  const before = isModes ? 1 : (TEXTS[name] ?? 0) - 1;
  if (before < 0) return undefined;
  // The size of a terminal is four numbers.
  const rest = readStrings(after, before)?.rest.subarray(isModes ? 16 : 0);
  const [bytes] = (rest && readStrings(rest, 1)?.strings) ?? [];
  return rest === undefined || bytes === undefined ? undefined : { at: message.length - rest.length, bytes, isModes };
}

/**
 * Reads in the place of ssh2 what it does not hand on as it came. It begins with the second byte of terminal modes (RFC 4254
 * section 8), and takes what it cannot read for a broken message; and it takes all text for UTF-8, which names of files need
 * not be. Returns what tells the bytes of the `pty-req`, `env` or `exec` that is being handled. Call it before keys are
 * exchanged.
 */
export function takeOverRequests(connection: Connection): () => Buffer {
  const { _protocol: protocol } = inside(connection);
  const pass = protocol._onPayload;
  let current = NOTHING;
  protocol._onPayload = (payload) => {
    const message = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
    const found = bytesIn(message);
    if (found === undefined) return pass(payload);
    current = Buffer.from(found.bytes);
    if (found.isModes) message.writeUInt32BE(0, found.at);
    try {
      return pass(payload);
    } finally {
      current = NOTHING;
    }
  };
  return () => current;
}

/** Drops the packets of a client that `allows`, which gets the number of each message, does not take. Call it before keys are exchanged. */
export function screenPackets(connection: Connection, allows: (message: number) => boolean): void {
  const { _protocol: protocol } = inside(connection);
  const pass = protocol._onPayload;
  protocol._onPayload = (payload) => (allows(payload[0] ?? 0) ? pass(payload) : undefined);
}

/** Answers CLOSE and frees the number (RFC 4254 section 5.3) of an unstarted session, as ssh2 does for all others. */
export function closeUnstarted(connection: Connection, session: Session): void {
  const { _channel: channel, _chanInfo: info } = session as unknown as PrivateSession;
  if (channel !== undefined) return;
  const { _chanMgr: channels, _protocol: protocol } = inside(connection);
  channels.remove(info.incoming.id);
  protocol.channelClose(info.outgoing.id);
}

/** Whether keys are being exchanged. ssh2 queues all that it is to send meanwhile, without a limit (lib/protocol/utils.js). */
export function isRekeying(connection: Connection): boolean {
  return inside(connection)._protocol._kexinit !== undefined;
}

/** Has AES-GCM seal the data of channels by {@link sendData}. Call it before the first channel opens. */
export function takeOverData(connection: Connection): void {
  const { _protocol: protocol } = inside(connection);
  const send = protocol.channelData.bind(protocol);
  protocol.channelData = (remote, data) => {
    const { _cipher: cipher } = protocol;
    if ('_encSSLName' in cipher && !isRekeying(connection)) sendData(cipher, remote, data);
    else send(remote, data);
  };
}

/** Refuses a channel, by ssh2's `reject`, with words for the user: OpenSSH's client prints them. */
export function refuseChannel(connection: Connection, reject: () => void, reason: ChannelRefusal, text: string): void {
  const { _protocol: protocol } = inside(connection);
  const fail = protocol.channelOpenFail.bind(protocol);
  protocol.channelOpenFail = (remote) => fail(remote, reason, text);
  try {
    reject();
  } finally {
    protocol.channelOpenFail = fail;
  }
}

/**
 * Refuses channels whose client takes only tiny packets (RFC 4254 section 5.1). ssh2 would cut what it sends into pieces
 * of that size in one go, and for a size of 0 it would never end.
 */
export function refuseTinyPackets(connection: Connection): void {
  const { _protocol: protocol } = inside(connection);
  const { CHANNEL_OPEN: open } = protocol._handlers;
  protocol._handlers.CHANNEL_OPEN = (self, info) => {
    if (info.packetSize >= SMALLEST_PACKET) open(self, info);
    else protocol.channelOpenFail(info.sender, CONNECT_FAILED, `packets must hold ${SMALLEST_PACKET} bytes`);
  };
}

/**
 * Makes every channel open with `firstWindow` bytes and keeps ssh2 from renewing windows. Returns what renews them: it
 * lets the client send that many bytes more.
 */
export function takeOverWindows(
  connection: Connection,
  firstWindow: number,
): (channel: ServerChannel, bytes: number) => void {
  const { _protocol: protocol } = inside(connection);
  const confirm = protocol.channelOpenConfirm.bind(protocol);
  const adjust = protocol.channelWindowAdjust.bind(protocol);
  protocol.channelOpenConfirm = (remote, local, _window, packet) => confirm(remote, local, firstWindow, packet);
  protocol.channelWindowAdjust = () => undefined;
  return (channel, bytes) => adjust((channel as unknown as PrivateChannel).outgoing.id, bytes);
}

/** Whether our CLOSE was sent. The client may then use the number of the channel for another one. */
export function isClosed(channel: ServerChannel): boolean {
  const { state } = (channel as unknown as PrivateChannel).outgoing;
  return state === 'closing' || state === 'closed';
}

/** Clears what ssh2 keeps of a write that waited for the window: it would send it once more later. */
export function clearWaitingWrite(channel: ServerChannel): void {
  Object.assign(channel, WAITING_WRITE);
}
