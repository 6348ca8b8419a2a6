import { instanceIndexKey } from '../../../caches/indexes.ts';
import { closedBill } from '../decide/usage.ts';
import { writeUsageRecord } from './clean-up.ts';
import type { Run } from './run.ts';
import { deletePods } from './writes.ts';

/** Writes the usage of instances of this key that went without a record, the open start included. Deletes their pods. */
export async function writeLateUsageRecords(run: Run): Promise<void> {
  const { deps, key, context } = run;
  for (const instance of deps.unrecorded.withKey(key)) {
    const { status = {}, metadata } = instance;
    const end = status.ending === undefined ? deps.clock.now() : Date.parse(status.ending.at);
    const final = { ...status, ...closedBill(status, end) };
    context.log.warn({ uid: metadata.uid, usage: final.usage }, 'Instance went without a usage record; writing it now');
    await writeUsageRecord(run, { ...instance, status: final });
    // Kubernetes collects the pods too, but later. Until then nobody pays for their GPUs.
    const pods = deps.stores.pods.by('instance', instanceIndexKey(metadata.namespace, metadata.uid));
    await deletePods(run, pods);
    deps.unrecorded.forget(instance);
  }
}
