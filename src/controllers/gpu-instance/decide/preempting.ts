import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { UNBILLED_WINDOW_MS, type UnbilledPlace } from './unbilled.ts';

/**
 * Whether an instance was told to end for a request. One that ended for an earlier start of it, and waits still, says so
 * too: the status of the request says whether it is for this one.
 */
export function haveOthersEnded(
  instances: Iterable<GpuInstance>,
  { metadata: { uid }, status: asked }: Pick<GpuInstance, 'metadata' | 'status'>,
): boolean {
  if (asked?.othersEnded !== true) return false;
  for (const { status } of instances) if (status?.ending?.by !== undefined && status.ending.by === uid) return true;
  return false;
}

/** What a tenant's earlier starts say of one that others would have to end for. */
export interface PreemptingPast {
  /** Places that its starts held in vain. */
  past: readonly UnbilledPlace[];
  /** When requests went, or starts ended before they ran, for which others had ended; milliseconds since the epoch. */
  withdrawn: readonly number[];
  /** Whether a container of this image runs in the tenant. */
  isRunning: boolean;
}

const FIRST_PAUSE_MS = 300_000;
const FACTOR = 4;

function clock(ms: number): string {
  return new Date(ms).toISOString();
}

/**
 * Why nobody ends for a start of this image, and until when; undefined when others may. A place that is free it gets. An
 * image that came to no container of the tenant lately must run once first. A tenant that takes back a request for which others ended
 * ends nobody for five minutes, and for four times as long each time.
 */
export function preemptingRefusal(
  { past, withdrawn, isRunning }: PreemptingPast,
  image: string,
  now: number,
): { message: string; until: number } | undefined {
  const since = now - UNBILLED_WINDOW_MS;
  const failed = isRunning
    ? []
    : past.filter((place) => place.image === image && !place.isFaultOfCluster && place.to > since);
  const gone = withdrawn.filter((at) => at > since);
  const untilRun = Math.max(0, ...failed.map(({ to }) => to)) + (failed.length > 0 ? UNBILLED_WINDOW_MS : 0);
  const pause = Math.min(UNBILLED_WINDOW_MS, FIRST_PAUSE_MS * FACTOR ** (gone.length - 1));
  const untilPaused = gone.length > 0 ? Math.max(...gone) + pause : 0;
  const until = Math.max(untilRun, untilPaused);
  if (until <= now) return undefined;
  const why =
    untilRun > now
      ? `the last start of this tenant with the image ${image} ended before its container ran`
      : 'others ended for requests of this tenant that it took back, or that never ran';
  const mend = untilRun > now ? `, or a container of that image runs in this tenant` : '';
  return { message: `Nobody ends for it before ${clock(until)}${mend}: ${why}.`, until };
}
