import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../../../tools/lib/paths.ts';

const FOLDER = join(ROOT, 'docs/decisions');
const pages = readdirSync(FOLDER).filter((name) => /^\d{4}-/.test(name));
const index = readFileSync(join(FOLDER, 'README.md'), 'utf8');
const rows = [...index.matchAll(/^\| [^|]+ \| \[(\d{4})\]\(([^)]+)\) [^|]+ \| [^|]+ \|$/gm)];

test('the index has every decision once, under its number', () => {
  expect(rows.map(([, , page = '']) => page).toSorted()).toEqual(pages.toSorted());
  expect(rows.filter(([, number = '', page]) => page?.startsWith(number) !== true)).toEqual([]);
});

test('the index says why a number is missing', () => {
  const numbers = pages.map((name) => Number(name.slice(0, 4)));
  const missing = Array.from({ length: Math.max(...numbers) }, (_, at) => at + 1).filter(
    (one) => !numbers.includes(one),
  );
  expect(missing.length).toBeGreaterThan(0);
  for (const number of missing) expect(index).toContain(`number ${String(number).padStart(4, '0')}`);
});
