import { isNodeSilent } from '../../../inventory/nodes/node-state.ts';
import { findCondition } from '../../../kube/conditions.ts';
import type { Node, Pod } from '../../../kube/types.ts';
import { monthIn } from '../../../ledger/month.ts';
import type { GpuInstance, GpuInstanceStatus } from '../../../resources/instances/gpu-instance.ts';
import { meterBegan } from '../../../resources/instances/meter.ts';
import { MOST_SILENCES, type Silence } from '../../../resources/instances/silence.ts';

/** The node of the current start, and its pod; undefined when they are gone. */
interface Seen {
  node: Node | undefined;
  pod?: Pod | undefined;
}

function readyChangedAt(node: Node | undefined): number {
  return Date.parse(findCondition(node?.status?.conditions, 'Ready')?.lastTransitionTime ?? '');
}

/** Since when the node of the current start is silent, as the status has it, milliseconds since the epoch. */
export function silentSince(status: GpuInstanceStatus | undefined): number | undefined {
  const last = status?.silences?.at(-1);
  return last === undefined || last.to !== undefined ? undefined : Date.parse(last.from);
}

/** When the node last came back from a silence or from being not ready, as far as is known; else 0. */
export function answersSince(status: GpuInstanceStatus | undefined, node: Node | undefined, now: number): number {
  const changed = readyChangedAt(node);
  const last = Date.parse(status?.silences?.at(-1)?.to ?? '');
  return Math.min(now, Math.max(Number.isFinite(changed) ? changed : 0, Number.isFinite(last) ? last : 0));
}

function lengthOf({ from, to = from }: Silence): number {
  return Date.parse(to) - Date.parse(from);
}

/**
 * One silence less: the earlier of the two nearest moves up to the later one. So the sum stays, and so does each month:
 * two of different months come last.
 */
function withoutSmallestGap(silences: readonly Silence[]): Silence[] {
  let best: { index: number; gap: number } | undefined;
  for (const [index, { from, to }] of silences.entries()) {
    const before = silences[index - 1];
    if (before?.to === undefined || to === undefined) continue;
    const isOneMonth = monthIn(before.from) === monthIn(to);
    const gap = Date.parse(from) - Date.parse(before.to) + (isOneMonth ? 0 : Number.MAX_SAFE_INTEGER / 2);
    if (best === undefined || gap < best.gap) best = { index, gap };
  }
  if (best === undefined) return [...silences];
  const { index } = best;
  const [before, after] = [silences[index - 1], silences[index]];
  if (before === undefined || after === undefined) return [...silences];
  const from = new Date(Date.parse(after.from) - lengthOf(before)).toISOString();
  return [...silences.slice(0, index - 1), { ...after, from }, ...silences.slice(index + 1)];
}

/** Those before the meter began count for nothing, and go first. */
function bounded(silences: readonly Silence[], status: GpuInstanceStatus): readonly Silence[] {
  if (silences.length <= MOST_SILENCES) return silences;
  const first = meterBegan(status) ?? NaN;
  const counted = silences.filter(({ to }) => to === undefined || !(Date.parse(to) <= first));
  return counted.length <= MOST_SILENCES ? counted : withoutSmallestGap(counted);
}

/** When the silence of a node begins that answered until now, milliseconds since the epoch. */
function beginningOf(node: Node | undefined, pod: Pod | undefined, now: number): number {
  // The Node object that is gone says nothing. Kubernetes deletes the pods of such a node within a minute.
  const since = node === undefined ? Date.parse(pod?.metadata.deletionTimestamp ?? '') : readyChangedAt(node);
  return Number.isFinite(since) ? Math.min(now, since) : now;
}

/** The silences of the current start until now. The same array when there is nothing new. */
function silencesOf(status: GpuInstanceStatus, { node, pod }: Seen, now: number): readonly Silence[] {
  const known = status.silences ?? [];
  const since = silentSince(status);
  const last = known.at(-1);
  if (node === undefined || isNodeSilent(node)) {
    if (since !== undefined) return known;
    const began = beginningOf(node, pod, now);
    // What was decided of an end stays.
    const notBefore = [status.claim?.grantedAt, last?.to, status.ending?.finishedAt ?? status.ending?.at].map(
      (time) => Date.parse(time ?? '') || 0,
    );
    const from = Math.max(began, ...notBefore);
    return bounded([...known, { from: new Date(from).toISOString() }], status);
  }
  if (since === undefined || last === undefined) return known;
  const changed = readyChangedAt(node);
  // The clock of a node may be wrong, and the Node object may be another by now.
  const back = changed > since && changed <= now ? changed : now;
  const to = Math.max(back, Date.parse(status.ending?.at ?? '') || 0);
  if (to <= since) return known.slice(0, -1);
  return [...known.slice(0, -1), { ...last, to: new Date(to).toISOString() }];
}

/** The instance with the silences of its node until now; the same object when its status has them. */
export function withSilences(instance: GpuInstance, seen: Seen, now: number): GpuInstance {
  const { status } = instance;
  if (status?.claim === undefined) return instance;
  const silences = silencesOf(status, seen, now);
  if (silences === status.silences || (silences.length === 0 && status.silences === undefined)) return instance;
  return { ...instance, status: { ...status, silences: [...silences] } };
}
