import { readFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';

/** A process, told apart from a later one that got the same number by when it started. */
export interface ProcessIdentity {
  pid: number;
  startedAt: string;
}

/** The start time of a live process as an opaque string, or undefined when there is none (a zombie counts as none). */
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

/** Field 22 of /proc/PID/stat; the command in field 2 may hold spaces and parentheses, so count from its end. */
export function parseStat(stat: string): string | undefined {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19];
}

export function identify(pid: number): ProcessIdentity | undefined {
  const startedAt = startTimeOf(pid);
  return startedAt === undefined ? undefined : { pid, startedAt };
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
    // It ended between the look and the signal.
  }
}
