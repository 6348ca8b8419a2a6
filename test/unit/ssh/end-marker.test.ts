import { text } from 'node:stream/consumers';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EndMarkerFilter } from '../../../src/ssh/session/end-marker.ts';

async function through(marker: string, chunks: readonly string[]): Promise<{ passed: string; ends: number }> {
  let ends = 0;
  const filter = new EndMarkerFilter(marker, () => {
    ends += 1;
  });
  for (const chunk of chunks) filter.write(chunk);
  filter.end();
  return { passed: await text(filter), ends };
}

describe('EndMarkerFilter', () => {
  it('takes the marker out wherever chunks break it', async () => {
    const part = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(part, part, fc.array(fc.nat(40), { maxLength: 6 }), async (before, after, cuts) => {
        const marker = 'abXab';
        const whole = `${before}${marker}${after}`;
        const edges = [0, ...cuts.map((cut) => Math.min(cut, whole.length)).toSorted((a, b) => a - b), whole.length];
        const chunks = edges.slice(1).map((edge, index) => whole.slice(edges[index], edge));
        expect(await through(marker, chunks)).toEqual({ passed: before + after, ends: 1 });
      }),
    );
  });

  it('keeps back nothing at the end', async () => {
    expect(await through('goodbye', ['said good', 'b'])).toEqual({ passed: 'said goodb', ends: 0 });
  });
});
