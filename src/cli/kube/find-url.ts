import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { CliFailure } from '../failure.ts';
import { baseUrl, type Environment } from '../settings.ts';
import { plain } from '../text.ts';
import { type Kubectl, withNext } from './kubectl.ts';

/** How to reach the server. */
export interface Route {
  url: string;
  close: () => Promise<void>;
}

interface Service {
  metadata: { name: string; namespace: string };
  spec: { ports: { name?: string; port: number }[] };
}

const LABELS = 'app.kubernetes.io/name=berth,app.kubernetes.io/component=api';
const NEXT = 'Set BERTH_URL to the address of the server; your operator knows it.';

/** The namespace of the documents. */
const USUAL = 'berth-system';

function services(kubectl: Kubectl, where: readonly string[]): Promise<string> {
  return kubectl.run(['get', 'services', ...where, '-l', LABELS, '-o', 'json']).catch((error: unknown) => {
    throw withNext(error, NEXT);
  });
}

/** The address in BERTH_URL, else a forward to the Service of the api role through the API server of the cluster. */
export async function findRoute(
  kubectl: Kubectl,
  { env, sleep }: { env: Environment; sleep: (ms: number) => Promise<void> },
): Promise<Route> {
  const known = env['BERTH_URL'];
  if (known) return { url: baseUrl(known), close: () => Promise.resolve() };
  // Not everybody may look into all namespaces.
  const text = await services(kubectl, ['--all-namespaces']).catch(() => services(kubectl, ['-n', USUAL]));
  const { items } = JSON.parse(text) as { items: Service[] };
  const [service, ...others] = items;
  if (service === undefined) throw new CliFailure('No Service of this cluster is of Berth.', { next: NEXT });
  if (others.length > 0) throw new CliFailure(`${items.length} Services of this cluster are of Berth.`, { next: NEXT });
  return await forward(kubectl, service, sleep);
}

/** Starts kubectl port-forward, from a local port or from any. `ready` gives the port once it listens there. */
function begin(
  kubectl: Kubectl,
  { metadata, spec }: Service,
  local = '',
): { child: ChildProcess; ready: Promise<string> } {
  const port = (spec.ports.find(({ name }) => name === 'http') ?? spec.ports[0])?.port ?? 80;
  const to = `service/${metadata.name}`;
  const child = kubectl.start(['port-forward', '-n', metadata.namespace, to, `${local}:${port}`]);
  let said = '';
  let errors = '';
  child.stderr?.on('data', (part) => (errors = (errors + String(part)).slice(-1000)));
  const listens = new Promise<string>((resolve) => {
    child.stdout?.on('data', (part) => {
      // It says a line for each connection, too.
      said = (said + String(part)).slice(-1000);
      const found = /^Forwarding from 127\.0\.0\.1:(\d+) ->/m.exec(said)?.[1];
      if (found !== undefined) resolve(found);
    });
  });
  const fails = once(child, 'close').then(() => {
    throw new CliFailure(`kubectl port-forward failed: ${plain(errors.trim())}`, { next: NEXT });
  });
  return { child, ready: Promise.race([listens, fails]) };
}

/** Milliseconds before a forward that ended begins again. */
const PAUSE_MS = 500;

/** A forward that begins again on its port when it ends, as it does with the pod that it led to. */
async function forward(kubectl: Kubectl, service: Service, sleep: (ms: number) => Promise<void>): Promise<Route> {
  let { child, ready } = begin(kubectl, service);
  const local = await ready;
  let isClosed = false;
  const goOn = async (): Promise<void> => {
    for (;;) {
      if (child.exitCode === null && child.signalCode === null) await once(child, 'close');
      // Until it listens again the server does not answer, and who follows something tries again.
      if (!isClosed) await sleep(PAUSE_MS);
      if (isClosed) return;
      ({ child, ready } = begin(kubectl, service, local));
      await ready.catch(() => undefined);
    }
  };
  const over = goOn().catch(() => undefined);
  const close = async (): Promise<void> => {
    isClosed = true;
    child.kill();
    await over;
  };
  return { url: baseUrl(`http://127.0.0.1:${local}`), close };
}
