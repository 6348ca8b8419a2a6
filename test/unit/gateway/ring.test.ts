import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hash32 } from '../../../src/gateway/balance/hash.ts';
import { buildRing, LOAD_BOUND, pickBounded } from '../../../src/gateway/balance/ring.ts';

const everyone = (): boolean => true;

function names(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `pod-${index}`);
}

describe('hash32', () => {
  it('spreads near-identical texts evenly', () => {
    const buckets = Array.from({ length: 16 }, () => 0);
    for (let index = 0; index < 16_000; index += 1) {
      const bucket = hash32(`prompt ${index}`) >>> 28;
      buckets[bucket] = (buckets[bucket] ?? 0) + 1;
    }
    for (const count of buckets) expect(Math.abs(count - 1000)).toBeLessThan(150);
  });

  it('depends on every code unit and on the length', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, maxLength: 64 }), fc.nat(), (text, at) => {
        const index = at % text.length;
        const changed = `${text.slice(0, index)}${String.fromCharCode(text.charCodeAt(index) ^ 1)}${text.slice(index + 1)}`;
        expect(hash32(changed)).not.toBe(hash32(text));
        expect(hash32(`${text}\0`)).not.toBe(hash32(text));
      }),
    );
  });
});

describe('bounded-load consistent hashing', () => {
  it('never fills an endpoint above 1.25 times the average', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 9 }),
        fc.array(fc.nat(3), { minLength: 1, maxLength: 300 }),
        (count, keys) => {
          const ring = buildRing(names(count));
          const loads = Array.from({ length: count }, () => 0);
          for (const [sent, key] of keys.entries()) {
            // Few distinct keys: the bound is for prefixes that many calls share.
            const index = pickBounded(ring, hash32(`key ${key}`), loads, everyone);
            expect(index).toBeGreaterThanOrEqual(0);
            loads[index] = (loads[index] ?? 0) + 1;
            expect(loads[index]).toBeLessThanOrEqual(Math.ceil(((sent + 1) / count) * LOAD_BOUND));
          }
        },
      ),
    );
  });

  it('sends one key to one endpoint while there is room', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), fc.nat(), (count, key) => {
        const ring = buildRing(names(count));
        const idle = Array.from({ length: count }, () => 0);
        expect(pickBounded(ring, key, idle, everyone)).toBe(pickBounded(ring, key, idle, everyone));
      }),
    );
  });

  it('moves only keys to a new endpoint that it takes over, about its share', () => {
    for (const count of [2, 5, 9]) {
      const before = buildRing(names(count));
      const after = buildRing(names(count + 1));
      let moved = 0;
      for (let index = 0; index < 4000; index += 1) {
        const key = hash32(`conversation ${index}`);
        const old = pickBounded(
          before,
          key,
          Array.from({ length: count }, () => 0),
          everyone,
        );
        const now = pickBounded(
          after,
          key,
          Array.from({ length: count + 1 }, () => 0),
          everyone,
        );
        if (now === old) continue;
        expect(now).toBe(count);
        moved += 1;
      }
      expect(Math.abs((moved / 4000) * (count + 1) - 1)).toBeLessThan(0.3);
    }
  });

  it('picks only allowed endpoints, and -1 when none is', () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { minLength: 1, maxLength: 10 }), fc.nat(), (allowed, key) => {
        const ring = buildRing(names(allowed.length));
        const loads = allowed.map(() => 0);
        const index = pickBounded(ring, key, loads, (index) => allowed[index] === true);
        expect(index === -1 ? !allowed.includes(true) : allowed[index]).toBe(true);
      }),
    );
  });
});
