import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

it('docs/use/http.md names the versions of the generators that the tests use', () => {
  const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
  const page = read('docs/use/http.md');
  const [python] = /^openapi-python-client==[\d.]+/m.exec(read('test/support/generated/requirements.txt')) ?? [];
  const [, typescript] = /"oazapfts": "([\d.]+)"/.exec(read('package.json')) ?? [];
  expect(page).toContain(`pip install ${python} `);
  expect(page).toContain(`npm install oazapfts@${typescript} `);
});
