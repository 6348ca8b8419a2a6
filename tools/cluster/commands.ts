import { fork } from 'node:child_process';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { endingSignal, INTERRUPTED } from '../lib/ending.ts';
import { explainFailure, LocalFailure } from '../lib/failure.ts';
import { decideImages, decideNode } from './decide-node.ts';
import { clearState, supervise } from './supervisor/supervise.ts';
import { inspectHost } from './bring-up.ts';
import type { BringUpOptions } from './local-cluster.ts';
import { connectGiven } from './given-cluster.ts';
import { signInLink } from './sign-in.ts';
import { remoteProgress, showMessage, type SupervisorMessage } from './supervisor/messages.ts';
import { readOptions, type LocalOptions } from './options.ts';
import { cacheFolder, ROOT, stateFolder } from '../lib/paths.ts';
import { isAlive, signalProcess } from '../lib/process-identity.ts';
import { type Progress, terminalProgress } from '../lib/progress.ts';
import { type ClusterRecord, readRecord } from './supervisor/record.ts';
import { chooseWay } from './ways.ts';
import { waitFor } from '../lib/wait.ts';

export const LOCAL_COMMANDS = ['up', 'start', 'stop', 'status', 'sign-in', 'supervise'] as const;
export type LocalCommand = (typeof LOCAL_COMMANDS)[number];

/** Milliseconds that the supervisor gets to end everything in order, before it is killed. */
const STOP_TIMEOUT = 45_000;

/** Milliseconds until the cluster must have answered. */
const SIGN_IN_TIMEOUT = 10_000;

/** Runs a command of the local cluster, and returns its exit code. */
export async function runLocal(command: LocalCommand, args: readonly string[]): Promise<number> {
  try {
    if (command === 'status') return status();
    if (command === 'stop') return await stop();
    if (command === 'sign-in') return await signIn();
    const options = readOptions(args, process.env, join(stateFolder(), 'kubeconfig'));
    if (command === 'supervise') return await superviseDetached(options);
    return options.detach || command === 'up' ? await detach(command, args, options) : await foreground(options);
  } catch (error) {
    process.stderr.write(`${explainFailure(error)}\n`);
    return 1;
  }
}

async function foreground(options: LocalOptions): Promise<number> {
  const progress = terminalProgress();
  const ending = endingSignal();
  let ready = false;
  try {
    await supervise({
      ...supervisorOptions(options, progress),
      interactive: process.stdin.isTTY && process.stderr.isTTY,
      signal: ending,
      onReady: (tour) => {
        ready = true;
        process.stdout.write(`${tour}\n\nCtrl-C ends the server and the cluster.\n`);
      },
    });
  } catch (error) {
    if (!ending.aborted) throw error;
  }
  progress.line('Stopped: nothing is left running.');
  return ready ? 0 : INTERRUPTED;
}

/** Sends to the command that started this supervisor. It stops listening when the supervisor is ready. */
function send(message: SupervisorMessage): void {
  if (process.connected) process.send?.(message, undefined, {}, () => undefined);
}

/** The supervisor in the background. Its output goes to its log, its progress to the command that started it. */
async function superviseDetached(options: LocalOptions): Promise<number> {
  const controller = new AbortController();
  let ready = false;
  const abort = () => controller.abort();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, abort);
  // The command that waits for this process has ended before the cluster was ready.
  process.on('disconnect', () => ready || abort());
  try {
    await supervise({
      ...supervisorOptions(options, remoteProgress(send)),
      interactive: false,
      signal: controller.signal,
      onReady: (tour) => {
        ready = true;
        send({ type: 'ready', tour: `${tour}\n\nIt runs in the background. \`npm stop\` ends it.` });
      },
    });
    return 0;
  } catch (error) {
    if (controller.signal.aborted) return INTERRUPTED;
    const text = explainFailure(error);
    process.stderr.write(`${text}\n`);
    send({ type: 'failed', text });
    return 1;
  }
}

