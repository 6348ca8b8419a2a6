import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { EXIT } from '../../../src/cli/failure.ts';
import { help } from '../../../src/cli/help.ts';
import { parseCommand } from '../../../src/cli/parse.ts';
import { COMMANDS, findCommand } from '../../../src/cli/table/commands.ts';
import { ROOT } from '../../../tools/lib/paths.ts';

function textOf(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

/** Words of a line for a shell, without a comment, and without what is for the shell alone. */
function wordsOf(line: string): string[] {
  const words = line.replace(/ #.*$/, '').match(/(?:[^\s'"]|'[^']*'|"[^"]*")+/g) ?? [];
  return words.filter((word) => !/^[<>]/.test(word)).map((word) => word.replaceAll(/['"]/g, ''));
}

/** The calls of berth that a document shows in its blocks for a shell. */
function callsIn(path: string): string[] {
  const blocks = [...textOf(path).matchAll(/^```(?:sh)?\n(.*?)^```/gms)].map(([, block = '']) => block);
  const lines = blocks.flatMap((block) => block.split('\n').map((line) => line.replace(/^\$ /, '')));
  return lines
    .flatMap((line) => line.split('; '))
    .map((line) => /\$\((berth [^)]*)\)/.exec(line)?.[1] ?? line)
    .filter((line) => line.startsWith('berth '));
}

describe.each(['docs/use/cli.md', 'README.md'])('%s', (path) => {
  it.each(callsIn(path))('shows a line that the program takes: %s', (line) => {
    const all = wordsOf(line).slice(1);
    const words = all[0] === '--profile' ? all.slice(2) : all;
    const { command, args } = findCommand(words) ?? {};
    expect(command).toBeDefined();
    if (command !== undefined && args !== undefined) parseCommand(command, args);
  });
});

it('docs/use/cli.md and help name every command, and every exit status', () => {
  const text = textOf('docs/use/cli.md');
  for (const { name } of COMMANDS) expect(text).toMatch(new RegExp(String.raw`\`?berth ${name}\b`));
  const rows = [...text.matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code));
  expect(rows).toEqual(Object.values(EXIT));
  for (const code of Object.values(EXIT)) expect(help()).toMatch(new RegExp(String.raw`\b${code} [a-z]`));
});
