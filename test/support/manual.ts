import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from '../../tools/lib/paths.ts';

/** Commands of a document, and what its comment says about who runs them. */
export interface Block {
  commands: string;
  /** The comment on the line before; empty without one. */
  comment: string;
  /** Title of the chapter, with its number. */
  chapter: string;
}

/** All blocks of commands in a document, those in lists too. */
export function blocksOf(manual: string): Block[] {
  return manual.split(/^## /m).flatMap((chapter) =>
    [...chapter.matchAll(/^(?: *<!-- ([^\n]*) -->\n)?( *)```sh\n(.*?)^ *```$/gms)].map(
      ([, comment = '', indent = '', text = '']) => ({
        commands: text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
        comment,
        chapter: chapter.split('\n')[0] ?? '',
      }),
    ),
  );
}

/** The last block of commands in the chapter whose title ends with these words. */
export function lastBlock(manual: string, title: string): string {
  const block = blocksOf(manual).findLast(({ chapter }) => chapter.endsWith(title));
  if (block === undefined) throw new Error(`There are no commands under "${title}".`);
  return block.commands;
}

/** The first block of commands with these words in it. */
export function blockWith(manual: string, words: string): string {
  const block = blocksOf(manual).find(({ commands }) => commands.includes(words));
  if (block === undefined) throw new Error(`There are no commands with "${words}".`);
  return block.commands;
}

/** Text of a document in the folder `docs`. */
export function readManual(name: string): Promise<string> {
  return readFile(join(ROOT, 'docs', name), 'utf8');
}
