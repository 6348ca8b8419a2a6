import { spawn, type ChildProcess, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { LocalFailure } from '../../lib/failure.ts';
import { ROOT } from '../../lib/paths.ts';
import { lastLines, quoteWord } from '../../lib/shell.ts';
import type { Component } from './components.ts';
import type { Launcher } from './launcher.ts';
import type { ClusterNetwork } from './network.ts';

const SCRIPTS = join(ROOT, 'deploy/local/namespaces');

/** The exit code of outer.sh when another cluster has the same addresses. */
const TAKEN = 75;

/** The process of outer.sh. */
type Outer = ChildProcessByStdio<Writable, Readable, null>;

export class AddressesTaken extends Error {
  override readonly name = 'AddressesTaken';
}

export interface NamespaceOptions {
  network: ClusterNetwork;
  cgroup: string;
  programs: string;
  data: string;
  logs: string;
}

/**
 * Starts components in mount, process, network, host-name and IPC namespaces of their own. Their first process reads its
 * commands from a pipe that this process holds. When this process dies in any way, the pipe ends, and so do they.
 */
export class NamespaceLauncher implements Launcher {
  readonly initPid: number;
  readonly #outer: Outer;
  readonly #ended: Promise<unknown>;
  #listeners: ((name: string) => void)[] = [];

  private constructor(outer: Outer, initPid: number, lines: Interface) {
    this.#outer = outer;
    this.initPid = initPid;
    this.#ended = once(outer, 'exit');
    lines.on('line', (line) => {
      const [word, name = ''] = line.split(' ');
      if (word === 'exited') this.#report(name);
    });
    outer.on('exit', () => this.#report('namespaces'));
    outer.stdin.on('error', () => undefined);
  }

  /** Throws AddressesTaken when another cluster has the addresses, and LocalFailure when there can be no namespaces. */
  static async open(options: NamespaceOptions): Promise<NamespaceLauncher> {
    const errors = join(options.logs, 'namespaces.log');
    const errorFile = openSync(errors, 'a', 0o600);
    // In a session of its own, so that Ctrl-C at the terminal reaches this process alone, which then ends all in order.
    const outer = spawn('sh', [join(SCRIPTS, 'outer.sh')], {
      detached: true,
      stdio: ['pipe', 'pipe', errorFile],
      env: environment(options),
    }) as Outer;
    closeSync(errorFile);
    const lines = createInterface({ input: outer.stdout });
    const initPid = await new Promise<number>((settle, reject) => {
      lines.once('line', (line) => settle(Number(/^init (\d+)$/.exec(line)?.[1])));
      outer.once('exit', (code) =>
        reject(code === TAKEN ? new AddressesTaken(options.network.link) : startFailure(errors)),
      );
      outer.once('error', reject);
    });
    return new NamespaceLauncher(outer, initPid, lines);
  }

  start({ name, command, args }: Component): void {
    this.#outer.stdin.write(`start ${[name, command, ...args].map(quoteWord).join(' ')}\n`);
  }

  onExit(listener: (name: string) => void): void {
    this.#listeners.push(listener);
  }

  async stop(): Promise<void> {
    this.#listeners = [];
    this.#outer.stdin.end();
    await endOf(this.#outer, this.#ended);
  }

  #report(name: string): void {
    for (const listener of this.#listeners) listener(name);
  }
}

/** outer.sh ends when every process inside has ended. A stuck one is killed, and with it what it holds. */
async function endOf(outer: ChildProcess, ended: Promise<unknown>): Promise<void> {
  const timer = setTimeout(() => outer.kill('SIGKILL'), 20_000);
  if (outer.exitCode === null && outer.signalCode === null) await ended;
  clearTimeout(timer);
}

function environment({ network, cgroup, programs, data, logs }: NamespaceOptions): NodeJS.ProcessEnv {
  return {
    PATH: `${programs}:${process.env['PATH'] ?? ''}:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin`,
    GOGC: process.env['GOGC'],
    LINK: network.link,
    HOST_ADDRESS: network.hostAddress,
    NODE_ADDRESS: network.nodeAddress,
    POD_CIDR: network.podCidr,
    SERVICE_CIDR: network.serviceCidr,
    CGROUP: cgroup,
    INSIDE: join(SCRIPTS, 'inside.sh'),
    DATA: data,
    LOGS: logs,
  };
}

function startFailure(log: string): LocalFailure {
  return new LocalFailure(
    'The namespaces of the real node cannot be made.',
    'Run without root (simulated nodes only), or on a host that allows namespaces, cgroups and veth links.',
    lastLines(readFileSync(log, 'utf8'), 8),
  );
}
