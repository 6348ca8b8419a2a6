import type { Logger } from 'pino';
import type { Inventory } from '../../../src/inventory/inventory.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import type { ReadStore } from '../../../src/kube/watch/store.ts';
import { type Condition, keyOf } from '../../../src/kube/types.ts';
import { shownIn } from '../../../src/kube/watch/resource-version.ts';
import { FINALIZER } from '../../../src/resources/cleanup.ts';
import { type Claim, GPU_INSTANCES, type GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';

function condition(type: string, status: 'True' | 'False', reason: string, message = ''): Condition {
  return { type, status, reason, message, lastTransitionTime: new Date().toISOString() };
}

function claimOf(inventory: Inventory, instance: GpuInstance): Claim | string {
  const { spec } = instance;
  const granted = inventory.grant({
    offerId: spec.offerId,
    gpu: spec.gpu,
    type: spec.type,
    diskGb: spec.diskGb ?? 10,
    offerDiskSpace: spec.offerDiskSpace,
    image: spec.image ?? '',
    avoid: new Set(),
    only: undefined,
  });
  if ('refusal' in granted) return granted.refusal;
  const { offerClass, node, diskGbMax } = granted.place;
  return {
    offerId: offerClass.id,
    pool: offerClass.pool.name,
    node,
    resourceName: offerClass.resourceName,
    product: offerClass.product,
    gpuCount: offerClass.gpuCount,
    memoryMb: offerClass.memoryMb,
    isolation: offerClass.isolation,
    ...(offerClass.migProfile !== undefined && { migProfile: offerClass.migProfile }),
    pricePerHour: spec.type === 'Interruptible' ? offerClass.prices.interruptible : offerClass.prices.onDemand,
    currency: offerClass.prices.currency,
    simulated: offerClass.simulated,
    diskGbMax,
    grantedAt: new Date().toISOString(),
  };
}

/**
 * Grants and refuses places as the controller does, lets deleted instances go, and does nothing else: for tests and benchmarks of the HTTP
 * interface alone. Works on the instances of one namespace.
 */
export function startGranter(deps: {
  client: KubeClient;
  instances: ReadStore<GpuInstance>;
  inventory: Inventory;
  serves: (namespace: string) => boolean;
  log: Logger;
}): () => void {
  const { client, instances, inventory, log } = deps;
  const seen = new Set<string>();

  async function decide(instance: GpuInstance): Promise<void> {
    const { namespace, name, uid } = instance.metadata;
    const claim = claimOf(inventory, instance);
    const granted = typeof claim !== 'string';
    if (granted) inventory.assume(instance, claim, { gb: instance.spec.diskGb ?? 10, persistent: false });
    const refusal = granted ? '' : claim;
    const reason = instance.spec.onNoCapacity === 'Queue' ? 'WaitingForCapacity' : refusal;
    const status = granted
      ? {
          claim,
          incarnation: 1,
          conditions: [condition('Claimed', 'True', 'Granted'), condition('Ready', 'False', 'Scheduling')],
        }
      : { conditions: [condition('Claimed', 'False', reason), condition('Ready', 'False', reason)] };
    const body = { metadata: { uid }, status };
    const written = await client.patch(GPU_INSTANCES, { namespace, name }, body, {
      type: 'merge',
      subresource: 'status',
    });
    if (granted) inventory.written(keyOf(written), shownIn(instances, written));
  }

  async function release({ metadata }: GpuInstance): Promise<void> {
    const finalizers = metadata.finalizers?.filter((one) => one !== FINALIZER) ?? [];
    await client.patch(GPU_INSTANCES, metadata, { metadata: { uid: metadata.uid, finalizers } }, { type: 'merge' });
  }

  const failed = (error: unknown): void => log.warn({ err: error }, 'The test double failed to decide');
  return instances.onChange(({ after }) => {
    if (after?.metadata.deletionTimestamp !== undefined && after.metadata.finalizers?.includes(FINALIZER)) {
      if (deps.serves(after.metadata.namespace ?? '')) release(after).catch(failed);
      return;
    }
    if (after === undefined || after.status?.conditions !== undefined || seen.has(after.metadata.uid ?? '')) return;
    if (!deps.serves(after.metadata.namespace ?? '')) return;
    seen.add(after.metadata.uid ?? '');
    decide(after).catch(failed);
  });
}
