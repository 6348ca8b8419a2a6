import { FAILURE_WINDOW_MS } from '../../../inventory/nodes/quarantine.ts';
import { type GpuInstance, type GpuInstanceStatus, MOST_STARTS } from '../../../resources/instances/gpu-instance.ts';
import { isAskedForAgain } from '../../../resources/instances/instance-state.ts';
import { pauseEnd, pauseEndAfter } from './preemptions.ts';

type Failures = GpuInstanceStatus['failures'];

const FIRST_MS = 1_000;
const FACTOR = 4;
const LONGEST_MS = 600_000;
/** After a start that ran for this long, earlier failures are forgotten. */
const GOOD_START_MS = 600_000;
const MAX_NODES = 16;

const HOUR_MS = 3_600_000;

/** Milliseconds to wait after failures in a row: 1, 4, 16, 64, 256, then 600 seconds. At most eleven pods an hour. */
function pauseAfter(count: number): number {
  return Math.min(LONGEST_MS, FIRST_MS * FACTOR ** (count - 1));
}

/** When the pause after failures is over, milliseconds since the epoch; 0 after no failure or after an edit by the owner. */
function pausedUntil(instance: Pick<GpuInstance, 'metadata' | 'spec' | 'status'>, now: number): number {
  const { failures } = instance.status ?? {};
  if (isAskedForAgain(instance) || failures === undefined || failures.count === 0) return 0;
  return pauseEndAfter(failures.lastTime, pauseAfter(failures.count), now);
}

/**
 * When there may be one start more within an hour, whatever asks for it; 0 for now. A clock that was ahead left times
 * that are still to come: they do not count.
 */
export function limitedUntil({ status }: Pick<GpuInstance, 'status'>, now: number): number {
  const past = (status?.recentStarts ?? []).map((time) => Date.parse(time)).filter((time) => time <= now);
  const first = past.at(-MOST_STARTS);
  return first === undefined ? 0 : first + HOUR_MS;
}

/** When the next start may come, milliseconds since the epoch; 0 for now. */
export function nextStartOf(instance: Pick<GpuInstance, 'metadata' | 'spec' | 'status'>, now: number): number {
  // An edit by the owner does not end the pause after a preemption.
  return Math.max(pausedUntil(instance, now), pauseEnd(instance.status?.preemptions, now), limitedUntil(instance, now));
}

/** The starts of the last hour with one more. */
export function withStart(starts: readonly string[] = [], start: string): string[] {
  const since = Date.parse(start) - HOUR_MS;
  return [...starts.filter((time) => Date.parse(time) > since), start].slice(-MOST_STARTS);
}

/**
 * The failures with one more. `upMs` is how long the failed start had been running. `node`: where it failed, if the node
 * is to blame; `avoided`: where its place was refused.
 */
export function withFailure(
  failures: Failures,
  fact: { now: number; upMs: number; node: string | undefined; avoided?: string | undefined },
): Failures {
  const before = fact.upMs >= GOOD_START_MS ? undefined : failures;
  return {
    count: (before?.count ?? 0) + 1,
    lastTime: new Date(fact.now).toISOString(),
    ...listed('nodes', before, fact.now, fact.node),
    ...listed('avoided', before, fact.now, fact.avoided),
  };
}

function listed(list: 'nodes' | 'avoided', failures: Failures, now: number, node?: string) {
  const nodes = new Set(isRecent(failures, now) ? failures[list] : []);
  if (node !== undefined) nodes.add(node);
  return nodes.size > 0 ? { [list]: [...nodes].slice(-MAX_NODES) } : {};
}

function isRecent(failures: Failures, now: number): failures is NonNullable<Failures> {
  return failures !== undefined && Date.parse(failures.lastTime) + FAILURE_WINDOW_MS > now;
}

/** The failures after a good start: only the nodes stay known, for a while. */
export function withoutCount(failures: Failures, now: number): Failures {
  if (failures === undefined || nodesToAvoid(failures, now).length === 0) return undefined;
  return { ...failures, count: 0 };
}

/** Nodes where a start failed within the window, or was refused its place. */
export function nodesToAvoid(failures: Failures, now: number): string[] {
  if (!isRecent(failures, now)) return [];
  return [...(failures.nodes ?? []), ...(failures.avoided ?? [])];
}

// What containerd and CRI-O (no command, users), runc (exec, chdir) and crun (executable file) say about faults of an
// image or its settings. A runtime that is missing on the node is reported as `exec: "…"` too, but not of a container
// process.
const IMAGE_FAULT =
  /no command specified|runAsNonRoot|container process: (error during container init: )?(exec|chdir)\b|executable file `|no users found|unable to find (user|group)|no matching entries in (passwd|group) file/i;

/** Whether a container cannot be created because of its image or settings: then it would fail on every node. */
export function isImageFault({ reason, message }: { reason: string; message: string }): boolean {
  return reason === 'CreateContainerConfigError' || IMAGE_FAULT.test(message);
}
