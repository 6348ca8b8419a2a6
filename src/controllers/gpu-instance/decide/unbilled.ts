import { findCondition } from '../../../kube/conditions.ts';
import type { GpuInstance, GpuInstanceStatus } from '../../../resources/instances/gpu-instance.ts';
import { firstRan, meterBegan } from '../../../resources/instances/meter.ts';
import { endingOf, isByTenant, isFaultOfCluster, type SeenEnding } from './endings.ts';

/** A place that a start held until its end, and whose container never ran. */
export interface UnbilledPlace {
  from: number;
  to: number;
  /** Those that nobody paid for. */
  gpus: number;
  /** Its image, where that may be why its container never ran; else empty. */
  image: string;
  /** Whether the cluster may be to blame. */
  isFaultOfCluster: boolean;
}

/** What a tenant has held without a bill, and holds. */
export interface UnbilledUse {
  /** Places of the window, in any order. */
  past: readonly UnbilledPlace[];
  /** GPUs that it holds now, with a bill and without one. */
  billed: number;
  unbilled: number;
}

/** For how long a tenant is asked about what it held for nothing. */
export const UNBILLED_WINDOW_MS = 21_600_000;
/** In that time so much is nobody's business: a large image that did not come, or a name with a typing error. */
const FREE_GPU_MS = 3_600_000;
/** A disk that is never bound, or a sandbox that fails, may be the tenant's doing as well: such a place counts for less. */
const DOUBT = 1 / 4;
/** A start that was stopped or deleted sooner says nothing of its image: its owner may have had second thoughts. */
const SUSPICIOUS_MS = 300_000;
const FAULTS_OF_IMAGE: ReadonlySet<string> = new Set(['ImagePullFailed', 'InvalidImage', 'ContainerInvalid']);
/** A tenant that held places for nothing waits for this part of the time before the next. */
const PAUSE_PART = 1 / 4;
const LONGEST_PAUSE_MS = 3_600_000;

/** Whether a tenant is asked about what a start held that ended so. */
function isAskedAbout(reason: SeenEnding['reason']): boolean {
  return reason !== 'NodeLost' && (isByTenant(reason) || isFaultOfCluster(reason));
}

/** The place that the last start of an instance held in vain; undefined when there is none, or it still holds it. */
export function unbilledPlaceOf(status: GpuInstanceStatus | undefined): UnbilledPlace | undefined {
  const { claim, stages, lastProduct, image = '', usage } = status ?? {};
  const reason = endingOf(status)?.reason;
  if (claim !== undefined || reason === undefined || !isAskedAbout(reason)) return undefined;
  const from = Date.parse(stages?.claimed ?? '');
  const to = Date.parse(stages?.stopped ?? '');
  if (firstRan(stages) !== undefined || !(to > from)) return undefined;
  const isPaid = Date.parse(usage?.until ?? '') > from;
  const isSuspicious = FAULTS_OF_IMAGE.has(reason) || to - from >= SUSPICIOUS_MS;
  return {
    from,
    to,
    gpus: isPaid ? 0 : (lastProduct?.gpuCount ?? 0),
    image: isSuspicious ? image : '',
    isFaultOfCluster: isFaultOfCluster(reason),
  };
}

/** The place of an instance that went with it. */
export function unbilledPlaceOfGone({ status }: Pick<GpuInstance, 'status'>, now: number): UnbilledPlace | undefined {
  const { claim, stages, image = '' } = status ?? {};
  const reason = endingOf(status)?.reason;
  if (claim === undefined || firstRan(stages) !== undefined) return undefined;
  if (reason !== undefined && !isAskedAbout(reason)) return undefined;
  const gpus = meterBegan(status) === undefined ? claim.gpuCount : 0;
  const from = Date.parse(claim.grantedAt);
  const isRefused = findCondition(status?.conditions, 'Ready')?.reason === 'ImagePullBackOff';
  const isSuspicious = isRefused || now - from >= SUSPICIOUS_MS;
  return {
    from,
    to: now,
    gpus,
    image: isSuspicious ? image : '',
    isFaultOfCluster: reason !== undefined && isFaultOfCluster(reason),
  };
}

/**
 * Whether others ended in vain for the start whose place an instance has lost: its container never ran, and its tenant is
 * at fault. `after`: undefined when the instance is gone.
 */
export function haveEndedInVain(before: GpuInstanceStatus | undefined, after: GpuInstanceStatus | undefined): boolean {
  if (firstRan(before?.stages) !== undefined || meterBegan(before) === undefined) return false;
  if (after === undefined) return true;
  const reason = endingOf(after)?.reason;
  return (
    after.claim === undefined && firstRan(after.stages) === undefined && reason !== undefined && isByTenant(reason)
  );
}

/** For how long any of these places was held. */
function heldMs(places: readonly UnbilledPlace[]): number {
  let [held, until] = [0, 0];
  for (const { from, to } of places.toSorted((a, b) => a.from - b.from)) {
    held += Math.max(0, to - Math.max(from, until));
    until = Math.max(until, to);
  }
  return held;
}

function gpuMsOf(places: readonly UnbilledPlace[]): number {
  return places.reduce((sum, { from, to, gpus }) => sum + (to - from) * gpus, 0);
}

/** GPU milliseconds that count towards what a tenant may hold for nothing. */
function countedMs(recent: readonly UnbilledPlace[]): number {
  return gpuMsOf(recent) - (1 - DOUBT) * gpuMsOf(recent.filter((place) => place.isFaultOfCluster));
}

/** Whether a tenant held so much for nothing that it must outlive a restart of all replicas. Few ever do. */
export function isMuch(past: readonly UnbilledPlace[]): boolean {
  return countedMs(past) > FREE_GPU_MS / 2;
}

function hours(ms: number): string {
  return (ms / 3_600_000).toFixed(1);
}

/**
 * Why a tenant does not get so many GPUs more now, and until when at the latest; undefined when it may have them. A tenant
 * whose starts held many GPUs for nothing gets one start at a time, after a pause that grows with what it held, or as many
 * GPUs as it runs and pays for. A tenant whose containers run never hears of this.
 */
export function unbilledRefusal(
  { past, billed, unbilled }: UnbilledUse,
  wanted: number,
  now: number,
): { message: string; until: number } | undefined {
  const recent = past.filter(({ to, gpus }) => gpus > 0 && to > now - UNBILLED_WINDOW_MS);
  const gpuMs = gpuMsOf(recent);
  if (countedMs(recent) <= FREE_GPU_MS || unbilled + wanted <= billed) return undefined;
  const last = Math.max(...recent.map(({ to }) => to));
  const next = last + Math.min(LONGEST_PAUSE_MS, heldMs(recent) * PAUSE_PART);
  if (unbilled === 0 && next <= now) return undefined;
  const why = `Starts of this tenant held ${hours(gpuMs)} GPU hours in the last ${UNBILLED_WINDOW_MS / 3_600_000} hours, ended before their containers ran, and cost nothing.`;
  const rule = 'For a while it gets one start at a time, or as many GPUs as it runs and pays for.';
  const when =
    unbilled === 0
      ? `The next start is due at ${new Date(next).toISOString()}.`
      : `This start waits until the containers of the others run, or their starts are over.`;
  const mend = `See that the image can be fetched and its container starts.`;
  return { message: `${why} ${rule} ${when} ${mend}`, until: unbilled === 0 ? next : now + LONGEST_PAUSE_MS };
}
