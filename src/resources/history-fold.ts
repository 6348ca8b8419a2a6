import { hash } from 'node:crypto';
import { findCondition, rfc3339 } from '../kube/conditions.ts';
import { sameJson } from '../lib/json.ts';
import { gpusAre, recoveredAt } from './instances/gpu-health.ts';
import { ANSWERED, type GpuInstance, STAGES } from './instances/gpu-instance.ts';
import type { ReadyReason } from './instances/instance-state.ts';
import { type HistoryEntry, type InstanceHistorySpec, MAX_ENTRIES, MAX_MESSAGE } from './instance-history.ts';

type Stage = (typeof STAGES)[number];
/** What a history is made from. */
type Reported = Pick<GpuInstance, 'metadata' | 'status'>;

const STAGE_WORDS: Readonly<Record<Stage, { reason: string; message: string }>> = {
  accepted: { reason: 'Accepted', message: 'The controller accepted the instance.' },
  claimed: { reason: 'Claimed', message: 'The controller granted a place.' },
  scheduled: { reason: 'Scheduled', message: 'The scheduler bound the pod to the node.' },
  pulled: { reason: 'Pulled', message: 'The image is on the node.' },
  started: { reason: 'Started', message: 'The container runs.' },
  ready: { reason: 'Ready', message: 'The instance is ready.' },
  stopped: { reason: 'StartEnded', message: 'The pod is gone, and the GPUs are free.' },
};

const ACCEPTED = STAGE_WORDS.accepted.reason;
const GPUS_RECOVERED = 'GPURecovered';

/** Steps on the way, and what was asked for. Any other reason of the Ready condition is a warning. */
const ORDINARY: ReadonlySet<string> = new Set<ReadyReason>([
  'Pending',
  'WaitingForCapacity',
  'PlaceComing',
  'Scheduling',
  'PullingImage',
  'Starting',
  'WaitingForLogin',
  'Running',
  'Stopping',
  'Stopped',
  'Expired',
  'Idle',
  'Completed',
  'Deleting',
]);

/** The reasons that only a history has. */
const TOLD: ReadonlySet<string> = new Set([
  ...Object.values(STAGE_WORDS).map(({ reason }) => reason),
  'Deleted',
  GPUS_RECOVERED,
]);

/** Stages that a state outlasts: after them the same state is no second one. */
const PASSED: ReadonlySet<string> = new Set(
  STAGES.filter((stage) => stage !== 'ready').map((stage) => STAGE_WORDS[stage].reason),
);

/** Among so many of the last entries a repeated state is counted up instead of told again. */
const RECENT = 8;

function entry(fields: Pick<HistoryEntry, 'at' | 'reason' | 'message' | 'start'>): HistoryEntry {
  const message = fields.message.slice(0, MAX_MESSAGE).toWellFormed();
  const isWarning = !ORDINARY.has(fields.reason) && !TOLD.has(fields.reason);
  return { ...fields, message, type: isWarning ? 'Warning' : 'Normal', count: 1 };
}

/** The start that the acceptance is told of: it belongs to the instance, and happens once. */
const BEFORE_ALL = 0;

function isSameSecond(left: string, right: string): boolean {
  return Math.floor(Date.parse(left) / 1000) === Math.floor(Date.parse(right) / 1000);
}

/** What the status says has happened, each with its own time. */
function datedEntries({ metadata, status = {} }: Reported): HistoryEntry[] {
  const { incarnation: start = 0, stages = {}, claim, ending } = status;
  const found: HistoryEntry[] = [];
  for (const stage of STAGES) {
    // A start ends for its reason, and then its pod is gone: often in the same second.
    if (stage === 'stopped' && ending !== undefined) {
      const { at, reason, message } = ending;
      found.push(entry({ at, reason, message, start }));
    }
    const known = stages[stage];
    if (known === undefined) continue;
    // Its pod ends in whole seconds.
    const at = stage === 'stopped' && ending !== undefined && isSameSecond(known, ending.at) ? ending.at : known;
    const { reason, message } = STAGE_WORDS[stage];
    const isClaim = stage === 'claimed' && claim !== undefined;
    const place = isClaim ? ` It is on the node ${claim.node}: ${claim.gpuCount} ${claim.product}.` : '';
    found.push(entry({ at, reason, message: message + place, start: stage === 'accepted' ? BEFORE_ALL : start }));
  }
  for (const [at, gpus] of Map.groupBy(status.unhealthyGPUs ?? [], ({ since }) => since)) {
    const message = `${gpusAre(gpus)} unhealthy, as the node reports.`;
    found.push(entry({ at, reason: 'GPUBecameUnhealthy', message, start }));
  }
  const recovered = recoveredAt(status);
  if (recovered !== undefined) {
    const message = 'The GPUs of the instance are healthy again.';
    found.push(entry({ at: recovered, reason: GPUS_RECOVERED, message, start }));
  }
  const at = metadata.deletionTimestamp;
  if (at !== undefined) found.push(entry({ at, reason: 'Deleting', message: 'Its deletion was asked for.', start }));
  return found;
}

