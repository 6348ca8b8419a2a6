import { Readable } from 'node:stream';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TransportError } from '../../../src/kube/errors.ts';
import { jsonLines } from '../../../src/kube/watch/json-lines.ts';

async function collect(chunks: Buffer[]): Promise<unknown[]> {
  const values: unknown[] = [];
  for await (const batch of jsonLines(Readable.from(chunks, { objectMode: true }))) values.push(...batch);
  return values;
}

function split(text: string, cuts: number[]): Buffer[] {
  const bytes = Buffer.from(text);
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].toSorted((a, b) => a - b);
  return [0, ...places].map((from, index) => bytes.subarray(from, places[index] ?? bytes.length));
}

test('gives the same values wherever the stream is cut, also inside a character', async () => {
  const line = fc.record({ type: fc.string(), text: fc.string({ unit: 'grapheme' }) });
  await fc.assert(
    fc.asyncProperty(fc.array(line), fc.array(fc.nat(), { maxLength: 20 }), async (lines, cuts) => {
      const text = lines.map((value) => `${JSON.stringify(value)}\n`).join('');
      expect(await collect(split(text, cuts))).toEqual(lines);
    }),
  );
});

test.each([
  ['half a line at the end', '{"a":1}\n{"b":'],
  ['a whole line without its end', '{"a":1}\n{"b":2}'],
  ['a line that is not JSON', '{"a":1}\noops\n{"b":2}\n'],
])('fails for %s', async (_name, text) => {
  await expect(collect([Buffer.from(text)])).rejects.toBeInstanceOf(TransportError);
});

test('refuses a line without end', async () => {
  const chunk = Buffer.alloc(1024 * 1024, 'x');
  await expect(collect(Array.from({ length: 40 }, () => chunk))).rejects.toThrow('longer than');
});
