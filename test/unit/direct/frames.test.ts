import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FrameError, FrameReader, FROM_POD, headerOf } from '../../../src/direct/frames.ts';

/** What a reader makes of chunks, by channel and kind: outputs put together, as pieces say nothing. */
function readAll(chunks: readonly Uint8Array[]): Record<string, string[]> {
  const seen: Record<string, string[]> = {};
  const reader = new FrameReader({
    output: (type, channel, bytes) => {
      const all = (seen[`${type}:${channel}`] ??= ['']);
      all.push(`${all.pop()}${bytes.toString('hex')}`);
    },
    control: (type, channel, bytes) => {
      // Whatever came of an output came before it.
      for (const [place, all] of Object.entries(seen)) if (place.endsWith(`:${channel}`)) all.push('');
      (seen[`${type}:${channel}`] ??= []).push(bytes.toString('hex'));
    },
  });
  for (const chunk of chunks) reader.read(Buffer.from(chunk));
  return seen;
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

  it('gives all that a chunk has of an output in one piece, and before what follows it', () => {
    const frames = Array.from({ length: 900 }, (_, index) =>
      Buffer.concat([headerOf(FROM_POD.stdout, 1 + (index % 2), 1), Buffer.of(index % 2)]),
    );
    const seen: string[] = [];
    const reader = new FrameReader({
      output: (_type, channel, bytes) => seen.push(`${channel}: ${bytes.length} of ${bytes[0]}`),
      control: (_type, channel) => seen.push(`${channel} ends`),
    });
    reader.read(Buffer.concat([...frames, headerOf(FROM_POD.outputEnd, 1, 0), ...frames.slice(0, 2)]));
    expect(seen).toEqual(['1: 450 of 0', '2: 450 of 1', '1 ends', '1: 1 of 0', '2: 1 of 1']);
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
