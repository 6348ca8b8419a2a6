import { expect, it } from 'vitest';
import { retryAfterMs } from '../../../src/lib/retry-after.ts';

const NOW = Date.UTC(2026, 0, 1);

it.each([
  ['7', 7000],
  ['0', 0],
  ['Thu, 01 Jan 2026 00:00:30 GMT', 30_000],
  ['Wed, 31 Dec 2025 23:59:00 GMT', 0],
])('reads a Retry-After of %s', (header, ms) => {
  expect(retryAfterMs(header, NOW)).toBe(ms);
  expect(retryAfterMs([header], NOW)).toBe(ms);
});

it.each([undefined, '', '1.5', '-5', 'soon', '9'.repeat(400)])('ignores a Retry-After of %s', (header) => {
  expect(retryAfterMs(header, NOW)).toBeUndefined();
});
