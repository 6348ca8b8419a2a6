import { hasEnded } from '../../../kube/pod-phase.ts';
import type { Pod } from '../../../kube/types.ts';
import type { GpuInstance, GpuInstanceStatus } from '../../../resources/instances/gpu-instance.ts';
import { meterBegan } from '../../../resources/instances/meter.ts';
import type { Observed } from './observed.ts';
import { behindMs, firstRunOf, mainStatus } from './pod/pod-facts.ts';

/** Pods get this long to end. What a start holds longer after its end was decided is not billed. */
export const GRACE_MS = 30_000;

/** When the container of a pod had ended, as its node says; undefined while it may go on or start again. */
function finishOf(instance: GpuInstance, pod: Pod, decided: number): number | undefined {
  const said = Date.parse(mainStatus(pod)?.state?.terminated?.finishedAt ?? '');
  const finished = said > 0 ? said + behindMs(instance, pod) : Number.NaN;
  // One that ended before the decision may be between two restarts.
  return finished > decided || (finished > 0 && hasEnded(pod)) ? finished : undefined;
}

/** Whether the node was silent when the end was decided: a program that had ended before could not be heard. */
function wasUnheard(silences: GpuInstanceStatus['silences'] = [], decided: number): boolean {
  return silences.some(
    ({ from, to }) => Date.parse(from) <= decided && (to === undefined || Date.parse(to) >= decided),
  );
}

/**
 * The instance with the moment at which its container had ended, once its kubelet says so: not before the decision, which
 * held the place until then, unless the node was silent, and no later than the grace after it, whatever the clock of the
 * node says. An ending that knew when the use ended keeps that.
 */
export function withFinish({ instance, pod, now }: Pick<Observed, 'instance' | 'pod' | 'now'>): GpuInstance {
  const { status } = instance;
  const ending = status?.ending;
  if (pod === undefined || status?.claim === undefined || ending === undefined) return instance;
  if (ending.finishedAt === ending.at) return instance;
  const decided = Date.parse(ending.at);
  const finished = finishOf(instance, pod, decided);
  if (finished === undefined) return instance;
  const latest = Math.min(now, decided + GRACE_MS);
  const isEarlier = hasEnded(pod) && wasUnheard(status.silences, decided);
  // A clock that is behind makes no start free. The beginning may be heard of with the end.
  const ran = firstRunOf(pod);
  const began = meterBegan(status) ?? (ran === undefined ? decided : ran + behindMs(instance, pod));
  const earliest = isEarlier ? began : Number.POSITIVE_INFINITY;
  const known = Math.min(earliest, Date.parse(ending.finishedAt ?? ending.at));
  const finishedAt = new Date(Math.max(known, Math.min(finished, latest))).toISOString();
  return { ...instance, status: { ...status, ending: { ...ending, finishedAt } } };
}
