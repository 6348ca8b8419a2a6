import fc from 'fast-check';
import { expect, it } from 'vitest';
import { UsageInPieces } from '../../../../src/gateway/dialects/stream/usage-in-pieces.ts';

const sizes = fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1 }).filter((all) => all.some((size) => size > 0));

function read(json: string, cuts: readonly number[]): unknown {
  const found = new UsageInPieces();
  const bytes = Buffer.from(json);
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = cuts[turn % cuts.length] ?? 1;
    found.push(bytes.subarray(at, at + size));
    at += size;
  }
  return found.usage;
}

it('the usage of a response is found among any other members, wherever its event is cut', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.string(), fc.jsonValue(), sizes, (before, text, after, cuts) => {
      const usage = { input_tokens: 1, details: { text, list: [{}] } };
      const response = { before, [`usage${text}x`]: before, text, usage, user: 'usage', after, fake: { usage: after } };
      const event = JSON.stringify({ type: 'response.completed', usage: { fake: 1 }, response, sequence_number: 1 });
      expect(read(`event: response.completed\ndata: ${event}\n\n`, cuts)).toEqual(usage);
    }),
    { numRuns: 300 },
  );
});

it('what is no object, or longer than any usage, is none', () => {
  for (const usage of [null, 'usage', [{ input_tokens: 1 }], { long: 'x'.repeat(5000) }])
    expect(read(JSON.stringify({ response: { usage, id: 'r' } }), [7])).toBeUndefined();
});
