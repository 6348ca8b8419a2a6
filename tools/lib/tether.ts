import { spawn } from 'node:child_process';

export interface Tether {
  /** From now on the process dies with this one. It must lead a process group of its own. */
  hold(pid: number): void;
  /** Ends the watchdog without killing anyone. */
  release(): void;
}

/**
 * A watchdog for child processes: it reads their numbers from a pipe that this process holds and kills their process
 * groups when the pipe ends without the word `release`. It works on any Unix and survives every way for us to die.
 */
export function createTether(): Tether {
  const script =
    'pids=; while read -r p; do [ "$p" = release ] && exit; pids="$pids -$p"; done; kill -s KILL -- $pids 2>/dev/null';
  const watchdog = spawn('sh', ['-c', script], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  watchdog.stdin.on('error', () => undefined);
  watchdog.unref();
  return {
    hold: (pid) => void watchdog.stdin.write(`${pid}\n`),
    release: () => void watchdog.stdin.end('release\n'),
  };
}
