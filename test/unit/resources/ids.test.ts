import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hashToken, mintToken } from '../../../src/resources/api-key.ts';
import { idempotentName, newInstanceName, numericId, offerId } from '../../../src/resources/ids.ts';
import { templateHash } from '../../../src/resources/instance-template.ts';
import { parseDuration } from '../../../src/resources/schema.ts';

describe('identifiers', () => {
  it('names instances i- and 12 base32 characters', () => {
    expect(newInstanceName()).toMatch(/^i-[a-z2-7]{12}$/);
    expect(new Set(Array.from({ length: 1000 }, newInstanceName)).size).toBe(1000);
  });

  it('derives the same name from the same idempotency key, and another in another tenant', () => {
    const secret = Buffer.alloc(32, 1);
    const name = (namespace: string, key: string) => idempotentName('i', namespace, key, secret);
    expect(name('a', 'k')).toBe(name('a', 'k'));
    expect(name('a', 'k')).not.toBe(name('b', 'k'));
    expect(name('a', 'bk')).not.toBe(name('ab', 'k'));
    expect(name('a', 'k')).not.toBe(idempotentName('i', 'a', 'k', Buffer.alloc(32, 2)));
  });

  it('makes numeric ids that JSON carries exactly', () => {
    fc.assert(
      fc.property(fc.uuid(), (uid) => {
        const id = numericId(uid);
        return id > 0 && id < 2 ** 48 && JSON.parse(JSON.stringify(id)) === id;
      }),
    );
  });

  it('makes positive 31-bit offer ids that differ with every part', () => {
    const base = { pool: 'p', resourceName: 'nvidia.com/gpu', product: 'H100', memoryMb: 81559, gpuCount: 1 };
    const id = offerId(base);
    expect(id).toBeGreaterThan(0);
    expect(id).toBeLessThan(2 ** 31);
    expect(offerId({ ...base })).toBe(id);
    for (const change of [{ pool: 'q' }, { product: 'A100' }, { memoryMb: 1 }, { gpuCount: 2 }, { gpuShare: '1/2' }])
      expect(offerId({ ...base, ...change })).not.toBe(id);
  });
});

/** What a secret scanner checks. */
function isWellFormedToken(text: string): boolean {
  if (!/^berth_[A-Za-z0-9_-]{43}[0-9a-f]{6}$/.test(text)) return false;
  return createHash('sha256').update(text.slice(0, -6)).digest('hex').startsWith(text.slice(-6));
}

describe('tokens', () => {
  it('carry a recognisable prefix, 256 bits and a checksum', () => {
    const { token, hash, prefix } = mintToken();
    expect(token).toMatch(/^berth_[A-Za-z0-9_-]{43}[0-9a-f]{6}$/);
    expect(token.startsWith(prefix)).toBe(true);
    expect(hashToken(token)).toBe(hash);
    expect(isWellFormedToken(token)).toBe(true);
  });

  it('are refused after any change of one character', () => {
    const { token } = mintToken();
    fc.assert(
      fc.property(fc.nat(token.length - 1), fc.constantFrom('A', 'b', '7', '_'), (at, character) => {
        const changed = token.slice(0, at) + character + token.slice(at + 1);
        return changed === token || !isWellFormedToken(changed);
      }),
    );
  });
});

describe('template hash', () => {
  it('depends on content only', () => {
    const a = templateHash({ displayName: 'a', image: 'x', diskGb: 5 });
    expect(templateHash({ diskGb: 5, image: 'x', displayName: 'b' })).toBe(a);
    expect(templateHash({ displayName: 'a', image: 'x', diskGb: 6 })).not.toBe(a);
  });
});

describe('durations', () => {
  it('reads what Go writes', () => {
    expect(parseDuration('1h30m')).toBe(5_400_000);
    expect(parseDuration('1.5h')).toBe(5_400_000);
    expect(parseDuration('45s')).toBe(45_000);
    expect(() => parseDuration('soon')).toThrow(/not a duration/);
    expect(() => parseDuration('')).toThrow(RangeError);
  });
});
