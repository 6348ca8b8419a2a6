import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import type { Tether } from './tether.ts';

export interface ChildOptions {
  command: string;
  args: readonly string[];
  env?: NodeJS.ProcessEnv;
  /** The file that takes what it prints. */
  log: string;
}

/** A long-running child process in a group of its own, so that Ctrl-C does not reach it before we end it in order. */
export interface Child {
  /** Called with the exit code, or the signal's name; also when it ended before the call. */
  onExit(listener: (status: string) => void): void;
  /** Ends it: SIGTERM, then SIGKILL after `grace` milliseconds. */
  stop(grace: number): Promise<void>;
}

export function startChild({ command, args, env, log }: ChildOptions, tether: Tether): Child {
  const file = openSync(log, 'a', 0o600);
  const child = spawn(command, args, {
    detached: true,
    stdio: ['ignore', file, file],
    ...(env === undefined ? {} : { env }),
  });
  closeSync(file);
  if (child.pid !== undefined) tether.hold(child.pid);
  const ended = endOf(child);
  return {
    onExit: (listener) => void ended.then(listener),
    stop: async (grace) => {
      const timer = setTimeout(() => killGroup(child, 'SIGKILL'), grace);
      killGroup(child, 'SIGTERM');
      await ended;
      clearTimeout(timer);
    },
  };
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
