import { spawn, type ChildProcessByStdio } from 'node:child_process';
import type { Writable } from 'node:stream';

const SCRIPT =
  'pids=; while read -r p; do [ "$p" = release ] && exit; pids="$pids -$p"; done; kill -s KILL -- $pids 2>/dev/null';

/**
 * A watchdog for child processes: it reads their numbers from a pipe that this process holds, and kills their process
 * groups when the pipe ends without the word `release`. It works on any Unix, however this process dies.
 */
export class Tether {
  readonly #watchdog: ChildProcessByStdio<Writable, null, null>;

  constructor() {
    this.#watchdog = spawn('sh', ['-c', SCRIPT], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
    this.#watchdog.stdin.on('error', () => undefined);
    this.#watchdog.unref();
  }

  /** Makes a process die with this one. It must lead a process group of its own. */
  hold(pid: number): void {
    this.#watchdog.stdin.write(`${pid}\n`);
  }

  /** Ends the watchdog, and no other process. */
  release(): void {
    this.#watchdog.stdin.end('release\n');
  }
}
