// deploy/tools/direct/frames.go has the other half: a frame is a type (1 byte), a length (3 bytes), the number of a channel
// (4 bytes) and as many bytes as the length says, all numbers big-endian.

/** What the gateway sends. */
export const TO_POD = { open: 1, input: 2, end: 3, credit: 4, resize: 5, signal: 6, close: 7, ping: 8 } as const;
/** What the pod sends. */
export const FROM_POD = {
  opened: 16,
  failed: 17,
  stdout: 18,
  stderr: 19,
  outputEnd: 20,
  inputCredit: 21,
  deaf: 22,
  exit: 23,
  pong: 24,
} as const;

const HEADER_BYTES = 8;
const EMPTY = Buffer.alloc(0);
/** Bytes of a frame that is no output: the longest is a reason. */
const MAX_CONTROL = 4096;
/** Bytes of the largest piece of an output: an SSH packet of OpenSSH. Each packet costs as much as 16 KiB of its bytes. */
const LARGEST_PIECE = 32 * 1024;

/** The pod sent what no helper sends: the connection must end. */
export class FrameError extends Error {
  override name = 'FrameError';
}

export function headerOf(type: number, channel: number, length: number): Buffer {
  const header = Buffer.allocUnsafe(HEADER_BYTES);
  header.writeUInt32BE(((type << 24) | length) >>> 0, 0);
  header.writeUInt32BE(channel, 4);
  return header;
}

export interface FrameEvents {
  /** A piece of an output: a large frame comes in several. */
  output(type: number, channel: number, bytes: Buffer): void;
  /** Any other frame, whole. */
  control(type: number, channel: number, payload: Buffer): void;
}

/**
 * Takes a byte stream apart. It keeps at most one header, and one piece of an output or one control frame. What a chunk has
 * of an output comes in one piece, however many frames it was in: each piece is work.
 */
export class FrameReader {
  readonly #events: FrameEvents;
  readonly #header = Buffer.alloc(HEADER_BYTES);
  /** Bytes of the header that are there. */
  #have = 0;
  /** Bytes of the frame that are missing. */
  #left = 0;
  /** The piece, or the control frame, that is being gathered. */
  #piece = Buffer.alloc(0);
  #gathered = 0;
  /** Outputs in the chunk that is being read, by channel and type. */
  readonly #outputs = new Map<string, { type: number; channel: number; parts: Buffer[] }>();

  constructor(events: FrameEvents) {
    this.#events = events;
  }

  /** Keeps nothing of the chunk itself. Throws {@link FrameError}, and what the events throw. */
  read(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#have < HEADER_BYTES) {
        const end = Math.min(at + HEADER_BYTES - this.#have, chunk.length);
        chunk.copy(this.#header, this.#have, at, end);
        this.#have += end - at;
        at = end;
        if (this.#have === HEADER_BYTES) this.#begin();
        continue;
      }
      const end = Math.min(at + this.#piece.length - this.#gathered, chunk.length);
      chunk.copy(this.#piece, this.#gathered, at, end);
      this.#gathered += end - at;
      at = end;
      if (this.#gathered === this.#piece.length) this.#pass();
    }
    this.#flush();
  }

  #flush(): void {
    const outputs = [...this.#outputs.values()];
    this.#outputs.clear();
    for (const { type, channel, parts } of outputs) {
      const [first = EMPTY] = parts;
      this.#events.output(type, channel, parts.length === 1 ? first : Buffer.concat(parts));
    }
  }

  #isOutput(): boolean {
    const type = this.#header[0];
    return type === FROM_POD.stdout || type === FROM_POD.stderr;
  }

  #begin(): void {
    this.#left = this.#header.readUIntBE(1, 3);
    if (!this.#isOutput() && this.#left > MAX_CONTROL) throw new FrameError('a frame of the pod is too long');
    this.#next();
    if (this.#left === 0) this.#pass();
  }

  #next(): void {
    this.#piece = Buffer.allocUnsafe(Math.min(this.#left, LARGEST_PIECE));
    this.#gathered = 0;
  }

  #pass(): void {
    const [type = 0] = this.#header;
    const channel = this.#header.readUInt32BE(4);
    const piece = this.#piece;
    this.#left -= piece.length;
    if (this.#left === 0) this.#have = 0;
    else this.#next();
    if (!this.#isOutput()) {
      this.#flush();
      this.#events.control(type, channel, piece);
      return;
    }
    if (piece.length === 0) throw new FrameError('the pod sends an output of no bytes');
    const place = `${type}/${channel}`;
    const output = this.#outputs.get(place) ?? { type, channel, parts: [] };
    output.parts.push(piece);
    this.#outputs.set(place, output);
  }
}
