import { join } from 'node:path';
import { Child } from '../../lib/child.ts';
import { Tether } from '../../lib/tether.ts';
import type { Component } from './components.ts';
import type { Launcher } from './launcher.ts';

/** Milliseconds that a component gets to end by itself. */
const GRACE = 5000;

/** Starts components as child processes on the loopback of this machine: without root, on any Unix, without a real node. */
export class ProcessLauncher implements Launcher {
  readonly initPid = undefined;
  readonly #logs: string;
  readonly #tether = new Tether();
  readonly #children: Child[] = [];
  #listeners: ((name: string) => void)[] = [];

  constructor(logs: string) {
    this.#logs = logs;
  }

  start({ name, command, args }: Component): void {
    const child = new Child({ command, args, log: join(this.#logs, `${name}.log`) }, this.#tether);
    this.#children.push(child);
    child.onExit(() => {
      for (const listener of this.#listeners) listener(name);
    });
  }

  onExit(listener: (name: string) => void): void {
    this.#listeners.push(listener);
  }

  async stop(): Promise<void> {
    this.#listeners = [];
    // The last one first: a component whose server is gone writes errors until it ends.
    for (const child of this.#children.splice(0).toReversed()) await child.stop(GRACE);
    this.#tether.release();
  }
}
