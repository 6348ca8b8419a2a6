import { NO_TURN, PIECE_BYTES, type Turn } from '../../lib/byte-turns.ts';
import type { ChannelSocket } from './websocket.ts';

// kubectl writes frames of 32 KiB. Chunks that queue up while a frame is under way become one frame: fewer frames cost
// every hop less, and 128 KiB still lets other streams in between.
const MAX_FRAME = 128 * 1024;

type Done = (error?: Error | null) => void;

/** The parts of the next frame: whole chunks as long as they fit, and a piece of one that does not. */
function take(queue: Buffer[]): Buffer[] {
  const parts: Buffer[] = [];
  let room = MAX_FRAME;
  while (room > 0 && queue[0] !== undefined) {
    const head = queue[0].subarray(0, room);
    if (head.length < queue[0].length) queue[0] = queue[0].subarray(head.length);
    else queue.shift();
    room -= head.length;
    parts.push(head);
  }
  return parts;
}

/**
 * The writing half of a stream on one channel. One frame is in flight at a time, and the next waits for the turn of its
 * tenant: that is the back-pressure.
 */
export function channelWrites(channel: number, send: ChannelSocket['send'], turn: Turn = NO_TURN) {
  const writeAll = (all: Buffer[], done: Done): void => {
    const chunks = all.filter(({ length }) => length > 0);
    const next = (error?: Error): void => {
      if (error !== undefined || chunks.length === 0) return done(error);
      const parts = take(chunks);
      const bytes = parts.reduce((sum, { length }) => sum + length, PIECE_BYTES);
      send(channel, parts, (failure) => (failure === undefined ? turn.pass(bytes, next) : done(failure)));
    };
    next();
  };
  return {
    write: (chunk: Buffer, _encoding: BufferEncoding, done: Done) => writeAll([chunk], done),
    writev: (chunks: { chunk: Buffer }[], done: Done) =>
      writeAll(
        chunks.map(({ chunk }) => chunk),
        done,
      ),
  };
}
