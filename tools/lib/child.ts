import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import type { Tether } from './tether.ts';

export interface ChildOptions {
  command: string;
  args: readonly string[];
  env?: NodeJS.ProcessEnv;
  /** The file that takes its output. */
  log: string;
}

/** A long-running child process. It leads a group of its own, so that Ctrl-C reaches this process alone. */
export class Child {
  readonly #child: ChildProcess;
  readonly #ended: Promise<string>;

  constructor({ command, args, env, log }: ChildOptions, tether: Tether) {
    const file = openSync(log, 'a', 0o600);
    this.#child = spawn(command, args, {
      detached: true,
      stdio: ['ignore', file, file],
      ...(env === undefined ? {} : { env }),
    });
    closeSync(file);
    if (this.#child.pid !== undefined) tether.hold(this.#child.pid);
    this.#ended = endOf(this.#child);
  }

  /** Calls the listener with the exit code or the signal's name, also when the child has ended before. */
  onExit(listener: (status: string) => void): void {
    void this.#ended.then(listener);
  }

  /** Ends the child: SIGTERM, then SIGKILL after `grace` milliseconds. */
  async stop(grace: number): Promise<void> {
    const timer = setTimeout(() => killGroup(this.#child, 'SIGKILL'), grace);
    killGroup(this.#child, 'SIGTERM');
    await this.#ended;
    clearTimeout(timer);
  }
}

function endOf(child: ChildProcess): Promise<string> {
  return new Promise((settle) => {
    child.once('error', (error) => settle(error.message));
    child.once('exit', (code, signal) => settle(signal ?? `code ${code}`));
  });
}

function killGroup({ pid, exitCode, signalCode }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined || exitCode !== null || signalCode !== null) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // The group is gone already.
  }
}
