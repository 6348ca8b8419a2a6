import { readFile } from 'node:fs/promises';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { PODS, type Pod, SECRETS } from '../../../src/kube/types.ts';
import { ANY_PRIVATE_KEY, decoded, leaksIn, privateKey, type Secret } from './leaks.ts';
import { NAMESPACE } from './release.ts';

/** A text in which a secret could be. */
interface Place {
  name: string;
  text: string;
}

interface Discovered {
  groupVersion: string;
  resources: { name: string; verbs: string[] }[];
}

async function textOf(client: KubeClient, url: string): Promise<string> {
  const { pathname, searchParams } = new URL(url, 'http://cluster');
  const parts: Buffer[] = [];
  for await (const part of await client.stream(pathname, Object.fromEntries(searchParams), {}))
    parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}

/** The paths of all kinds of objects that the API server can list, without Secrets. */
async function listPaths(client: KubeClient): Promise<string[]> {
  const { groups } = await client.raw<{ groups: { preferredVersion: { groupVersion: string } }[] }>('GET', '/apis');
  const roots = ['/api/v1', ...groups.map(({ preferredVersion }) => `/apis/${preferredVersion.groupVersion}`)];
  const found = await Promise.all(
    roots.map(async (root) => ({ root, ...(await client.raw<Discovered>('GET', root)) })),
  );
  return found.flatMap(({ root, resources }) =>
    resources
      .filter(({ name, verbs }) => verbs.includes('list') && !name.includes('/') && name !== 'secrets')
      .map(({ name }) => `${root}/${name}`),
  );
}

/** The Secrets of Berth itself. */
const HOLDERS = ['berth-ssh-host-key', 'berth-dashboard-session', 'berth-port-session'];

/** The secrets of Berth itself: the host key and the keys of sessions. */
export async function ownSecrets(client: KubeClient): Promise<Secret[]> {
  const [host = '', session = '', ports = ''] = await Promise.all(
    HOLDERS.map(async (name) => {
      const { data } = await client.get(SECRETS, { namespace: NAMESPACE, name });
      return Object.values(data ?? {})[0];
    }),
  );
  const sessionKey = { name: "the dashboard's session key", piece: session };
  const portKey = { name: 'the key of links to ports', piece: ports };
  return [privateKey('the host key', decoded(host)), sessionKey, portKey, ANY_PRIVATE_KEY];
}

/** The contents of all Secrets but those of Berth itself. */
async function secretPlaces(client: KubeClient): Promise<Place[]> {
  const { items } = await client.list(SECRETS);
  return items
    .filter(({ metadata }) => metadata.namespace !== NAMESPACE || !HOLDERS.includes(metadata.name))
    .map(({ metadata, data = {} }) => ({
      name: `secrets/${metadata.namespace}/${metadata.name}`,
      text: Object.values(data).map(decoded).join('\n'),
    }));
}

/** The logs of all containers that have started, and those from before the last restart. */
function logPaths(pods: readonly Pod[]): string[] {
  return pods.flatMap(({ metadata, status }) =>
    [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]
      .filter(({ state }) => state?.waiting === undefined)
      .flatMap(({ name, restartCount }) => {
        const path = `/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}/log?container=${name}`;
        return restartCount === 0 ? [path] : [path, `${path}&previous=true`];
      }),
  );
}

function metricPaths(pods: readonly Pod[]): string[] {
  return pods
    .filter(({ metadata }) => metadata.labels?.['berth.dev/metrics'] === 'true')
    .map(({ metadata }) => `/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}:9090/proxy/metrics`);
}

export interface ScanOptions {
  secrets: readonly Secret[];
  /** Path of the API server's audit log, where tokens in URLs would be. */
  auditLog: string;
}

export interface Scan {
  /** Secrets that were found, as `PLACE: SECRET`. */
  leaks: string[];
  /** How many texts of each sort were read. */
  read: Record<'objects' | 'secrets' | 'logs' | 'metrics', number>;
}

/** Looks for secrets in every object of the cluster, every log, the audit log and the metrics of Berth's pods. */
export async function scan(client: KubeClient, { secrets, auditLog }: ScanOptions): Promise<Scan> {
  const { items: pods } = await client.list(PODS);
  const paths = { objects: await listPaths(client), logs: logPaths(pods), metrics: metricPaths(pods) };
  const others = await secretPlaces(client);
  const leaks: string[] = [];
  const look = ({ name, text }: Place): void => {
    for (const leak of leaksIn(text, secrets)) leaks.push(`${name}: ${leak}`);
  };
  for (const path of Object.values(paths).flat()) look({ name: path, text: await textOf(client, path) });
  for (const place of others) look(place);
  look({ name: 'audit log', text: await readFile(auditLog, 'utf8') });
  const read = {
    objects: paths.objects.length,
    secrets: others.length,
    logs: paths.logs.length,
    metrics: paths.metrics.length,
  };
  return { leaks, read };
}
