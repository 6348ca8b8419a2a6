import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { ERRORS } from '../../../src/http/errors/catalogue.ts';

it('docs/http.md has every error code, its status and what to do', () => {
  const page = readFileSync(new URL('../../../docs/http.md', import.meta.url), 'utf8');
  const table = /<!-- errors: [^>]*-->\n([^]*)<!-- \/errors -->/.exec(page)?.[1];
  const rows = Object.entries(ERRORS).map(([code, { status, help }]) => `| ${status} | \`${code}\` | ${help} |\n`);
  expect(table).toBe(`| status | code | what it says |\n|---|---|---|\n${rows.join('')}`);
});
