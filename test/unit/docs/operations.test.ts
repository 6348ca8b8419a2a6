import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { environment } from '../../../src/config/config.ts';

const DOCS = new URL('../../../docs/', import.meta.url);

test('every variable of the environment is listed, and no other', () => {
  const text = readFileSync(new URL('run/environment.md', DOCS), 'utf8');
  const listed = [...text.matchAll(/^\| `([A-Z_]+)` \|/gm)].map(([, name]) => name);
  expect(listed).toEqual(Object.keys(environment.shape));
});

test('every promise names tests, and every test that is named is there', () => {
  const page = new URL('build/promises.md', DOCS);
  const promises = readFileSync(page, 'utf8').match(/^- .*(?:\n {2}.*)*/gm) ?? [];
  expect(promises.length).toBeGreaterThan(30);
  for (const promise of promises) {
    const named = [...promise.matchAll(/\]\(([^)]+\.test\.ts)\):((?: "[^"]+",?)+)/g)];
    expect(named.length, promise).toBeGreaterThan(0);
    expect(named.length, promise).toBe([...promise.matchAll(/\.test\.ts\)/g)].length);
    for (const [, file = '', names = ''] of named) {
      const source = readFileSync(new URL(file, page), 'utf8');
      for (const [, name = ''] of names.matchAll(/"([^"]+)"/g)) expect(source).toContain(`'${name}'`);
    }
  }
});
