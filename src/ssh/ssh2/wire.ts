import type { Connection, Session } from 'ssh2';

/** What ssh2 can send but offers no method for (lib/protocol/Protocol.js, 1.17). */
interface Wire {
  _protocol: { _banner: string | undefined; serviceAccept(service: string): void } & WirePackets;
}

interface WirePackets {
  _packetRW: { write: { allocStart: number; alloc(length: number): Buffer; finalize(packet: Buffer): Buffer } };
  _cipher: { encrypt(packet: Buffer): void };
}

/** Where ssh2 keeps the channels of a connection (lib/server.js and lib/utils.js, 1.17). */
interface Channels {
  _chanMgr: { remove(local: number): void };
  _protocol: { channelClose(remote: number): void };
}

/** A session, with its channel from shell, exec or subsystem on (lib/server.js, 1.17). */
interface SessionChannel {
  _channel: unknown;
  _chanInfo: { incoming: { id: number }; outgoing: { id: number } };
}

/** Our KEXINIT, until the keys that it began are in use (lib/protocol/kex.js, 1.17). */
interface KeyExchange {
  _protocol: { _kexinit: Buffer | undefined };
}

/** What is done when a client opens a channel (lib/server.js, 1.17). */
interface Opening {
  _protocol: {
    _handlers: { CHANNEL_OPEN: (protocol: unknown, info: { sender: number; packetSize: number }) => void };
    channelOpenFail(remote: number, reason: number, description: string): void;
  };
}

const USERAUTH_BANNER = 53;
const CONNECT_FAILED = 2;
/** Bytes. The smallest that is known of clients is some KiB, OpenSSH's is 16. */
const SMALLEST_PACKET = 256;

/**
 * Sends SSH_MSG_USERAUTH_BANNER (RFC 4252 section 5.4), which clients print before they report how the login ended:
 * the only way to say why a login is refused.
 */
export function sendBanner(connection: Connection, text: string): void {
  const { _protocol: protocol } = connection as unknown as Wire;
  const { write } = protocol._packetRW;
  const message = Buffer.from(`${text}\r\n`);
  let offset = write.allocStart;
  const packet = write.alloc(1 + 4 + message.length + 4);
  packet[offset] = USERAUTH_BANNER;
  offset = packet.writeUInt32BE(message.length, offset + 1);
  offset += message.copy(packet, offset);
  packet.writeUInt32BE(0, offset);
  protocol._cipher.encrypt(write.finalize(packet));
}

/**
 * Answers CLOSE and frees the number of the channel (RFC 4254 section 5.3) for a session in which nothing was started:
 * ssh2 does so for all others.
 */
export function closeUnstarted(connection: Connection, session: Session): void {
  const { _channel: channel, _chanInfo: info } = session as unknown as SessionChannel;
  if (channel !== undefined) return;
  const { _chanMgr: channels, _protocol: protocol } = connection as unknown as Channels;
  channels.remove(info.incoming.id);
  protocol.channelClose(info.outgoing.id);
}

/** Whether keys are exchanged just now. ssh2 keeps what it is to send until then, however much (lib/protocol/utils.js). */
export function isRekeying(connection: Connection): boolean {
  return (connection as unknown as KeyExchange)._protocol._kexinit !== undefined;
}

/**
 * Refuses channels whose client takes only tiny packets (RFC 4254 section 5.1): ssh2 cuts what it sends into pieces of
 * that size in one go, and into pieces of none without end.
 */
export function refuseTinyPackets(connection: Connection): void {
  const { _protocol: protocol } = connection as unknown as Opening;
  const { CHANNEL_OPEN: open } = protocol._handlers;
  protocol._handlers.CHANNEL_OPEN = (self, info) => {
    if (info.packetSize >= SMALLEST_PACKET) open(self, info);
    else protocol.channelOpenFail(info.sender, CONNECT_FAILED, `packets must hold ${SMALLEST_PACKET} bytes`);
  };
}
