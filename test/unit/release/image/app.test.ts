import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { run } from '../../../../tools/lib/shell.ts';
import { ROOT } from '../../../../tools/lib/paths.ts';
import { GUIDES } from '../../../../src/http/server/openapi/guides.ts';
import { appEntries } from '../../../../tools/release/image/app.ts';

const compiled = await mkdtemp(join(tmpdir(), 'berth-app-'));

afterAll(() => rm(compiled, { recursive: true }));

test('the image has every file of src, compiled or as it is, and nothing of tools or tests', async () => {
  const tsc = join(ROOT, 'node_modules/.bin/tsc');
  const { code, stdout } = await run(tsc, ['-p', 'tsconfig.build.json', '--outDir', compiled], { cwd: ROOT });
  expect(code, stdout).toBe(0);
  const source = await readdir(join(ROOT, 'src'), { recursive: true, withFileTypes: true });
  const shipped = source
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(join(ROOT, 'src').length + 1))
    // The page is in the image as one bundle.
    .filter((path) => !path.startsWith('web/page/'));
  const entries = await appEntries({ root: ROOT, compiled, packages: [] });
  const names = entries.map(({ name }) => name).filter((name) => name.startsWith('app/'));
  const programs = shipped.map((path) => `app/${path.replace(/\.ts$/, '.js')}`);
  // The documents that the server hands out.
  const documents = GUIDES.map(({ file }) => `app/docs/${file}`);
  const expected = [...programs, ...documents];
  expect(names.toSorted()).toEqual([...expected, 'app/package.json', 'app/LICENSE'].toSorted());
});
