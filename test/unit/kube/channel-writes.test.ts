import { Writable } from 'node:stream';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { channelWrites } from '../../../src/kube/streams/channel-writes.ts';

const KIB = 1024;

/** A stream onto frames that are sent when the test says so. */
function stream() {
  const frames: Buffer[] = [];
  let release: (() => void) | undefined;
  const send = (_channel: number, parts: readonly Uint8Array[], done: () => void): void => {
    frames.push(Buffer.concat(parts));
    release = done;
  };
  const writable = new Writable({ highWaterMark: 1024 * KIB, ...channelWrites(0, send) });
  const sendAll = (): void => {
    for (let next = release; next !== undefined; next = release) {
      release = undefined;
      next();
    }
  };
  return { writable, frames, sendAll };
}

it('sends what queued up behind a frame as one, up to 128 KiB', async () => {
  const { writable, frames, sendAll } = stream();
  for (let count = 0; count < 10; count += 1) writable.write(Buffer.alloc(32 * KIB, count));
  expect(frames.map(({ length }) => length / KIB)).toEqual([32]);
  sendAll();
  await new Promise(setImmediate);
  sendAll();
  expect(frames.map(({ length }) => length / KIB)).toEqual([32, 128, 128, 32]);
});

it('keeps every byte in order, whatever is written', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(300 * KIB), { maxLength: 8 }), async (lengths) => {
      const { writable, frames, sendAll } = stream();
      const chunks = lengths.map((length, index) => Buffer.alloc(length, index + 1));
      for (const chunk of chunks) writable.write(chunk);
      for (let turn = 0; turn < 4; turn += 1) {
        sendAll();
        await new Promise(setImmediate);
      }
      expect(Buffer.concat(frames).equals(Buffer.concat(chunks))).toBe(true);
      expect(frames.every(({ length }) => length > 0 && length <= 128 * KIB)).toBe(true);
    }),
    { numRuns: 30 },
  );
});
