import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { NotFoundError } from '../../../src/kube/errors.ts';
import { API_KEYS, mintToken, SCOPES, type ApiKey } from '../../../src/resources/api-key.ts';
import type { LocalCluster } from '../bring-up.ts';
import { startChild, type Child } from '../../lib/child.ts';
import { applyFinalizers } from '../apply.ts';
import { LocalFailure } from '../../lib/failure.ts';
import { ROOT } from '../../lib/paths.ts';
import { freePorts, requirePort } from '../../lib/free-ports.ts';
import type { Progress } from '../../lib/progress.ts';
import { lastLines } from '../../lib/shell.ts';
import { createTether } from '../../lib/tether.ts';
import { quoteWord } from '../built/launcher.ts';
import { BUSYBOX_IMAGE } from '../built/real-node.ts';
import { TOOLS_IMAGE } from '../../lib/images/tools-image.ts';
import type { TourOffer } from '../tour.ts';
import { waitFor } from '../../lib/wait.ts';
import { readFile } from 'node:fs/promises';

export interface ServerOptions {
  /** Loopback ports that were named; a free one is taken for each that was not. */
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
  /** What was for rent when the server became ready. */
  offers: TourOffer[];
  broken: Promise<LocalFailure>;
  stop(): Promise<void>;
}

/** The tenant of the key that the tour uses. */
const NAMESPACE = 'default';

/** Milliseconds until the server answers; it takes 2 s on two idle cores. */
const READY_TIMEOUT = 60_000;

/** Milliseconds that the server gets to end its calls and sessions. */
const GRACE = 10_000;

/** Milliseconds after which a key in somebody else's cluster ends, also when nobody was left to delete it. */
const KEY_LIFE = 30 * 24 * 3_600_000;

/** Milliseconds that deleting it may take. */
const DELETE_TIMEOUT = 5000;

/** Throws LocalFailure when a named port is taken: better said before a cluster is started than after. */
export async function requirePorts({ httpPort, sshPort }: ServerOptions): Promise<void> {
  if (httpPort !== undefined) await requirePort(httpPort, 'HTTP');
  if (sshPort !== undefined) await requirePort(sshPort, 'SSH');
}

/** Runs all server roles in one child process, makes an API key, and writes both down in local.env. */
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
  const tether = createTether();
  const child = startChild(
    {
      command: process.execPath,
      args: [join(ROOT, 'src/main.ts'), 'all'],
      env: {
        ...process.env,
        KUBECONFIG: cluster.kubeconfig,
        ...(cluster.context === undefined ? {} : { BERTH_CONTEXT: cluster.context }),
        BERTH_HTTP_ADDR: `127.0.0.1:${httpPort}`,
        BERTH_METRICS_ADDR: `127.0.0.1:${metricsPort}`,
        BERTH_SSH_ADDR: `127.0.0.1:${sshPort}`,
        // The real node reaches no registry: it has these two images.
        ...(cluster.initPid === undefined
          ? {}
          : { BERTH_TOOLS_IMAGE: TOOLS_IMAGE, BERTH_DEFAULT_IMAGE: BUSYBOX_IMAGE }),
      },
      log,
    },
    tether,
  );
  const broken = brokenPromise(child, log);
  let deleteKey = () => Promise.resolve();
  const stop = async () => {
    await Promise.all([deleteKey(), child.stop(GRACE)]);
    tether.release();
  };
  try {
    await Promise.race([untilReady(httpPort, signal), broken.then((failure) => Promise.reject(failure))]);
    // It stays behind: in somebody else's cluster an installation brings it.
    if (cluster.way !== 'given') await applyFinalizers(cluster.client, signal);
    const { name, token: apiKey } = await createApiKey(cluster);
    if (cluster.way === 'given') deleteKey = () => deleteApiKey(cluster, name, progress);
    const url = `http://127.0.0.1:${httpPort}/api/v1`;
    const offers = await readOffers(`${url}/offers`, apiKey, signal);
    const envFile = join(state, 'local.env');
    writeFileSync(envFile, environmentFile({ url, apiKey, ...cluster }), { mode: 0o600 });
    return { url, apiKey, sshPort, metricsPort, envFile, offers, broken, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Lines for sh. */
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
  throw new LocalFailure('The server did not become ready in a minute.', 'Read .berth/logs/server.log.');
}

/** A new key for this run: the last run's token is not known any more, only its hash is stored. */
async function createApiKey({ client, way }: LocalCluster): Promise<{ name: string; token: string }> {
  const { token, hash, prefix } = mintToken();
  const name = `local-${hash.slice(0, 10)}`;
  const expiry = way === 'given' ? { expiresAt: new Date(Date.now() + KEY_LIFE).toISOString() } : {};
  const key: ApiKey = {
    metadata: { name, namespace: NAMESPACE },
    spec: { hash, prefix, displayName: 'local tour', scopes: [...SCOPES], revoked: false, ...expiry },
  };
  await client.apply(API_KEYS, key, { fieldManager: 'berth-local' });
  return { name, token };
}

async function deleteApiKey({ client }: LocalCluster, name: string, progress: Progress): Promise<void> {
  try {
    await client.delete(API_KEYS, { namespace: NAMESPACE, name }, { signal: AbortSignal.timeout(DELETE_TIMEOUT) });
  } catch (error) {
    if (error instanceof NotFoundError) return;
    const reason = error instanceof Error ? error.message : String(error);
    progress.line(
      `The API key of this run is left: ${reason} Delete it: kubectl delete -n ${NAMESPACE} apikey ${name}`,
    );
  }
}

/** The offers, once the server has seen its key and the fleet. */
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
