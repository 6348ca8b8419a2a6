import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../../../tools/lib/paths.ts';

const FOLDER = 'src/controllers/gpu-instance';
/** Only kubectl shows conditions, and only kubectl writes these fields. */
const CONDITIONS = 'conditions.ts';
const OF_KUBECTL = new Set(['hostUsers', 'runtimeClassName']);

// A message goes to each surface: who rents over HTTP, with berth or in the page has no spec to edit.
test('no message of an instance tells a renter to edit a resource of Kubernetes', () => {
  const files = globSync('**/*.ts', { cwd: join(ROOT, FOLDER) }).filter((path) => !path.endsWith(CONDITIONS));
  const lines = files.flatMap((path) =>
    readFileSync(join(ROOT, FOLDER, path), 'utf8')
      .split('\n')
      .filter((line) => !/^\s*(?:import|\} from|\*|\/\*|\/\/)/.test(line)),
  );
  const texts = lines.flatMap((line) => line.match(/'[^']*'|`[^`]*`/g) ?? []);
  expect(texts.length).toBeGreaterThan(100);
  const named = texts
    .map((text) => text.replaceAll(/\$\{[^}]*\}/g, ''))
    .filter((text) => [...text.matchAll(/\bspec\.(\w+)/g)].some(([, field = '']) => !OF_KUBECTL.has(field)));
  expect(named).toEqual([]);
});
