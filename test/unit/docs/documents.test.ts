import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { ROOT } from '../../../tools/lib/paths.ts';
import { ROOMS } from '../house/layers.ts';

const inDocs = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' }).map((name) => `docs/${name}`);
const documents = [...inDocs, ...readdirSync(ROOT), 'charts/berth/README.md'].filter((name) => name.endsWith('.md'));

test('no document has the marks of a conflict', () => {
  expect(documents).toContain('docs/run/threat-model.md');
  const marked = documents.filter((name) => /^(<{7}|={7}|>{7})( |$)/m.test(readFileSync(join(ROOT, name), 'utf8')));
  expect(marked).toEqual([]);
});

/** The anchors of a page, made of its titles as GitHub makes them. */
function anchorsOf(text: string): Set<string> {
  const titles = [...text.replaceAll(/^ *```.*?^ *```$/gms, '').matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => title);
  const words = titles.map((title) => title.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase());
  return new Set(words.map((title) => title.replaceAll(/[^\p{L}\p{N}\p{M}\- _]/gu, '').replaceAll(' ', '-')));
}

test.each(documents)('each link of %s leads to a file, and to a title in it', (name) => {
  const text = readFileSync(join(ROOT, name), 'utf8').replaceAll(/^ *```.*?^ *```$/gms, '');
  const targets = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
  const broken = targets.filter((target) => {
    if (/^[a-z]+:/.test(target)) return false;
    const [path = '', anchor] = target.split('#');
    const file = path === '' ? join(ROOT, name) : join(ROOT, dirname(name), path);
    if (!existsSync(file)) return true;
    return anchor !== undefined && !anchorsOf(readFileSync(file, 'utf8')).has(anchor);
  });
  expect(broken).toEqual([]);
});

test('the map of CONTRIBUTING.md names every room, and no other', () => {
  const text = readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8');
  const named = [...text.matchAll(/^\| `((?:src|tools)\/[^`]+)` \|/gm)].map(([, room = '']) => room);
  expect(named.toSorted()).toEqual(Object.keys(ROOMS).toSorted());
});

test('the map of the gateway names each of its folders', () => {
  const text = readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8');
  const [, section = ''] = /^## The gateway, room by room$(.*?)^## /ms.exec(text) ?? [];
  const cells = [...section.matchAll(/^\| (`.*?`) \|/gm)].map(([, cell = '']) => cell);
  const named = cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name));
  const found = readdirSync(join(ROOT, 'src/gateway'), { recursive: true, withFileTypes: true });
  const folders = found.filter((one) => one.isDirectory()).map((one) => join(one.parentPath, one.name));
  expect(named.toSorted()).toEqual(
    ['.', ...folders.map((path) => relative(join(ROOT, 'src/gateway'), path))].toSorted(),
  );
});

test('the lists of how to add name files that are there', () => {
  const text = readFileSync(join(ROOT, 'docs/build/how-to-add.md'), 'utf8');
  const named = [...text.matchAll(/`((?:src|test|docs|tools|charts)\/[^`* ]+)`/g)].map(([, path = '']) => path);
  expect(named.length).toBeGreaterThan(15);
  expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  const lists = text.split(/^## /m).slice(1);
  expect(lists.map((list) => list.slice(0, list.indexOf('\n')))).toEqual([
    'A route',
    'A field of an instance',
    'A reason of an instance',
    'A ceiling',
    'A metric',
    'A command',
    'A model endpoint',
    'An engine quirk',
  ]);
});

describe('the threat model', () => {
  const text = readFileSync(join(ROOT, 'docs/run/threat-model.md'), 'utf8');

  it('names a test for every attack, and no attack twice', () => {
    const [attacked = ''] = text.split(/^## How soon access ends$/m);
    const rows = [...attacked.matchAll(/^\| ([^|-][^|]*) \| ([^|]+) \| ([^|]+) \|$/gm)];
    const attacks = rows.filter(([, first]) => first !== 'Attack');
    expect(attacks.length).toBeGreaterThan(40);
    expect(attacks.filter(([, , , test = '']) => !/\]\(|e2e: "/.test(test)).map(([, attack]) => attack)).toEqual([]);
    const names = attacks.map(([, attack]) => attack);
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  });

  it('names steps of the end-to-end test that are there', () => {
    const source = readFileSync(join(ROOT, 'test/e2e/release.test.ts'), 'utf8');
    const steps = [...text.matchAll(/\be2e:((?:,? "[^"]+")+)/g)].flatMap(
      ([, names]) => names?.match(/[^",]{2,}/g) ?? [],
    );
    expect(steps.length).toBeGreaterThan(8);
    expect(steps.filter((step) => !source.includes(`it('${step}`))).toEqual([]);
  });
});
