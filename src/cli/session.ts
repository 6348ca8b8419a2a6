import { plainJson } from '../wire/plain.ts';
import { Api } from './api/client.ts';
import { usageFailure } from './failure.ts';
import { type Access, type Environment, readAccess } from './settings.ts';
import type { Terminal } from './terminal.ts';

/** What commands work with. */
export interface Session {
  env: Environment;
  terminal: Terminal;
  /** The server, signed in. Throws a failure that says how to sign in. */
  api: () => Promise<Api>;
  now: () => number;
  sleep: (ms: number) => Promise<void>;
}

/** A session that finds the server by `access`: by default from the environment and the stored settings. */
export function createSession(env: Environment, terminal: Terminal, access?: () => Promise<Access>): Session {
  let api: Promise<Api> | undefined;
  const find = access ?? (() => readAccess(env));
  return {
    env,
    terminal,
    api: () => (api ??= find().then((found) => new Api(found, env))),
    now: () => Date.now(),
    sleep: (ms) =>
      new Promise((resolve) => {
        setTimeout(resolve, ms);
      }),
  };
}

/** Prints a value for programs. */
export async function printJson({ terminal }: Session, value: unknown): Promise<void> {
  await terminal.out(`${plainJson(value, 2)}\n`);
}

/** Asks whether to go on; true at once with --yes. Without a terminal there is nobody to ask, so --yes is needed. */
export async function confirm({ terminal }: Session, question: string, yes: boolean): Promise<boolean> {
  if (yes) return true;
  if (!terminal.interactive)
    throw usageFailure('This asks for a confirmation, and there is no terminal.', 'Add --yes.');
  return /^y(es)?$/i.test((await terminal.ask(`${question} [y/N] `)).trim());
}
