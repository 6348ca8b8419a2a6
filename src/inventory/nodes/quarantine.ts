import type { GpuInstance } from '../../resources/instances/gpu-instance.ts';

/** How long a failed start counts against its node. */
export const FAILURE_WINDOW_MS = 600_000;
/** After this many instances failed to start on a node within the window, nothing new is placed there. */
const QUARANTINE_AFTER = 3;

export interface NodeFailure {
  node: string;
  /** Namespace of the instance. */
  namespace: string;
  /** Milliseconds since the epoch. */
  at: number;
}

/** The failed starts in the status of an instance. Every replica reads them there. */
export function nodeFailuresOf({ metadata, status }: Pick<GpuInstance, 'metadata' | 'status'>): NodeFailure[] {
  const failures = status?.failures;
  if (failures === undefined) return [];
  const { namespace = '' } = metadata;
  const at = Date.parse(failures.lastTime);
  return (failures.nodes ?? []).map((node) => ({ node, namespace, at }));
}

/**
 * Until when a node is in quarantine for failed starts of different instances; undefined when it is not. `isAlone`: no
 * other namespace wants GPUs. The images of one of several tenants cannot take a node out of service for the others.
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