/** What the instance waits for now. Its time is when it is seen. */
function stateEntry({ metadata, status = {} }: Reported, at: string): HistoryEntry | undefined {
  const ready = findCondition(status.conditions, 'Ready');
  if (ready === undefined || ready.status === 'True' || metadata.deletionTimestamp !== undefined) return undefined;
  if (ready.reason === status.ending?.reason) return undefined;
  // Why the start ends is told: that its pod still stops would stand after it as if it followed from it.
  if (ready.reason === 'Stopping' && status.ending !== undefined) return undefined;
  const { reason, message } = ready;
  return entry({ at, reason, message, start: status.incarnation ?? 0 });
}

function withState(entries: readonly HistoryEntry[], state: HistoryEntry): HistoryEntry[] {
  const isSame = ({ reason, start }: HistoryEntry): boolean => reason === state.reason && start === state.start;
  const at = entries.findLastIndex(isSame);
  const last = entries[at];
  if (last === undefined || at < entries.length - RECENT) return [...entries, state];
  const since = last.lastAt ?? last.at;
  const isNewest = entries.every((one) => (one.lastAt ?? one.at) <= since || PASSED.has(one.reason));
  if (isNewest && last.message === state.message) return [...entries];
  const { recordedAt: _before, ...rest } = last;
  const again = { ...rest, message: state.message, count: last.count + 1, lastAt: state.at };
  return entries.with(at, again);
}

/** Whether two versions of an instance have the same history. */
export function sameHistory(left: GpuInstance, right: GpuInstance): boolean {
  return sameJson(factsOf(left), factsOf(right));
}

function factsOf(instance: GpuInstance): unknown {
  const isAnswered = instance.metadata.annotations?.[ANSWERED] !== undefined;
  return [datedEntries(instance), stateEntry(instance, ''), ...(isAnswered ? [ANSWERED] : [])];
}

/** The same as a short text: what the history of an instance was made from. */
export function factsHash(instance: GpuInstance, gone: boolean): string {
  return hash('sha256', JSON.stringify([factsOf(instance), gone]), 'base64url').slice(0, 16);
}

/**
 * The history with what the instance says now. It may be called at any time and any number of times: what it has told
 * it does not tell again.
 *
 * @param when.now when the state is seen; `recordedAt`: by which the new entries sort; both milliseconds since the epoch
 */
export function fold(
  history: InstanceHistorySpec | undefined,
  instance: Reported,
  { gone, now, recordedAt: noted = now }: { gone: boolean; now: number; recordedAt?: number },
): InstanceHistorySpec {
  const at = rfc3339(now);
  const { name, uid = '' } = instance.metadata;
  const { entries: old, dropped, ...rest } = history ?? { instance: name, instanceUid: uid, entries: [], dropped: 0 };
  // What gave way before must not come back.
  const floor = dropped > 0 ? (old[0]?.at ?? '') : '';
  const isNew = (one: HistoryEntry): boolean => {
    // The oldest of all. Earlier versions told it of each start.
    if (one.reason === ACCEPTED) return dropped === 0 && !old.some(({ reason }) => reason === ACCEPTED);
    return (
      one.at >= floor &&
      !old.some(({ at: when, reason, start }) => when === one.at && reason === one.reason && start === one.start)
    );
  };
  const dated = datedEntries(instance).filter(isNew);
  let entries = [...old, ...dated].toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at));
  const state = gone ? undefined : stateEntry(instance, at);
  if (state !== undefined) entries = withState(entries, state);
  if (gone && rest.endedAt === undefined) {
    const start = instance.status?.incarnation ?? 0;
    // `at` has whole seconds, and nothing is told of an instance after it is gone.
    const last = entries.at(-1)?.at;
    const goneAt = last !== undefined && Date.parse(last) > Date.parse(at) ? last : at;
    entries = [...entries, entry({ at: goneAt, reason: 'Deleted', message: 'The instance is gone.', start })];
  }
  const recordedAt = [rfc3339(noted), ...old.map((one) => one.recordedAt ?? '')].reduce((a, b) => (a > b ? a : b));
  entries = entries.map((one) => (old.includes(one) ? one : { ...one, recordedAt }));
  const over = Math.max(0, entries.length - MAX_ENTRIES);
  return {
    ...rest,
    ...(gone && rest.endedAt === undefined && { endedAt: at }),
    dropped: dropped + over,
    entries: entries.slice(over),
  };
}
