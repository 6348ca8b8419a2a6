import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { LocalFailure } from '../../lib/failure.ts';
import { ROOT } from '../../lib/paths.ts';
import { lastLines } from '../../lib/shell.ts';
import { quoteWord, type Launcher } from './launcher.ts';
import type { ClusterNetwork } from './network.ts';

const SCRIPTS = join(ROOT, 'deploy/local/namespaces');

/** The exit code of outer.sh that says another cluster took the same addresses. */
const TAKEN = 75;

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
 * Starts components in mount, process, network, host-name and IPC namespaces of their own. Their first process reads
 * its commands from a pipe that this process holds: when this process dies in any way, the pipe ends, and so do they.
 */
export async function launchNamespaces(options: NamespaceOptions): Promise<Launcher> {
  const { network, logs } = options;
  const errors = join(logs, 'namespaces.log');
  const errorFile = openSync(errors, 'a', 0o600);
  // A session of its own: Ctrl-C at the terminal reaches this process only, which then ends things in order.
  const outer = spawn('sh', [join(SCRIPTS, 'outer.sh')], {
    detached: true,
    stdio: ['pipe', 'pipe', errorFile],
    env: environment(options),
  });
  closeSync(errorFile);
  const { stdin, stdout } = outer;
  if (stdin === null || stdout === null) throw new Error('A piped child has no pipes.');
  const listeners: ((name: string) => void)[] = [];
  const ended = once(outer, 'exit');
  const lines = createInterface({ input: stdout });
  const initPid = await new Promise<number>((settle, reject) => {
    lines.on('line', (line) => {
      const [word = '', value = ''] = line.split(' ');
      if (word === 'init') settle(Number(value));
      if (word === 'exited') for (const listener of listeners) listener(value);
    });
    outer.once('exit', (code) => reject(code === TAKEN ? new AddressesTaken(network.link) : startFailure(errors)));
    outer.once('error', reject);
  });
  outer.on('exit', () => {
    for (const listener of listeners) listener('namespaces');
  });
  stdin.on('error', () => undefined);
  return {
    initPid,
    start: ({ name, command, args }) => {
      stdin.write(`start ${[name, command, ...args].map(quoteWord).join(' ')}\n`);
    },
    onExit: (listener) => void listeners.push(listener),
    stop: async () => {
      listeners.length = 0;
      stdin.end();
      await endOf(outer, ended);
    },
  };
}

/** outer.sh ends by itself once everything inside is dead; a stuck one is killed, and with it what it holds. */
async function endOf(outer: ChildProcess, ended: Promise<unknown>): Promise<void> {
  const timer = setTimeout(() => outer.kill('SIGKILL'), 20_000);
  if (outer.exitCode === null && outer.signalCode === null) await ended;
  clearTimeout(timer);
}

function environment({ network, cgroup, programs, data, logs }: NamespaceOptions): NodeJS.ProcessEnv {
  return {
    PATH: `${programs}:${process.env['PATH'] ?? ''}:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin`,
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
