import { once } from 'node:events';
import { CliFailure } from '../failure.ts';
import { baseUrl, type Environment } from '../settings.ts';
import { plain } from '../text.ts';
import type { Kubectl } from './kubectl.ts';

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

/** The address in BERTH_URL, else a forward to the Service of the api role through the API server of the cluster. */
export async function findRoute(kubectl: Kubectl, env: Environment): Promise<Route> {
  const known = env['BERTH_URL'];
  if (known) return { url: baseUrl(known), close: () => Promise.resolve() };
  const text = await kubectl
    .run(['get', 'services', '--all-namespaces', '-l', LABELS, '-o', 'json'])
    .catch((error: unknown) => {
      throw new CliFailure(error instanceof Error ? error.message : String(error), { next: NEXT });
    });
  const { items } = JSON.parse(text) as { items: Service[] };
  const [service, ...others] = items;
  if (service === undefined) throw new CliFailure('No Service of this cluster is of Berth.', { next: NEXT });
  if (others.length > 0) throw new CliFailure(`${items.length} Services of this cluster are of Berth.`, { next: NEXT });
  return await forward(kubectl, service);
}

async function forward(kubectl: Kubectl, { metadata, spec }: Service): Promise<Route> {
  const port = (spec.ports.find(({ name }) => name === 'http') ?? spec.ports[0])?.port ?? 80;
  const child = kubectl.start(['port-forward', '-n', metadata.namespace, `service/${metadata.name}`, `:${port}`]);
  let said = '';
  let errors = '';
  child.stderr?.on('data', (part) => (errors += String(part)));
  const ready = new Promise<string>((resolve) => {
    child.stdout?.on('data', (part) => {
      said += String(part);
      const local = /^Forwarding from 127\.0\.0\.1:(\d+) ->/m.exec(said)?.[1];
      if (local !== undefined) resolve(local);
    });
  });
  const ended = once(child, 'close').then(() => {
    throw new CliFailure(`kubectl port-forward failed: ${plain(errors.trim().slice(0, 1000))}`, { next: NEXT });
  });
  const local = await Promise.race([ready, ended]);
  // What ends it later shows as a server that does not answer.
  const gone = ended.catch(() => undefined);
  const close = async (): Promise<void> => {
    child.kill();
    await gone;
  };
  return { url: baseUrl(`http://127.0.0.1:${local}`), close };
}
