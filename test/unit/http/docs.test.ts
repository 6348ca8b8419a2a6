import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { ERRORS } from '../../../src/http/interface/errors/catalogue.ts';

it('docs/http.md has every error code, its status and what to do', () => {
  const page = readFileSync(new URL('../../../docs/http.md', import.meta.url), 'utf8');
  const table = /<!-- errors: [^>]*-->\n([^]*)<!-- \/errors -->/.exec(page)?.[1];
  const rows = Object.entries(ERRORS).map(([code, { status, help }]) => `| ${status} | \`${code}\` | ${help} |\n`);
  expect(table).toBe(`| status | code | what it says |\n|---|---|---|\n${rows.join('')}`);
});

it('docs/http.md names the versions of the generators that the tests use', () => {
  const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
  const page = read('docs/http.md');
  const [python] = /^openapi-python-client==[\d.]+/m.exec(read('test/support/generated/requirements.txt')) ?? [];
  const [, typescript] = /"oazapfts": "([\d.]+)"/.exec(read('package.json')) ?? [];
  expect(page).toContain(`pip install ${python} `);
  expect(page).toContain(`npm install oazapfts@${typescript} `);
});
