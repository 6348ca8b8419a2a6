import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { previousChart, versionBefore } from '../../../tools/release/kept-charts.ts';

test('the version before is the newest older one, and itself when there is none', () => {
  expect(versionBefore('0.10.0', ['0.9.0', '0.2.11', '0.10.0', '0.11.0'])).toBe('0.9.0');
  expect(versionBefore('1.0.0', ['0.10.0', '0.9.12'])).toBe('0.10.0');
  expect(versionBefore('0.1.0', ['0.1.0'])).toBe('0.1.0');
});

test('there is a package to upgrade from', () => {
  expect(existsSync(previousChart())).toBe(true);
});
