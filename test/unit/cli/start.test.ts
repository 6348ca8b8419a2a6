import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from '../../../tools/lib/paths.ts';

/** The files that are loaded before the first line of a command runs. */
function loadedWith(path: string, found = new Set<string>()): Set<string> {
  if (found.has(path)) return found;
  found.add(path);
  const text = readFileSync(join(ROOT, path), 'utf8');
  for (const [, from = ''] of text.matchAll(/^(?:import|export) (?!type\b)[^;]*?'(\.[^']+)';/gms)) {
    loadedWith(join(dirname(path), from), found);
  }
  return found;
}

it('a command loads what it needs and no other command, so that it starts at once', () => {
  const loaded = [...loadedWith('src/cli/berth.ts')];
  expect(loaded).toContain('src/cli/main.ts');
  expect(loaded.filter((path) => /\/(commands|table|rent|kube)\//.test(path))).toEqual([]);
});
