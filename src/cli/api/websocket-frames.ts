import { randomBytes } from 'node:crypto';

// The frames of RFC 6455, section 5.2, of a client that offers no extension. Node has a WebSocket that sends a key in a
// header from a later version on than this program runs on.

export const OPCODES = { binary: 2, close: 8, ping: 9, pong: 10 } as const;

/** Bytes of the largest frame that a server may send. */
const MOST = 1024 * 1024;

/** One frame, masked as those of a client are. */
export function frameOf(opcode: number, data: Uint8Array): Buffer {
  const { length } = data;
  const size = length < 126 ? 0 : length < 65_536 ? 2 : 8;
  const frame = Buffer.alloc(2 + size + 4 + length);
  frame[0] = 0x80 | opcode;
  frame[1] = 0x80 | (size === 0 ? length : size === 2 ? 126 : 127);
  if (size === 2) frame.writeUInt16BE(length, 2);
  if (size === 8) frame.writeBigUInt64BE(BigInt(length), 2);
  const mask = randomBytes(4);
  mask.copy(frame, 2 + size);
  for (let at = 0; at < length; at += 1) frame[6 + size + at] = (data[at] ?? 0) ^ (mask[at % 4] ?? 0);
  return frame;
}

/** Reads the messages of a server from the bytes of its connection. */
export class FrameReader {
  readonly #take: (opcode: number, data: Buffer) => void;
  #bytes: Buffer = Buffer.alloc(0);
  /** The beginning of a message that came in several frames. */
  #parts: Buffer[] = [];
  #opcode = 0;

  constructor(take: (opcode: number, data: Buffer) => void) {
    this.#take = take;
  }

  /** Throws for a frame that is too large. */
  read(chunk: Buffer): void {
    this.#bytes = this.#bytes.length === 0 ? chunk : Buffer.concat([this.#bytes, chunk]);
    while (this.#next());
  }

  #next(): boolean {
    const bytes = this.#bytes;
    if (bytes.length < 2) return false;
    const [first = 0, second = 0] = bytes;
    const short = second & 0x7f;
    const size = short < 126 ? 0 : short === 126 ? 2 : 8;
    if (bytes.length < 2 + size) return false;
    const length = size === 0 ? short : size === 2 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
    if (length > MOST) throw new Error('The server sends a frame that is too large.');
    if (bytes.length < 2 + size + length) return false;
    const data = bytes.subarray(2 + size, 2 + size + length);
    this.#bytes = bytes.subarray(2 + size + length);
    this.#message(first, data);
    return true;
  }

  /** Control frames may stand between the parts of a message. */
  #message(first: number, data: Buffer): void {
    const [isLast, opcode] = [(first & 0x80) !== 0, first & 0x0f];
    if (opcode >= OPCODES.close) return this.#take(opcode, data);
    if (opcode !== 0) this.#opcode = opcode;
    if (isLast && this.#parts.length === 0) return this.#take(this.#opcode, data);
    this.#parts.push(data);
    if (isLast) this.#take(this.#opcode, Buffer.concat(this.#parts.splice(0)));
  }
}
