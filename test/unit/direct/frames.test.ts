import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FrameError, FrameReader, FROM_POD, headerOf } from '../../../src/direct/frames.ts';

/** What a reader makes of chunks: outputs put together, as pieces say nothing. */
function readAll(chunks: readonly Uint8Array[]): string[] {
  const seen: { key: string; bytes: Buffer; whole: boolean }[] = [];
  const reader = new FrameReader({
    output: (type, channel, bytes) => {
      const last = seen.at(-1);
      const key = `${type}:${channel}`;
      if (last?.key === key && !last.whole) last.bytes = Buffer.concat([last.bytes, bytes]);
      else seen.push({ key, bytes, whole: false });
    },
    control: (type, channel, bytes) => seen.push({ key: `${type}:${channel}`, bytes, whole: true }),
  });
  for (const chunk of chunks) reader.read(Buffer.from(chunk));
  return seen.map(({ key, bytes }) => `${key}:${bytes.toString('hex')}`);
}

const frame = fc.record({
  type: fc.constantFrom(...Object.values(FROM_POD)),
  channel: fc.integer({ min: 0, max: 0xffffffff }),
  payload: fc.uint8Array({ minLength: 1, maxLength: 300 }),
});

describe('FrameReader', () => {
  it('reads the same however the bytes are cut', () => {
    const cuts = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 8 }), cuts, (frames, sizes) => {
        const all = Buffer.concat(
          frames.map(({ type, channel, payload }) => Buffer.concat([headerOf(type, channel, payload.length), payload])),
        );
        const pieces: Buffer[] = [];
        for (let at = 0, turn = 0; at < all.length; turn += 1) {
          const size = sizes[turn % sizes.length] ?? 1;
          pieces.push(all.subarray(at, at + size));
          at += size;
        }
        expect(readAll(pieces)).toEqual(readAll([all]));
      }),
    );
  });

  it('refuses a control frame that would fill the memory', () => {
    expect(() => readAll([headerOf(FROM_POD.failed, 1, 4097)])).toThrow(FrameError);
    expect(() => readAll([headerOf(FROM_POD.stdout, 1, 0xffffff)])).not.toThrow();
  });

  it('of any bytes throws nothing else', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 5000 }), { maxLength: 3 }), (chunks) => {
        try {
          readAll(chunks);
        } catch (error) {
          expect(error).toBeInstanceOf(FrameError);
        }
      }),
    );
  });
});
