import type { KubeClient } from '../../kube/client/client.ts';
import type { KubeObject } from '../../kube/types.ts';
import { INSTANCE_LOGS, LOG_BYTES, LOG_OF_START } from '../../resources/instance-log.ts';
import { INSTANCE_UID_LABEL } from '../../resources/pod/owner.ts';

/** Bytes of the kept logs of one tenant, as they are stored. The oldest give way. */
export const KEPT_BYTES = 16 * 1024 * 1024;
/** Kept logs of one tenant, and of one instance, whose history has no more starts in its hundred events. */
const KEPT_LOGS = 1000;
const KEPT_STARTS = 16;
/** What an object takes beside its log. */
const OBJECT_BYTES = 1024;
const PAGE = 500;

/** A kept log, as its metadata describe it. */
export type LogMeta = Pick<KubeObject, 'metadata'>;

function startOf({ metadata }: LogMeta): number {
  return Number(metadata.labels?.[LOG_OF_START] ?? 0);
}

/** The uid of the instance. */
export function uidOf({ metadata }: LogMeta): string {
  return metadata.labels?.[INSTANCE_UID_LABEL] ?? '';
}

function bytesOf({ metadata }: LogMeta): number {
  return OBJECT_BYTES + Number(metadata.annotations?.[LOG_BYTES] ?? 0);
}

function createdAt({ metadata }: LogMeta): number {
  return Date.parse(metadata.creationTimestamp ?? '') || 0;
}

/** The logs of one tenant that give way. `isKnown`: whether the history of the instance is still there. */
export function surplusLogs(logs: readonly LogMeta[], isKnown: (log: LogMeta) => boolean): LogMeta[] {
  const surplus: LogMeta[] = [];
  const starts = new Map<string, number>();
  let [bytes, count] = [0, 0];
  const newestFirst = logs.toSorted((a, b) => createdAt(b) - createdAt(a) || startOf(b) - startOf(a));
  for (const log of newestFirst) {
    const uid = uidOf(log);
    const later = starts.get(uid) ?? 0;
    starts.set(uid, later + 1);
    const fits = later < KEPT_STARTS && count < KEPT_LOGS && bytes + bytesOf(log) <= KEPT_BYTES;
    if (!fits || !isKnown(log)) {
      surplus.push(log);
      continue;
    }
    bytes += bytesOf(log);
    count += 1;
  }
  return surplus;
}

export interface RemoveOptions {
  /** Undefined: of all tenants. */
  namespace?: string;
  isKnown: (log: LogMeta) => boolean;
  signal?: AbortSignal;
}

/** Removes the logs that give way. It asks for metadata alone. */
export async function removeOldLogs(client: KubeClient, { namespace, isKnown, signal }: RemoveOptions): Promise<void> {
  const byTenant = new Map<string, LogMeta[]>();
  let next: string | undefined;
  do {
    const page = await client.list(INSTANCE_LOGS, {
      metadataOnly: true,
      limit: PAGE,
      ...(namespace !== undefined && { namespace }),
      ...(signal !== undefined && { signal }),
      ...(next !== undefined && { continue: next }),
    });
    for (const { metadata } of page.items) {
      const all = byTenant.get(metadata.namespace ?? '') ?? [];
      all.push({ metadata });
      byTenant.set(metadata.namespace ?? '', all);
    }
    next = page.continue;
  } while (next !== undefined);
  for (const logs of byTenant.values()) {
    for (const { metadata } of surplusLogs(logs, isKnown)) {
      const { uid } = metadata;
      await client.delete(INSTANCE_LOGS, metadata, { ...(signal && { signal }), ...(uid !== undefined && { uid }) });
    }
  }
}
