import { expect, test } from 'vitest';
import { retryAfterMs } from '../../../src/lib/retry-after.ts';

const NOW = Date.parse('2026-11-22T12:00:00Z');
const DAY = 86_400_000;

test.each<[header: string | string[] | undefined, ms: number | undefined]>([
  ['0', 0],
  ['7', 7_000],
  [' 7 ', 7_000],
  ['0.5', 500],
  [['3', '9'], 3_000],
  ['3600', 3_600_000],
  ['90000', DAY],
  ['9'.repeat(400), DAY],
  ['Sun, 22 Nov 2026 12:00:30 GMT', 30_000],
  ['Sunday, 22-Nov-26 12:00:30 GMT', 30_000],
  ['Sun, 22 Nov 2026 11:00:00 GMT', 0],
  ['Mon, 22 Nov 2100 11:00:00 GMT', DAY],
  [undefined, undefined],
  [[], undefined],
  ['', undefined],
  ['soon', undefined],
  ['-5', undefined],
  ['+5', undefined],
  ['1e3', undefined],
  ['0x10', undefined],
  ['NaN', undefined],
  ['Infinity', undefined],
  ['May', undefined],
  ['2026', 2_026_000],
  ['2026-11-22T12:00:30Z', undefined],
  ['Sun, sometime', undefined],
])('Retry-After %j asks for %j ms', (header, ms) => {
  expect(retryAfterMs(header, NOW)).toBe(ms);
});
