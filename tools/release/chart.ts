import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { crdTemplate } from './chart-crds.ts';
import { chartReadme } from './chart-readme.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const CHART = join(ROOT, 'charts/berth');
const CRD_TEMPLATES = join(CHART, 'templates/crds');

/** The generated files of the chart: path -> text. */
function generated(): Map<string, string> {
  const files = new Map<string, string>();
  for (const name of readdirSync(join(ROOT, 'crds'))) {
    files.set(join(CRD_TEMPLATES, name), crdTemplate(readFileSync(join(ROOT, 'crds', name), 'utf8')));
  }
  const head = readFileSync(join(CHART, 'README.head.md'), 'utf8');
  files.set(join(CHART, 'README.md'), chartReadme(head, readFileSync(join(CHART, 'values.yaml'), 'utf8')));
  return files;
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

const expected = generated();
const extra = readdirSync(CRD_TEMPLATES)
  .map((name) => join(CRD_TEMPLATES, name))
  .filter((path) => !expected.has(path));
if (process.argv.includes('--check')) {
  const stale = [...[...expected].filter(([path, text]) => textOf(path) !== text).map(([path]) => path), ...extra];
  if (stale.length > 0) {
    console.error(
      `These files differ from what they are generated from:\n${stale.join('\n')}\nRun \`npm run generate\` and commit the result.`,
    );
    process.exitCode = 1;
  }
} else {
  for (const path of extra) rmSync(path);
  for (const [path, text] of expected) writeFileSync(path, text);
}
