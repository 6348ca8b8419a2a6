import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { parseCommand } from '../../../src/cli/parse.ts';
import { findCommand } from '../../../src/cli/table/commands.ts';
import { ROOT } from '../../../tools/lib/paths.ts';
import { blocksOf } from '../../support/manual.ts';

const textOf = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const WAYS = ['use/renter', 'use/model-user', 'run/platform-team', 'run/on-call', 'build/contributor'];
/** Their commands are run by tests, or are those of npm. */
const RUN = [
  'README.md',
  'CONTRIBUTING.md',
  'docs/run/install.md',
  'docs/run/operations.md',
  'docs/run/money.md',
  'docs/use/models.md',
  'docs/use/cli.md',
]
  .map(textOf)
  .join('\n');

describe.each(WAYS)('docs/%s.md', (name) => {
  const text = textOf(`docs/${name}.md`);
  const lines = blocksOf(text).flatMap(({ commands }) => commands.trim().split('\n'));

  it('has at most 60 lines', () => {
    expect(text.trimEnd().split('\n').length).toBeLessThanOrEqual(60);
  });

  it.each(lines)('shows a command that works: %s', (line) => {
    const words = (line.match(/"[^"]*"|\S+/g) ?? []).map((word) => word.replaceAll('"', ''));
    const { command, args } = (words[0] === 'berth' ? findCommand(words.slice(1)) : undefined) ?? {};
    if (command !== undefined && args !== undefined) parseCommand(command, args);
    else if (!line.startsWith('export BERTH_URL=')) expect(RUN).toContain(line.replace(/ +#.*$/, '').trim());
  });
});

test('the index of the documents names each', () => {
  const pages = globSync('{*,use/**/*,run/*,build/*}.md', { cwd: join(ROOT, 'docs'), exclude: ['README.md'] });
  expect(pages.length).toBeGreaterThan(20);
  expect(pages.filter((name) => !textOf('docs/README.md').includes(`](${name})`))).toEqual([]);
});

describe('docs/use/recipes.md', () => {
  const blocks = blocksOf(textOf('docs/use/recipes.md'));
  const lines = blocks
    .flatMap(({ commands }) => commands.trim().split('\n'))
    .filter((line) => line.startsWith('berth '));

  it('says of all commands who runs them', () => {
    const others = blocks.filter(({ comment }) => !/^(?:run by \S+\.ts|not run: needs .+)$/.test(comment));
    // The start script of an instance is a file.
    expect(others.map(({ commands }) => commands.split('\n')[0])).toEqual(['#!/bin/sh']);
  });

  it.each(lines)('shows a command that works: %s', (line) => {
    const words = (line.match(/"[^"]*"|\S+/g) ?? []).map((word) => word.replaceAll('"', ''));
    const { command, args } = findCommand(words.slice(1)) ?? {};
    expect(command, line).toBeDefined();
    if (command !== undefined && args !== undefined) parseCommand(command, args);
  });
});
