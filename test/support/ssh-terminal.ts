import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../../tools/lib/shell.ts';
import { waitFor } from './wait-for.ts';

/** A person at a terminal of 100 columns and 30 rows. */
export interface TerminalSession {
  /** Types and waits until the pattern comes after what was there before. */
  type(keys: string, until: RegExp): Promise<RegExpExecArray>;
  resize(columns: number, rows: number): Promise<void>;
  /** Everything that was on the screen so far. */
  readonly screen: string;
  /** Types, if keys are given, and waits for the end of the program; its exit status. */
  end(keys?: string): Promise<number | null>;
}

function quoteWord(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

/** Runs ssh on a real terminal. */
export function terminalSession(args: readonly string[]): TerminalSession {
  return programSession(['ssh', ...args], process.env);
}

/** Runs a program on a real terminal, that of util-linux's script, with what is typed coming from here. */
export function programSession(words: readonly string[], env: NodeJS.ProcessEnv): TerminalSession {
  const folder = mkdtempSync(join(tmpdir(), `berth-tty-${randomBytes(2).toString('hex')}`));
  const name = join(folder, 'name');
  writeFileSync(name, '');
  const line = `tty >${quoteWord(name)}; stty rows 30 cols 100; exec ${words.map(quoteWord).join(' ')}`;
  const child = spawn('script', ['-q', '-e', '-f', '-c', line, '/dev/null'], {
    env: { ...env, TERM: 'xterm-256color', SHELL: '/bin/sh' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const closed = once(child, 'close') as Promise<[number | null]>;
  child.once('close', () => rmSync(folder, { recursive: true }));
  let screen = '';
  let seen = 0;
  child.stdout.on('data', (part) => (screen += String(part)));
  // Nothing, too, is a write, which fails once the program has ended.
  const write = (keys: string) => keys !== '' && child.stdin.write(keys);
  return {
    get screen() {
      return screen;
    },
    type: async (keys, until) => {
      seen = screen.length;
      write(keys);
      return await waitFor(`${String(until)} after ${JSON.stringify(keys)}`, () => until.exec(screen.slice(seen)));
    },
    resize: async (columns, rows) => {
      // The kernel tells whoever stands in the foreground of the terminal, as when a window is drawn larger.
      await run('sh', ['-c', `stty rows ${rows} cols ${columns} <"$(cat ${quoteWord(name)})"`]);
    },
    end: async (keys = '') => {
      write(keys);
      return (await closed)[0];
    },
  };
}
