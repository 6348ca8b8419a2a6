import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../../../tools/lib/paths.ts';
import { blocksOf, readManual } from '../../support/manual.ts';

/** The words by which the test in this file finds its commands. */
function wordsIn(file: string): string[] {
  const source = readFileSync(join(ROOT, file), 'utf8');
  return [...source.matchAll(/(?:blockWith|lastBlock)\((?:\w+|await readManual\([^)]*\)), '([^']+)'\)/g)].map(
    ([, words = '']) => words.replaceAll('\\\\', '\\'),
  );
}

test.each(['run/install.md', 'run/money.md', 'run/operations.md'])(
  'every command of docs/%s is run by a test, or says what it needs',
  async (name) => {
    const blocks = blocksOf(await readManual(name));
    expect(blocks.length).toBeGreaterThan(3);
    for (const { commands, comment, chapter } of blocks) {
      expect(comment, commands).toMatch(/^(run by \S+\.ts|not run: needs .+)$/);
      const file = /^run by (\S+)$/.exec(comment)?.[1];
      if (file === undefined) continue;
      const isRun = wordsIn(file).some((words) => commands.includes(words) || chapter.endsWith(words));
      expect(isRun, `${file} does not run these commands:\n${commands}`).toBe(true);
    }
  },
);
