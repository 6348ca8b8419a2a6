import { writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { LocalCluster } from '../local-cluster.ts';
import { Child } from '../../lib/child.ts';
import { applyFinalizers } from '../apply.ts';
import { LocalFailure } from '../../lib/failure.ts';
import { ROOT } from '../../lib/paths.ts';
import { freePorts, requirePort } from '../../lib/free-ports.ts';
import { buildPage } from '../../lib/page.ts';
import type { Progress } from '../../lib/progress.ts';
import { lastLines, quoteWord } from '../../lib/shell.ts';
import { Tether } from '../../lib/tether.ts';
import { BUSYBOX_IMAGE } from '../built/real-node.ts';
import { TOOLS_IMAGE } from '../../lib/images/tools-image.ts';
import type { TourOffer } from '../tour.ts';
import { makeAdministrator, signInLink } from '../sign-in.ts';
import { createLocalKey, deleteLocalKey } from './local-key.ts';
import { waitFor } from '../../lib/wait.ts';

export interface ServerOptions {
  /** Loopback ports; undefined for a free one. */
  httpPort: number | undefined;
  sshPort: number | undefined;
}

export interface RunningServer {
  /** Base URL of the HTTP interface; ends in /api/v1. */
  url: string;
  apiKey: string;
  sshPort: number;
  metricsPort: number;
  envFile: string;
  /** Signs in to the dashboard once; undefined in a cluster that was given, where nobody gets rights by this. */
  signIn: string | undefined;
  /** The offers at the time when the server became ready. */
  offers: TourOffer[];
  broken: Promise<LocalFailure>;
  stop(): Promise<void>;
}

/** Milliseconds until the server answers; it takes 2 s on two idle cores. */
const READY_TIMEOUT = 60_000;

/** Milliseconds that the server gets to end its calls and sessions. */
const GRACE = 10_000;

/** Throws LocalFailure when a named port is taken, so that the failure comes before the cluster is started. */
export async function requirePorts({ httpPort, sshPort }: ServerOptions): Promise<void> {
  if (httpPort !== undefined) await requirePort(httpPort, 'HTTP');
  if (sshPort !== undefined) await requirePort(sshPort, 'SSH');
}

/** Runs all server roles in one child process, makes an API key, and writes the addresses and the key to local.env. */
export async function startServer(
  cluster: LocalCluster,
  options: ServerOptions,
  { state, progress, signal }: { state: string; progress: Progress; signal: AbortSignal },
): Promise<RunningServer> {
  progress.step({ title: 'Starting the server', index: 4, total: 4, next: 'the tour' });
  const [freeHttp = 0, freeSsh = 0, metricsPort = 0] = await freePorts(3);
  const httpPort = options.httpPort ?? freeHttp;
  const sshPort = options.sshPort ?? freeSsh;
  const log = join(state, 'logs', 'server.log');
  await using stack = new AsyncDisposableStack();
  await buildPage();
  const child = startProcess(stack, cluster, { httpPort, sshPort, metricsPort, log });
  const broken = brokenPromise(child, log);
  await Promise.race([untilReady(httpPort, signal), broken.then((failure) => Promise.reject(failure))]);
  // The policy stays in the cluster, so a given cluster gets it from an installation alone.
  if (cluster.way !== 'given') await applyFinalizers(cluster.client, signal);
  const { name, token: apiKey } = await createLocalKey(cluster, signal);
  if (cluster.way === 'given') stack.defer(() => deleteLocalKey(cluster, name, progress));
  const url = `http://127.0.0.1:${httpPort}/api/v1`;
  const offers = await readOffers(`${url}/offers`, apiKey, signal);
  const envFile = join(state, 'local.env');
  writeFileSync(envFile, environmentFile({ url, apiKey, ...cluster }), { mode: 0o600 });
  if (cluster.way !== 'given') await makeAdministrator(cluster.client, signal);
  const signIn = cluster.way === 'given' ? undefined : await signInLink(cluster.client, url);
  const started = stack.move();
  return { url, apiKey, sshPort, metricsPort, envFile, signIn, offers, broken, stop: () => started.disposeAsync() };
}

interface ProcessOptions {
  httpPort: number;
  sshPort: number;
  metricsPort: number;
  log: string;
}

/** Starts the process of the server, which ends with the stack, and at once when this process is killed. */
function startProcess(
  stack: AsyncDisposableStack,
  { kubeconfig, ownImages, way }: LocalCluster,
  { httpPort, sshPort, metricsPort, log }: ProcessOptions,
): Child {
  const env = {
    ...process.env,
    KUBECONFIG: kubeconfig,
    BERTH_HTTP_ADDR: `127.0.0.1:${httpPort}`,
    BERTH_METRICS_ADDR: `127.0.0.1:${metricsPort}`,
    BERTH_SSH_ADDR: `127.0.0.1:${sshPort}`,
    // Only its administrator makes pods in a cluster that was built for this. A given one may have tenants, and no policy.
    BERTH_CLAIM_ON_POD: String(way !== 'given'),
    ...(ownImages
      ? {
          BERTH_TOOLS_IMAGE: TOOLS_IMAGE,
          BERTH_DEFAULT_IMAGE: BUSYBOX_IMAGE,
          BERTH_IMAGE_PULL_POLICY: 'IfNotPresent',
        }
      : {}),
  };
  const tether = new Tether();
  stack.defer(() => tether.release());
  const child = new Child({ command: process.execPath, args: [join(ROOT, 'src/main.ts'), 'all'], env, log }, tether);
  stack.defer(() => child.stop(GRACE));
  return child;
}

/** The lines of local.env, for sh. */
export function environmentFile(values: {
  url: string;
  apiKey: string;
  kubeconfig: string;
  /** A folder for the PATH. */
  programs: string | undefined;
}): string {
  const { url, apiKey, kubeconfig, programs } = values;
  const path = programs === undefined ? [] : [`PATH="$PATH":${quoteWord(programs)}`];
  const lines = [`BERTH_URL=${url}`, `BERTH_API_KEY=${apiKey}`, `KUBECONFIG=${quoteWord(kubeconfig)}`, ...path];
  return `${lines.join('\n')}\n`;
}

async function untilReady(port: number, signal: AbortSignal): Promise<void> {
  const probe = async () => {
    const response = await fetch(`http://127.0.0.1:${port}/readyz`, { signal }).catch(() => undefined);
    await response?.body?.cancel();
    return response?.status === 200;
  };
  if ((await waitFor(probe, { timeout: READY_TIMEOUT, interval: 100, signal })) === true) return;
  throw new LocalFailure('The server was not ready after a minute.', 'Read .berth/logs/server.log.');
}

/** Waits until the server knows the key, and reads the offers. */
async function readOffers(url: string, apiKey: string, signal: AbortSignal): Promise<TourOffer[]> {
  let answer = 'no answer';
  const offers = await waitFor(
    async () => {
      const response = await fetch(url, { signal, headers: { authorization: `Bearer ${apiKey}` } }).catch(
        () => undefined,
      );
      if (response === undefined) return undefined;
      answer = `status ${response.status}`;
      const body = (await response.json().catch(() => ({}))) as { data?: TourOffer[] };
      return response.status === 200 && body.data;
    },
    { timeout: READY_TIMEOUT, interval: 100, signal },
  );
  if (offers !== undefined) return offers;
  throw new LocalFailure(`The server does not list offers (${answer}).`, 'Read .berth/logs/server.log.');
}

function brokenPromise(child: Child, log: string): Promise<LocalFailure> {
  return new Promise((settle) => {
    child.onExit((status) => {
      void readFile(log, 'utf8')
        .catch(() => '')
        .then((text) =>
          settle(new LocalFailure(`The server ended (${status}).`, 'Read the lines below.', lastLines(text, 8))),
        );
    });
  });
}
