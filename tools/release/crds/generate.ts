import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { stringify } from 'yaml';
import { customResourceDefinition } from '../../../src/resources/crd.ts';
import { referencePage } from './reference.ts';
import { CUSTOM_RESOURCES } from '../../../src/resources/index.ts';
import { GROUP } from '../../../src/resources/schema.ts';

const DIRECTORY = new URL('../../../crds/', import.meta.url);
const REFERENCE = new URL('../../../docs/run/reference.md', import.meta.url);
const HEADER = '# Generated from src/resources by `npm run generate`. Do not edit.\n';

function files(): Map<string, string> {
  return new Map(
    CUSTOM_RESOURCES.map((resource) => [
      `${GROUP}_${resource.plural}.yaml`,
      HEADER + stringify(customResourceDefinition(resource), { lineWidth: 0, aliasDuplicateObjects: false }),
    ]),
  );
}

function drift(expected: Map<string, string>): string[] {
  const present = readdirSync(DIRECTORY);
  const extra = present.filter((name) => !expected.has(name)).map((name) => `crds/${name}: no resource makes it`);
  const changed = [...expected]
    .filter(([name, text]) => !present.includes(name) || readFileSync(new URL(name, DIRECTORY), 'utf8') !== text)
    .map(([name]) => `crds/${name}: differs from src/resources`);
  return [...extra, ...changed];
}

const expected = files();
if (process.argv.includes('--check')) {
  const page = existsSync(REFERENCE) ? readFileSync(REFERENCE, 'utf8') : '';
  const problems = [
    ...drift(expected),
    ...(page === referencePage() ? [] : ['docs/run/reference.md: differs from src/resources']),
  ];
  if (problems.length > 0) {
    console.error(`${problems.join('\n')}\nRun \`npm run generate\` and commit the result.`);
    process.exitCode = 1;
  }
} else {
  mkdirSync(DIRECTORY, { recursive: true });
  for (const [name, text] of expected) writeFileSync(new URL(name, DIRECTORY), text);
  writeFileSync(REFERENCE, referencePage());
}
