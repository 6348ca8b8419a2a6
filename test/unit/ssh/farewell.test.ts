import { text } from 'node:stream/consumers';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { farewellFilter } from '../../../src/ssh/session/farewell.ts';

async function through(word: string, chunks: readonly string[]): Promise<{ passed: string; heard: number }> {
  let heard = 0;
  const filter = farewellFilter(word, () => {
    heard += 1;
  });
  for (const chunk of chunks) filter.write(chunk);
  filter.end();
  return { passed: await text(filter), heard };
}

describe('farewellFilter', () => {
  it('takes the word out wherever chunks break it', async () => {
    const part = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(part, part, fc.array(fc.nat(40), { maxLength: 6 }), async (before, after, cuts) => {
        const word = 'abXab';
        const whole = `${before}${word}${after}`;
        const edges = [0, ...cuts.map((cut) => Math.min(cut, whole.length)).toSorted((a, b) => a - b), whole.length];
        const chunks = edges.slice(1).map((edge, index) => whole.slice(edges[index], edge));
        expect(await through(word, chunks)).toEqual({ passed: before + after, heard: 1 });
      }),
    );
  });

  it('keeps back nothing at the end', async () => {
    expect(await through('goodbye', ['said good', 'b'])).toEqual({ passed: 'said goodb', heard: 0 });
  });
});
