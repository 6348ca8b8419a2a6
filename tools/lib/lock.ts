import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { identify, isAlive, isIdentity, type ProcessIdentity } from './process-identity.ts';
import { systemCode } from './failure.ts';

export interface FileLock {
  release(): void;
}

/** Takes a lock file for this process, or returns the process that holds it. Takes the lock of a dead process over. */
export function tryLock(path: string): FileLock | ProcessIdentity {
  const self = identify(process.pid);
  if (self === undefined) throw new Error('This process cannot read its own start time.');
  const mine = `${path}.${self.pid}`;
  // Written aside and linked into place, so that no process reads a half-written lock.
  writeFileSync(mine, JSON.stringify(self), { mode: 0o600 });
  try {
    for (;;) {
      try {
        linkSync(mine, path);
        return { release: () => rmSync(path, { force: true }) };
      } catch (error) {
        if (systemCode(error) !== 'EEXIST') throw error;
      }
      const holder = readIdentity(path);
      if (holder !== undefined && isAlive(holder)) return holder;
      removeStale(path, `${mine}.stale`);
    }
  } finally {
    rmSync(mine, { force: true });
  }
}

/** Moves a stale lock away, and back when another process has put a fresh one in its place. */
function removeStale(path: string, aside: string): void {
  try {
    renameSync(path, aside);
    const moved = readIdentity(aside);
    if (moved !== undefined && isAlive(moved)) linkSync(aside, path);
    rmSync(aside, { force: true });
  } catch (error) {
    // Another process was faster: the next attempt to take the lock finds out which.
    if (!['ENOENT', 'EEXIST'].includes(systemCode(error) ?? '')) throw error;
  }
}

/** The process that a JSON file names; undefined when the file is missing or names none. */
function readIdentity(path: string): ProcessIdentity | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'));
    return isIdentity(value) ? { pid: value.pid, startedAt: value.startedAt } : undefined;
  } catch {
    return undefined;
  }
}
