import { join } from 'node:path';
import { startChild, type Child } from '../../lib/child.ts';
import { createTether } from '../../lib/tether.ts';
import type { Launcher } from './launcher.ts';

/** Milliseconds that a component gets to end by itself. */
const GRACE = 5000;

/** Starts components as child processes on this host's loopback: no root, any Unix, simulated nodes only. */
export function launchProcesses(logs: string): Launcher {
  const tether = createTether();
  const children: Child[] = [];
  const listeners: ((name: string) => void)[] = [];
  return {
    initPid: undefined,
    start: ({ name, command, args }) => {
      const child = startChild({ command, args, log: join(logs, `${name}.log`) }, tether);
      children.push(child);
      child.onExit(() => {
        for (const listener of listeners) listener(name);
      });
    },
    onExit: (listener) => void listeners.push(listener),
    stop: async () => {
      listeners.length = 0;
      // The last started first: a component whose server is gone only writes errors.
      for (const child of children.splice(0).toReversed()) await child.stop(GRACE);
      tether.release();
    },
  };
}
