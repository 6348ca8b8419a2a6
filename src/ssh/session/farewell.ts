import { Transform, type TransformCallback } from 'node:stream';

/** How many bytes at the end of `bytes` could be the beginning of `word`. */
function beginning(bytes: Buffer, word: Buffer): number {
  for (let length = Math.min(bytes.length, word.length - 1); length > 0; length -= 1) {
    if (bytes.subarray(bytes.length - length).equals(word.subarray(0, length))) return length;
  }
  return 0;
}

/**
 * Passes everything on but the word, wherever chunks break it, and calls back when it has come by. Bytes that could be
 * its beginning wait for the next chunk.
 */
export function farewellFilter(word: string, heard: () => void): Transform {
  const pattern = Buffer.from(word);
  let held = Buffer.alloc(0);
  let done = false;
  return new Transform({
    transform: (chunk: Buffer, _encoding: BufferEncoding, next: TransformCallback) => {
      if (done) {
        next(null, chunk);
        return;
      }
      const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
      const at = bytes.indexOf(pattern);
      if (at < 0) {
        const keep = beginning(bytes, pattern);
        held = Buffer.from(bytes.subarray(bytes.length - keep));
        next(null, bytes.subarray(0, bytes.length - keep));
        return;
      }
      done = true;
      held = Buffer.alloc(0);
      heard();
      next(null, Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + pattern.length)]));
    },
    flush: (next) => next(null, held),
  });
}
