import type { ReadStore } from '../../kube/watch/store.ts';
import type { GpuInstance } from '../../resources/instances/gpu-instance.ts';
import { FINALIZER } from '../gpu-instance/decide/names.ts';
import type { UnrecordedInstances } from '../gpu-instance/unrecorded.ts';
import type { FirstSeen } from './first-seen.ts';

export interface LedgerSource {
  instances: ReadStore<GpuInstance>;
  unrecorded: Pick<UnrecordedInstances, 'all'>;
}

/** Instances that go or are gone, that had a start, and whose bill is in no usage record yet. */
function withoutRecord({ instances, unrecorded }: LedgerSource): GpuInstance[] {
  const going = [...instances.values()].filter(
    ({ metadata, status }) =>
      metadata.deletionTimestamp !== undefined &&
      (status?.incarnation ?? 0) > 0 &&
      metadata.finalizers?.includes(FINALIZER) === true,
  );
  return [...going, ...unrecorded.all()];
}

/** How long the oldest of these bills has waited for its usage record, in seconds; 0 when none waits. */
export function ledgerLag(source: LedgerSource, firstSeen: FirstSeen, now: number): number {
  const late = withoutRecord(source);
  const seen = firstSeen.note(late, now);
  const since = late.map(({ metadata: { deletionTimestamp, uid = '' } }) =>
    deletionTimestamp === undefined ? (seen.get(uid) ?? now) : new Date(deletionTimestamp).getTime(),
  );
  return Math.max(0, ...since.map((time) => (now - time) / 1000));
}
