import { FAILURE_WINDOW_MS } from '../../../inventory/nodes/quarantine.ts';
import type { GpuInstance, GpuInstanceStatus } from '../../../resources/instances/gpu-instance.ts';
import { isAskedForAgain } from '../../../resources/instances/instance-state.ts';

type Failures = GpuInstanceStatus['failures'];

const FIRST_MS = 1_000;
const FACTOR = 4;
const LONGEST_MS = 600_000;
/** After a start that ran for this long, earlier failures are forgotten. */
const GOOD_START_MS = 600_000;
const MAX_NODES = 16;

/** Milliseconds to wait after failures in a row: 1, 4, 16, 64, 256, then 600 seconds. At most eleven pods an hour. */
function pauseAfter(count: number): number {
  return Math.min(LONGEST_MS, FIRST_MS * FACTOR ** (count - 1));
}

/** When the next start may come, milliseconds since the epoch; 0 after no failure or after an edit by the owner. */
export function nextStartOf(instance: Pick<GpuInstance, 'metadata' | 'spec' | 'status'>): number {
  const { failures } = instance.status ?? {};
  if (isAskedForAgain(instance) || failures === undefined || failures.count === 0) return 0;
  return Date.parse(failures.lastTime) + pauseAfter(failures.count);
}

/** The failures with one more. `upMs` is how long the failed start had been running. */
export function withFailure(
  failures: Failures,
  fact: { now: number; upMs: number; node: string | undefined },
): Failures {
  const before = fact.upMs >= GOOD_START_MS ? undefined : failures;
  const nodes = new Set(nodesToAvoid(before, fact.now));
  if (fact.node !== undefined) nodes.add(fact.node);
  return {
    count: (before?.count ?? 0) + 1,
    lastTime: new Date(fact.now).toISOString(),
    ...(nodes.size > 0 && { nodes: [...nodes].slice(-MAX_NODES) }),
  };
}

/** Nodes where a start failed within the window. */
export function nodesToAvoid(failures: Failures, now: number): string[] {
  if (failures === undefined || Date.parse(failures.lastTime) + FAILURE_WINDOW_MS <= now) return [];
  return failures.nodes ?? [];
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
