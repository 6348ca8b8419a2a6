import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { environment } from '../../../src/config/config.ts';
import { READY_REASONS } from '../../../src/resources/instances/instance-state.ts';

const DOCS = new URL('../../../docs/run/', import.meta.url);
const text = readFileSync(new URL('operations.md', DOCS), 'utf8');

test('every reason of the Ready condition is listed as the code has it', () => {
  const listed = text.match(/^\| `\w+` \| \w+ \| .* \|$/gm);
  const wanted = Object.entries(READY_REASONS).map(([name, { state, help }]) => `| \`${name}\` | ${state} | ${help} |`);
  expect(listed).toEqual(wanted);
});

test('every variable of the environment is listed, and no other', () => {
  const listed = [...text.matchAll(/^\| `([A-Z_]+)` \|/gm)].map(([, name]) => name);
  expect(listed).toEqual(Object.keys(environment.shape));
});

test('every promise names tests, and every test that is named is there', () => {
  const section = /^## Promises\n(.*?)^## /ms.exec(text)?.[1] ?? '';
  const promises = section.match(/^- .*(?:\n {2}.*)*/gm) ?? [];
  expect(promises.length).toBeGreaterThanOrEqual(16);
  for (const promise of promises) {
    const named = [...promise.matchAll(/\]\(([^)]+\.test\.ts)\):((?: "[^"]+",?)+)/g)];
    expect(named.length, promise).toBeGreaterThan(0);
    expect(named.length, promise).toBe([...promise.matchAll(/\.test\.ts\)/g)].length);
    for (const [, file = '', names = ''] of named) {
      const source = readFileSync(new URL(file, DOCS), 'utf8');
      for (const [, name = ''] of names.matchAll(/"([^"]+)"/g)) expect(source).toContain(`'${name}'`);
    }
  }
});
