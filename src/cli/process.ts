import { runCli } from './main.ts';
import { createSession } from './session.ts';
import { processTerminal } from './terminal.ts';
import { ownVersion } from './version.ts';

/** Runs a command line with the environment and the terminal of the process. Returns the exit status. */
export function runProcess(words: readonly string[]): Promise<number> {
  return runCli(words, { session: createSession(process.env, processTerminal()), version: ownVersion });
}
