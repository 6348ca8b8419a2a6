import { createCipheriv, randomFillSync, type CipherGCMTypes } from 'node:crypto';

/** What ssh2 seals its packets with: AESGCMCipherNative of lib/protocol/crypto.js. */
export interface GcmCipher {
  _encSSLName: CipherGCMTypes;
  _encKey: Buffer;
  /** The nonce: 4 bytes that stay, and 8 that count packets (RFC 5647 section 7.1). */
  _encIV: Buffer;
  _dead: boolean;
  outSeqno: number;
  _onWrite(bytes: Buffer): void;
}

const CHANNEL_DATA = 94;
/** Bytes of the packet's length, which is not encrypted. */
const LENGTH_BYTES = 4;
/** Up to the data: the length, the length of the padding, the message, the channel and the length of the data. */
const HEAD_BYTES = LENGTH_BYTES + 1 + 1 + 4 + 4;
const BLOCK_BYTES = 16;
const TAG_BYTES = 16;
const LEAST_PADDING = 4;

const random = Buffer.alloc(4096);
let randomUsed = random.length;

/** Bytes for padding, from a supply: to ask the system for each packet's costs as much as to encrypt 16 KiB. */
function padding(bytes: number): Buffer {
  if (randomUsed + bytes > random.length) {
    randomFillSync(random);
    randomUsed = 0;
  }
  randomUsed += bytes;
  return random.subarray(randomUsed - bytes, randomUsed);
}

export function countUp(nonce: Buffer): void {
  const low = (nonce.readUInt32BE(8) + 1) >>> 0;
  nonce.writeUInt32BE(low, 8);
  if (low === 0) nonce.writeUInt32BE((nonce.readUInt32BE(4) + 1) >>> 0, 4);
}

/**
 * Sends SSH_MSG_CHANNEL_DATA (RFC 4254 section 5.2), sealed as RFC 5647 says. The bytes are the same as ssh2's, which first
 * copies the data into a packet. That copy would cost half as much again as all the rest of a large copy through the
 * gateway, because the memory for it has left the processor's cache each time.
 */
export function sendData(cipher: GcmCipher, channel: number, data: Buffer): void {
  if (cipher._dead) return;
  const unpadded = HEAD_BYTES - LENGTH_BYTES + data.length;
  let padded = BLOCK_BYTES - (unpadded % BLOCK_BYTES);
  if (padded < LEAST_PADDING) padded += BLOCK_BYTES;
  const head = Buffer.allocUnsafe(HEAD_BYTES);
  head.writeUInt32BE(unpadded + padded, 0);
  head.writeUInt8(padded, 4);
  head.writeUInt8(CHANNEL_DATA, 5);
  head.writeUInt32BE(channel, 6);
  head.writeUInt32BE(data.length, 10);
  const seal = createCipheriv(cipher._encSSLName, cipher._encKey, cipher._encIV);
  seal.setAAD(head.subarray(0, LENGTH_BYTES));
  seal.update(head.subarray(LENGTH_BYTES)).copy(head, LENGTH_BYTES);
  cipher._onWrite(head);
  cipher._onWrite(seal.update(data));
  const tail = Buffer.allocUnsafe(padded + TAG_BYTES);
  seal.update(padding(padded)).copy(tail);
  seal.final();
  seal.getAuthTag().copy(tail, padded);
  cipher._onWrite(tail);
  countUp(cipher._encIV);
  cipher.outSeqno = (cipher.outSeqno + 1) >>> 0;
}
