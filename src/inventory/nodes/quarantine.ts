import type { GpuInstance } from '../../resources/gpu-instance.ts';

/** How long a failed start counts against its node. */
export const FAILURE_WINDOW_MS = 600_000;
/** Instances whose starts failed on a node within the window before nothing new is placed there. */
const QUARANTINE_AFTER = 3;

/** A failed start on a node. */
export interface NodeFailure {
  node: string;
  /** Namespace of the instance. */
  namespace: string;
  /** Milliseconds since the epoch. */
  at: number;
}

/** The failures that an instance's status tells of. They live in the status so that every process knows them. */
export function nodeFailuresOf({ metadata, status }: Pick<GpuInstance, 'metadata' | 'status'>): NodeFailure[] {
  const failures = status?.failures;
  if (failures === undefined) return [];
  const { namespace = '' } = metadata;
  const at = Date.parse(failures.lastTime);
  return (failures.nodes ?? []).map((node) => ({ node, namespace, at }));
}

/**
 * Until when a node is in quarantine, given the failed starts of different instances on it; undefined when it is not.
 * `isAlone` tells whether a namespace is the only one that wants GPUs. One of several cannot put a node out of service for
 * the others, whatever its images do.
 */
export function quarantinedUntil(
  failures: Iterable<NodeFailure>,
  now: number,
  isAlone: (namespace: string) => boolean,
): number | undefined {
  const recent = [...failures].filter(({ at }) => at + FAILURE_WINDOW_MS > now).toSorted((a, b) => b.at - a.at);
  const last = recent[QUARANTINE_AFTER - 1];
  const first = recent[0];
  if (last === undefined || first === undefined) return undefined;
  const another = recent.find(({ namespace }) => namespace !== first.namespace);
  if (another === undefined && !isAlone(first.namespace)) return undefined;
  return Math.min(last.at, another?.at ?? last.at) + FAILURE_WINDOW_MS;
}
