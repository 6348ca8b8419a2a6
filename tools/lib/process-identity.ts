import { readFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { isObject } from '../../src/lib/json.ts';

/** A process: its number, and its start time, because a later process may get the same number. */
export interface ProcessIdentity {
  pid: number;
  startedAt: string;
}

/** The start time of a live process as an opaque string; undefined when there is no such process, or it is a zombie. */
function startTimeOf(pid: number): string | undefined {
  if (process.platform === 'linux') {
    try {
      return parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8'));
    } catch {
      return undefined;
    }
  }
  const { status, stdout } = spawnSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' });
  return status === 0 && stdout.trim() !== '' ? stdout.trim() : undefined;
}

/** Field 22 of /proc/PID/stat, counted from the end of field 2: that one may hold spaces and parentheses. */
export function parseStat(stat: string): string | undefined {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19];
}

export function identify(pid: number): ProcessIdentity | undefined {
  const startedAt = startTimeOf(pid);
  return startedAt === undefined ? undefined : { pid, startedAt };
}

/** Whether a value, read from a file, is the identity of a process. */
export function isIdentity(value: unknown): value is ProcessIdentity {
  return isObject(value) && Number.isInteger(value['pid']) && typeof value['startedAt'] === 'string';
}

export function isAlive(identity: ProcessIdentity): boolean {
  return startTimeOf(identity.pid) === identity.startedAt;
}

/** Sends the signal unless the process is gone. */
export function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): void {
  if (!isAlive(identity)) return;
  try {
    process.kill(identity.pid, signal);
  } catch {
    // It ended in between.
  }
}
