import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../../../tools/lib/paths.ts';
import { ROOMS } from '../house/layers.ts';

const text = readFileSync(join(ROOT, 'docs/build/architecture.md'), 'utf8');

function sections(): Map<string, string> {
  const parts = text.split(/^## /m).slice(1);
  return new Map(parts.map((part) => [part.slice(0, part.indexOf('\n')), part]));
}

test('every file that is named is there', () => {
  const named = [...text.matchAll(/`(src\/[^`]+|tools\/[^`]+)`/g)].map(([, path = '']) => path);
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

test.each(['A rental', 'A model call', 'A login'])('%s is a walk through files, in numbered steps', (name) => {
  const steps = sections()
    .get(name)
    ?.split(/^(?=\d+\. )/m)
    .slice(1);
  expect(steps?.length).toBeGreaterThan(4);
  for (const [index, step] of (steps ?? []).entries()) {
    expect(step).toMatch(new RegExp(`^${index + 1}\\. `));
    expect(step).toMatch(/`src\/[^`]+\.ts`/);
  }
});

test('the picture shows the rooms at the top of src and tools, and no others', () => {
  const svg = readFileSync(join(ROOT, 'docs/pictures/rooms.svg'), 'utf8');
  const shown = [...svg.matchAll(/class="box[^>]*>\s*<text class="t"[^>]*>([^<]+)</g)].map(([, name = '']) => name);
  const tops = Object.keys(ROOMS).map((room) => room.split('/').slice(0, 2).join('/'));
  const rooms = [...new Set(tops)].filter((room) => room !== 'tools/bootstrap.mjs');
  expect(shown.toSorted()).toEqual(rooms.map((room) => room.replace('src/', '')).toSorted());
});
