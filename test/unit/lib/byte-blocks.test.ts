import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ByteBlocks } from '../../../src/lib/byte-blocks.ts';
import { cpuTime } from '../../support/cpu-time.ts';

it('keeps all bytes in order, however they come', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 3000 }), { maxLength: 20 }), (pieces) => {
      const blocks = new ByteBlocks();
      for (const piece of pieces) blocks.add(piece);
      const all = Buffer.concat(pieces);
      expect([blocks.size, blocks.kept <= 2 * all.length + 1024]).toEqual([all.length, true]);
      expect(blocks.take().equals(all)).toBe(true);
      expect([blocks.size, blocks.kept, blocks.take().length]).toEqual([0, 0, 0]);
    }),
  );
});

it('takes no more memory for bytes that come one by one, and time by their number', async () => {
  const blocks = new ByteBlocks();
  const all = Buffer.alloc(4 * 2 ** 20, 'x');
  const add = (): void => {
    for (let at = 0; at < all.length; at += 1) blocks.add(all.subarray(at, at + 1));
  };
  expect(await cpuTime(add)).toBeLessThan(5000);
  expect(blocks.kept).toBeLessThan(all.length + 2 ** 19);
});
