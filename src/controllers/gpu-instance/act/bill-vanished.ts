import { instanceIndexKey } from '../../../caches/indexes.ts';
import { closedBill } from '../decide/usage.ts';
import { writeUsageRecord } from './clean-up.ts';
import type { Run } from './run.ts';
import { deletePods } from './writes.ts';

/** Writes the usage of instances of this key that vanished, with the start that was open, and ends their pods. */
export async function billVanished(run: Run): Promise<void> {
  const { deps, key, context } = run;
  for (const instance of deps.vanished.of(key)) {
    const { status = {}, metadata } = instance;
    const end = status.ending === undefined ? deps.clock.now() : Date.parse(status.ending.at);
    const final = { ...status, ...closedBill(status, end) };
    context.log.warn(
      { uid: metadata.uid, usage: final.usage },
      'An instance went without being cleaned up; its bill is written',
    );
    await writeUsageRecord(run, { ...instance, status: final });
    // Kubernetes collects them too, in its own time; until then nobody pays for their GPUs.
    const pods = deps.stores.pods.by('instance', instanceIndexKey(metadata.namespace, metadata.uid));
    await deletePods(run, pods);
    deps.vanished.forget(metadata.uid ?? '');
  }
}
