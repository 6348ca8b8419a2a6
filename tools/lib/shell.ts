import { spawn } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

export interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

export interface RunOptions {
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  input?: string | Buffer;
  signal?: AbortSignal;
  /** Milliseconds after which the command is killed and counts as failed. */
  timeout?: number;
}

/** Characters of output that are kept of one command, per stream: the end, which explains a failure. */
const KEPT = 1_000_000;

/** Runs a command to its end. Never rejects: a command that cannot start has code 127 and says so in stderr. */
export function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  return new Promise((settle) => {
    const { cwd, env, signal, timeout } = options;
    const child = spawn(command, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      ...(cwd === undefined ? {} : { cwd }),
      ...(env === undefined ? {} : { env }),
      ...(signal === undefined ? {} : { signal }),
      ...(timeout === undefined ? {} : { timeout, killSignal: 'SIGKILL' as const }),
    });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout = (stdout + text).slice(-KEPT);
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr = (stderr + text).slice(-KEPT);
    });
    // A command that ends before it has read its input breaks the pipe: its exit code says what happened.
    child.stdin.on('error', () => undefined).end(options.input ?? '');
    child.once('error', (error) => settle({ code: 127, stdout, stderr: stderr + error.message }));
    child.once('close', (code) => settle({ code: code ?? 137, stdout, stderr }));
  });
}

/** The full path of a program on the PATH (and in the folders where system tools live), or undefined. */
export async function findProgram(name: string, extra: readonly string[] = []): Promise<string | undefined> {
  for (const folder of [...(process.env['PATH'] ?? '').split(delimiter), ...extra]) {
    if (folder !== '' && (await isExecutable(join(folder, name)))) return join(folder, name);
  }
  return undefined;
}

export async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** Quotes a word for sh. */
export function quoteWord(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

/** The last lines of a text, without blank ones. */
export function lastLines(text: string, count: number): string[] {
  return text
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => line !== '')
    .slice(-count);
}
