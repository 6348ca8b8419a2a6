import fc from 'fast-check';
import { expect, it } from 'vitest';
import { SseReader } from '../../../../src/gateway/dialects/stream/sse-reader.ts';

function readerOf() {
  const events: string[] = [];
  return { events, reader: new SseReader((data) => events.push(data)) };
}

it('reads the same events wherever the bytes are cut', () => {
  const stream = Buffer.from(': hi\n\ndata: {"a":"ü😀"}\r\n\r\nevent: x\ndata:1\ndata: 2\n\n\n\ndata: last');
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1 }), (sizes) => {
      const { events, reader } = readerOf();
      for (let at = 0, turn = 0; at < stream.length; turn++) {
        const size = sizes[turn % sizes.length] ?? 1;
        reader.push(stream.subarray(at, at + size));
        at += size;
      }
      reader.end();
      expect(events).toEqual(['{"a":"ü😀"}', '1\n2', 'last']);
    }),
  );
});

it('reads a long line that comes in small pieces once', () => {
  const { events, reader } = readerOf();
  const most = 12 * 2 ** 20;
  const piece = Buffer.from('yy');
  reader.push(Buffer.from(`data: ${'x'.repeat(most)}`));
  const before = performance.now();
  for (let count = 0; count < 2000; count++) reader.push(piece);
  expect(performance.now() - before).toBeLessThan(5000);
  reader.push(Buffer.from('\n\n'));
  expect(events.map((data) => data.length)).toEqual([most + 4000]);
  expect(events[0]?.slice(-4001)).toBe(`x${'y'.repeat(4000)}`);
});

it('gives up a line without end', () => {
  const { reader } = readerOf();
  const chunk = Buffer.alloc(2 ** 20, 'x');
  for (let count = 0; count < 16; count++) reader.push(chunk);
  expect(() => reader.push(chunk)).toThrow('an event that is too long');
});

it.each([
  ['short lines', 'data:a\n', 4096],
  ['long lines', `data:${'a'.repeat(2 ** 20)}\n`, 15],
])('an event of ever more %s is given up', (_kind, line, most) => {
  const { events, reader } = readerOf();
  const push = (): void => reader.push(Buffer.from(line));
  for (let count = 0; count < most; count++) push();
  expect(push).toThrow('an event that is too long');
  expect(events).toEqual([]);
});

it('reads any number of short events', () => {
  const { events, reader } = readerOf();
  for (let count = 0; count < 3000; count++) reader.push(Buffer.from('data:a\ndata:b\n\n'));
  expect(events).toHaveLength(3000);
});
