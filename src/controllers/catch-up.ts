import type { Logger } from 'pino';
import { Gauge, type Registry } from 'prom-client';
import { type CacheName, CACHES } from '../caches/table.ts';
import type { KubeClient, ListPage } from '../kube/client/client.ts';
import { keyOf, type KubeObject, type ResourceType } from '../kube/types.ts';
import { hasReached } from '../kube/watch/resource-version.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import type { Clock } from '../lib/clock.ts';
import { keepTrying } from './keep-trying.ts';

const PAUSE_MS = 250;
const PAGE = 500;

export interface CatchUpDeps {
  client: Pick<KubeClient, 'list'>;
  stores: Partial<Record<CacheName, ReadStore<KubeObject>>>;
  clock: Clock;
  log: Logger;
  /** Sets the number of caches that are behind. */
  onBehind: (caches: number) => void;
}

/** Gauge of the caches that a new leader waits for. */
export function createCatchUpMetric(registry: Registry): (caches: number) => void {
  const gauge = new Gauge({
    name: 'berth_leader_caches_behind',
    help: 'Watch caches that do not show yet what the API server had when this replica began to lead; it grants nothing before.',
    registers: [registry],
  });
  return (caches) => gauge.set(caches);
}

/** All objects of a kind, as etcd has them now, with their metadata alone. */
async function listAll(client: CatchUpDeps['client'], type: ResourceType, signal: AbortSignal) {
  const items: KubeObject[] = [];
  let page: ListPage<KubeObject> | undefined;
  do {
    const more = page?.continue === undefined ? {} : { continue: page.continue };
    page = await client.list(type, { metadataOnly: true, limit: PAGE, signal, ...more });
    items.push(...page.items);
  } while (page.continue !== undefined);
  return { items, resourceVersion: page.resourceVersion };
}

/** The keys of the objects that a cache shows otherwise than a list does. */
function differences(store: ReadStore<KubeObject>, items: readonly KubeObject[], listVersion: string): string[] {
  const listed = new Map(items.map((object) => [keyOf(object), object.metadata.resourceVersion ?? '']));
  const old = [...listed].filter(([key, version]) => {
    const seen = store.get(key)?.metadata.resourceVersion;
    return seen === undefined || !hasReached(seen, version);
  });
  const gone = [...store.values()].filter(
    (object) => !listed.has(keyOf(object)) && hasReached(listVersion, object.metadata.resourceVersion ?? ''),
  );
  return [...old.map(([key]) => key), ...gone.map(keyOf)];
}

/** Resolves when a cache shows everything that the API server had at the call. */
async function catchUpOne(
  { client, clock }: CatchUpDeps,
  name: CacheName,
  store: ReadStore<KubeObject>,
  signal: AbortSignal,
) {
  const type: ResourceType = CACHES[name].type;
  // A list without a version is answered from etcd, not from a cache that may lag.
  const { resourceVersion } = await client.list(type, { limit: 1, signal });
  if (hasReached(store.resourceVersion, resourceVersion)) return;
  // Nothing tells the version to the cache of a kind that does not change, bookmarks aside, which come once a minute.
  const all = await listAll(client, type, signal);
  while (
    !hasReached(store.resourceVersion, all.resourceVersion) &&
    differences(store, all.items, all.resourceVersion).length > 0
  ) {
    signal.throwIfAborted();
    await clock.sleep(PAUSE_MS, signal);
  }
}

/**
 * Waits until the caches show everything that the API server had at the call: a leader must not grant what its
 * predecessor granted. Returns false when one of them does not within a minute, or the signal aborts before.
 */
export async function catchUp(deps: CatchUpDeps, signal: AbortSignal): Promise<boolean> {
  const { stores, onBehind } = deps;
  const all = Object.entries(stores) as [CacheName, ReadStore<KubeObject>][];
  let behind = all.length;
  onBehind(behind);
  const waits = all.map(async ([name, store]) => {
    const isCurrent = await keepTrying(deps, `cache ${name}`, (over) => catchUpOne(deps, name, store, over), signal);
    if (isCurrent) onBehind((behind -= 1));
  });
  await Promise.all(waits);
  return behind === 0;
}
