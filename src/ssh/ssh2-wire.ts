import type { Connection } from 'ssh2';

/** The one message that ssh2 can send but offers no method for (lib/protocol/Protocol.js, 1.17). */
interface Wire {
  _protocol: { _banner: string | undefined; serviceAccept(service: string): void } & WirePackets;
}

interface WirePackets {
  _packetRW: { write: { allocStart: number; alloc(length: number): Buffer; finalize(packet: Buffer): Buffer } };
  _cipher: { encrypt(packet: Buffer): void };
}

const USERAUTH_BANNER = 53;

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
