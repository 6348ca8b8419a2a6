import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../lib/paths.ts';
import { riddles } from './riddles.ts';
import { textOfMarkdown, textOfTemplate, textsOfProgram, type Text } from './texts.ts';

/** Documents, strings of the programs, and texts of the chart. */
const READ = ['*.md', 'docs/**/*.md', 'src/**/*.{ts,tsx}', 'tools/**/*.ts', 'charts/berth/**/*.{md,txt,tpl,yaml}'];
const GENERATED = ['docs/run/reference.md', 'charts/berth/README.md', 'charts/berth/templates/crds/*'];
/** A decision is the record of a day. */
const RECORDS = ['docs/decisions/*'];
/** These have the rule, or quote what breaks it. */
const RULES = ['CONTRIBUTING.md', 'tools/english/riddles.ts'];
const TESTS = ['charts/berth/tests/**', 'charts/berth/ci/*'];

function textsOf(name: string, content: string): Text[] {
  if (name.endsWith('.md')) return [textOfMarkdown(content)];
  if (/\.tsx?$/.test(name)) return textsOfProgram(name, content);
  return [name.includes('/templates/') ? textOfTemplate(content) : { at: 0, text: content }];
}

const files = globSync(READ, {
  cwd: ROOT,
  exclude: [...GENERATED, ...RECORDS, ...RULES, ...TESTS],
}).toSorted();
const found = files.flatMap((name) => {
  const content = readFileSync(join(ROOT, name), 'utf8');
  return textsOf(name, content).flatMap(({ at, text }) =>
    riddles(text).map((riddle) => {
      const line = content.slice(0, at + riddle.at).split('\n').length;
      return `${name}:${line}: "${riddle.found}": ${riddle.instead}`;
    }),
  );
});
if (found.length > 0) {
  console.error(`${found.join('\n')}\nCONTRIBUTING.md, "English", has the rule and examples.`);
  process.exitCode = 1;
}
