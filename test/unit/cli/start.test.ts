import { readdirSync, readFileSync } from 'node:fs';
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
  expect(loaded.filter((path) => /\/(commands|table|rent|run|kube)\//.test(path))).toEqual([]);
});

it('no start loads what takes the longest of Node: cryptography, and HTTP with TLS', () => {
  const slow = /^import (?!type\b)[^;]*?'node:(crypto|http|https|tls)';/gm;
  const texts = [...loadedWith('src/cli/berth.ts'), ...loadedWith('src/cli/help.ts'), 'src/cli/api/transport.ts'];
  const found = texts.flatMap((path) => {
    return [...readFileSync(join(ROOT, path), 'utf8').matchAll(slow)].map(([line]) => `${path}: ${line}`);
  });
  expect(found).toEqual([]);
});

it('nothing imports HTTP without TLS, whose exports load a client of WebSockets', () => {
  const files = readdirSync(join(ROOT, 'src/cli'), { recursive: true, encoding: 'utf8' });
  const found = files
    .filter((name) => name.endsWith('.ts'))
    .filter((name) =>
      /import\('node:http'\)|^import (?!type\b)[^;]*?'node:http';/m.test(
        readFileSync(join(ROOT, 'src/cli', name), 'utf8'),
      ),
    );
  expect(found).toEqual([]);
});
