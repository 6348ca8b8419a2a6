import { keyOf, type ObjectMeta } from '../../kube/types.ts';
import { rfc3339 } from '../../kube/conditions.ts';
import { factsHash } from '../../resources/history-fold.ts';
import {
  ENDED_AT,
  FACTS,
  HISTORY_OF,
  historyName,
  INSTANCE_HISTORIES,
  type InstanceHistory,
} from '../../resources/instance-history.ts';
import type { CommonDeps } from '../common-deps.ts';
import { type LogMeta, removeOldLogs, uidOf } from './old-logs.ts';
import type { PendingNews } from './pending.ts';

/** How long a history stays after its instance. */
const KEPT_MS = 7 * 24 * 60 * 60_000;
/** Histories of instances that are gone, of one tenant: more than this, and the oldest go before their week is over. */
const MOST_ENDED = 1000;
const PAGE = 500;

export interface SweepDeps extends Pick<CommonDeps, 'client' | 'clock' | 'stores'> {
  pending: PendingNews;
}

type Meta = Pick<InstanceHistory, 'metadata'>;

function endedAt({ annotations }: ObjectMeta): number | undefined {
  const at = Date.parse(annotations?.[ENDED_AT] ?? '');
  return Number.isNaN(at) ? undefined : at;
}

/**
 * Compares all histories with the instances that are there: notes news that no history has, also those of the time
 * without a leader, closes histories whose instances are gone, and removes those whose time is over, with their logs.
 */
export async function sweep(deps: SweepDeps, signal: AbortSignal): Promise<void> {
  const { client, stores, pending } = deps;
  const known = new Set<string>();
  const ended: Meta[] = [];
  let next: string | undefined;
  do {
    const page = await client.list(INSTANCE_HISTORIES, {
      metadataOnly: true,
      limit: PAGE,
      signal,
      ...(next !== undefined && { continue: next }),
    });
    for (const { metadata } of page.items) {
      known.add(keyOf(metadata));
      if (endedAt(metadata) !== undefined) ended.push({ metadata });
      else await close(deps, metadata, signal);
    }
    next = page.continue;
  } while (next !== undefined);
  for (const instance of stores.instances.values()) {
    const key = historyKey(instance.metadata.namespace, instance.metadata.uid);
    if (!known.has(key)) pending.note(instance, false);
    known.add(key);
  }
  for (const key of await removeOld(deps, ended, signal)) known.delete(key);
  const isKnown = (log: LogMeta): boolean => {
    const key = historyKey(log.metadata.namespace, uidOf(log));
    // The history of an instance that has just gone may be on its way.
    return known.has(key) || pending.get(key) !== undefined;
  };
  await removeOldLogs(client, { isKnown, signal });
}

function historyKey(namespace: string | undefined, uid = ''): string {
  return keyOf({ namespace, name: historyName(uid) });
}

/** Closes the history of an instance that went while nobody led, or notes what it lacks. */
async function close({ client, clock, stores, pending }: SweepDeps, metadata: Meta['metadata'], signal: AbortSignal) {
  const { namespace, name } = metadata;
  const instance = stores.instances.get(keyOf({ namespace, name: metadata.labels?.[HISTORY_OF] ?? '' }));
  if (instance !== undefined && historyName(instance.metadata.uid ?? '') === name) {
    if (metadata.annotations?.[FACTS] !== factsHash(instance, false)) pending.note(instance, false);
    return;
  }
  if (pending.get(keyOf(metadata)) !== undefined) return;
  const at = rfc3339(clock.now());
  const body = { metadata: { uid: metadata.uid, annotations: { [ENDED_AT]: at } }, spec: { endedAt: at } };
  await client.patch(INSTANCE_HISTORIES, { namespace, name }, body, { type: 'merge', signal });
}

/** Returns the keys of those that it removed. */
async function removeOld({ client, clock }: SweepDeps, ended: readonly Meta[], signal: AbortSignal): Promise<string[]> {
  const removed: string[] = [];
  const byTenant = Map.groupBy(ended, ({ metadata }) => metadata.namespace);
  for (const all of byTenant.values()) {
    const newestFirst = all.toSorted((a, b) => (endedAt(b.metadata) ?? 0) - (endedAt(a.metadata) ?? 0));
    for (const [index, { metadata }] of newestFirst.entries()) {
      const isOver = (endedAt(metadata) ?? 0) + KEPT_MS <= clock.now();
      if (!isOver && index < MOST_ENDED) continue;
      const { namespace, name, uid } = metadata;
      await client.delete(INSTANCE_HISTORIES, { namespace, name }, { signal, ...(uid !== undefined && { uid }) });
      removed.push(keyOf(metadata));
    }
  }
  return removed;
}
