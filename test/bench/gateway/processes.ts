import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { Tether } from '../../../tools/lib/tether.ts';

export interface Running {
  pid: number;
  stop: () => Promise<void>;
}

/** Ends what was started when a signal ends this process: a gateway that stays would slow the next measurement. */
const tether = new Tether();
process.once('exit', () => tether.release());

/** Starts a program of this benchmark and drops its output. */
export function start(command: readonly string[], env: Record<string, string> = {}): Running {
  const [program = '', ...args] = command;
  const child = spawn(program, args, { env: { ...process.env, ...env }, stdio: 'ignore', detached: true });
  if (child.pid !== undefined) tether.hold(child.pid);
  return { pid: child.pid ?? 0, stop: () => stop(child) };
}

/** Stops the whole process group, because some peers fork workers. */
function stop(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.pid === undefined || child.exitCode !== null) {
      resolve();
      return;
    }
    child.on('exit', () => resolve());
    process.kill(-child.pid, 'SIGKILL');
  });
}

/** CPU time used so far, microseconds, of the process alone. */
export function cpuOf({ pid }: Running): number {
  const fields = (readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1] ?? '').split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}

/** Peak memory of the process, MiB. */
export function peakMemory({ pid }: Running): number {
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;
}

export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer();
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