async function detach(command: string, args: readonly string[], options: LocalOptions): Promise<number> {
  const progress = terminalProgress();
  const interactive = process.stdin.isTTY && process.stderr.isTTY;
  // The question needs the terminal, which the supervisor has not: it finds the packages installed, or not.
  if (interactive) await askForPackages({ ...supervisorOptions(options, progress), interactive });
  mkdirSync(stateFolder(), { recursive: true, mode: 0o700 });
  const log = openSync(join(stateFolder(), 'supervisor.log'), 'w', 0o600);
  const server = command === 'up' ? ['--no-server'] : [];
  const child = fork(join(ROOT, 'tools/cluster/main.ts'), ['supervise', ...server, ...args], {
    detached: true,
    stdio: ['ignore', log, log, 'ipc'],
  });
  closeSync(log);
  const ending = endingSignal();
  ending.addEventListener('abort', () => child.kill('SIGTERM'));
  return new Promise((settle) => {
    child.on('message', (message: SupervisorMessage) => {
      const print = (text: string) => (message.type === 'failed' ? process.stderr : process.stdout).write(`${text}\n`);
      showMessage(message, progress, print);
      if (message.type !== 'ready') return;
      child.disconnect();
      child.unref();
      settle(0);
    });
    child.once('exit', (code, signal) => {
      progress.end();
      if (signal !== null)
        process.stderr.write(`The supervisor was killed (${signal}). Its log is .berth/supervisor.log.\n`);
      if (ending.aborted) progress.line('Stopped: nothing is left running.');
      settle(code ?? 1);
    });
  });
}

/** Asks for the packages that the way needs. What is refused is said when the cluster starts. */
async function askForPackages(
  options: Pick<BringUpOptions, 'given' | 'built' | 'cache' | 'progress' | 'yes' | 'interactive'>,
): Promise<void> {
  const way = chooseWay(await inspectHost(options));
  if (way === 'built') await decideNode(options);
  if (way === 'kind') await decideImages(options).catch(() => undefined);
}

function status(): number {
  const record = readRecord(stateFolder());
  if (record === undefined || !isAlive(record.supervisor)) {
    process.stdout.write('No cluster of this checkout is running. `npm start` starts one.\n');
    return 3;
  }
  process.stdout.write(statusOf(record));
  return 0;
}

/** What runs, and where, a line each. */
export function statusOf(record: ClusterRecord): string {
  const { phase, url = 'not running', kubeconfig = 'not ready', way = 'being chosen', supervisor, initPid } = record;
  const node = initPid === undefined && way !== 'kind' ? 'no' : 'yes';
  return [
    `Phase       ${phase} (process ${supervisor.pid})`,
    `Server      ${url}`,
    `Kubeconfig  ${kubeconfig}`,
    `Way         ${way}`,
    `Real node   ${node}\n`,
  ].join('\n');
}

/** Prints a new link that signs in to the dashboard. */
async function signIn(): Promise<number> {
  const record = readRecord(stateFolder());
  if (record?.phase !== 'ready' || record.url === undefined || !isAlive(record.supervisor))
    throw new LocalFailure('No server of this checkout is running.', 'Start it with `npm start`.');
  if (record.way === 'given')
    throw new LocalFailure(
      'The cluster was given, and nobody gets rights in it by a link.',
      'Sign in with a token of your account: kubectl create token NAME --audience=berth',
    );
  const client = await connectGiven({
    kubeconfig: record.kubeconfig,
    context: undefined,
    signal: AbortSignal.timeout(SIGN_IN_TIMEOUT),
  });
  try {
    process.stdout.write(`${await signInLink(client, record.url)}\n`);
  } finally {
    await client.close();
  }
  return 0;
}

async function stop(): Promise<number> {
  const state = stateFolder();
  const record = readRecord(state);
  if (record === undefined) {
    process.stdout.write('No cluster of this checkout is running.\n');
    return 0;
  }
  const progress = terminalProgress();
  progress.step({ title: 'Stopping', index: 1, total: 1 });
  signalProcess(record.supervisor, 'SIGTERM');
  const ended = await waitFor(() => !isAlive(record.supervisor), { timeout: STOP_TIMEOUT });
  if (ended === undefined) signalProcess(record.supervisor, 'SIGKILL');
  const left = await clearState(state, record);
  progress.end();
  if (left === undefined) {
    process.stdout.write('Stopped. Another cluster of this checkout starts meanwhile: see `npm run status`.\n');
    return 0;
  }
  if (left.length > 0)
    throw new LocalFailure(`These are left: ${left.join(', ')}.`, 'Run it again, or remove them by hand.');
  process.stdout.write('Stopped: no process, container, link or cgroup of the cluster is left.\n');
  return 0;
}

function supervisorOptions(options: LocalOptions, progress: Progress) {
  const { kubeconfig, context, given, built, dra, yes, httpPort, sshPort } = options;
  const server = options.server ? { httpPort, sshPort } : undefined;
  const folders = { state: stateFolder(), cache: cacheFolder(process.env) };
  const total = options.server ? 4 : 3;
  const cluster = { kubeconfig, context, given, built, dra, yes, otherMakers: true };
  return { ...folders, ...cluster, server, progress, total, tidy: true };
}
