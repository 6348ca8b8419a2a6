import type { Inventory } from '../../inventory/inventory.ts';
import { makerOf } from '../../inventory/makers/makers.ts';
import { freeOf, largestOf, type NodeFacts } from '../../inventory/nodes/node-view.ts';
import type { Offer } from '../../inventory/offers.ts';
import { poolIsolation } from '../../inventory/pool-isolation.ts';
import { type Finding, setCondition } from '../../kube/conditions.ts';
import { keyOf } from '../../kube/types.ts';
import {
  deviceClassNamesOf,
  GPU_POOLS,
  type GpuPool,
  type GpuPoolStatus,
  MOST_CLASSES,
} from '../../resources/gpu-pool.ts';
import type { Source } from '../../runtime/source.ts';
import type { CommonDeps } from '../common-deps.ts';
import { DelayedCall } from '../delayed-call.ts';
import { imageProgress, imagesReady, type Pulls } from '../images/progress.ts';
import { readyStatus, type StatusKind } from './status-controller.ts';

/** The counts may be this old: a write for each claim would double the writes of a claim. */
const DELAY_MS = 2_000;

export interface PoolStatusDeps extends CommonDeps {
  pulls: Pulls;
}

/** All pools, some time after a change of the inventory or the end of a pull. */
function inventorySource({ stores, inventory, clock, pulls }: PoolStatusDeps): Source {
  return {
    synced: Promise.resolve(),
    start(add) {
      const call = new DelayedCall(clock, DELAY_MS, () => {
        for (const pool of stores.pools.values()) add(keyOf(pool));
      });
      const stops = [inventory, pulls.attempts].map((one) => one.onChange(() => call.request()));
      return () => {
        for (const stop of stops) stop();
        call.cancel();
      };
    },
  };
}

/** Classes that the summary names. */
const IN_SUMMARY = 4;

type Class = NonNullable<GpuPoolStatus['classes']>[number];

function classOf(offer: Offer): Class {
  const { id: offerId, product, gpuCount, memoryMb, isolation, migProfile, simulated, available: free, prices } = offer;
  return {
    offerId,
    product,
    gpuCount,
    memoryMb,
    isolation,
    simulated,
    free,
    onDemand: prices.onDemand,
    interruptible: prices.interruptible,
    ...(migProfile !== undefined && { migProfile }),
  };
}

function summaryOf(classes: readonly Class[]): string {
  const words = classes
    .slice(0, IN_SUMMARY)
    .map(({ product, gpuCount, onDemand, free }) => `${gpuCount} x ${product} at ${onDemand}: ${free} free`);
  const more = classes.length - words.length;
  return [...words, ...(more > 0 ? [`${more} more`] : [])].join('; ');
}

/** What a pool rents out, for `kubectl get gpupools`. */
export function listClasses(offers: readonly Offer[]): Required<Pick<GpuPoolStatus, 'offers' | 'classes' | 'summary'>> {
  const all = offers.map(classOf);
  return { offers: all.length, classes: all.slice(0, MOST_CLASSES), summary: summaryOf(all) };
}

function countPool(pool: string, nodes: readonly NodeFacts[], inventory: Inventory) {
  const counts = { nodes: 0, gpus: 0, free: 0 };
  for (const facts of nodes) {
    const view = inventory.viewOf(facts.name);
    if (view === undefined || facts.resources.length === 0) continue;
    counts.nodes += 1;
    for (const { resourceName, total } of largestOf(facts)) {
      counts.gpus += total;
      if (!facts.isClosed && !view.quarantined && !view.switched) counts.free += freeOf(view, resourceName);
    }
  }
  return { ...counts, ...listClasses(inventory.offers().filter((offer) => offer.pool === pool)) };
}

const HAS_NODES = { status: 'True', reason: 'HasNodes', message: 'The nodes of the pool are for rent.' } as const;
const NO_NODES = {
  status: 'False',
  reason: 'NoNodes',
  message: 'No node with GPUs has the labels of spec.nodeSelector. Label a node, or change the selector.',
} as const;

function noNodes({ devices }: GpuPool['spec'], inventory: Inventory): Omit<Finding, 'type'> {
  if (devices === undefined) return NO_NODES;
  const { deviceClassName } = devices;
  const names = deviceClassNamesOf(devices);
  const [gap] = names.flatMap((name) => inventory.deviceClassGap(name) ?? []);
  if (gap !== undefined) return { status: 'False', reason: 'DeviceClassNotSold', message: gap };
  if (deviceClassName !== undefined) {
    const message = `No node with the labels of spec.nodeSelector has devices of DeviceClass ${names.join(' or ')} in ResourceSlices, all of one product. Look at kubectl get resourceslices, label a node, or change spec.nodeSelector or spec.devices.`;
    return { ...NO_NODES, message };
  }
  const known = makerOf(devices).resourceNames.join(' or ');
  const message = `No node with the labels of spec.nodeSelector has whole GPUs under the name ${known}. Install their device plugin, label a node, or change spec.nodeSelector or spec.devices.`;
  return { ...NO_NODES, message };
}

/** Names the pools whose tenants may not be kept apart, in one line of the log. */
export function logIsolation({ inventory, log }: Pick<CommonDeps, 'inventory' | 'log'>): void {
  const inPools = [...inventory.nodes()].filter(({ pool }) => pool !== undefined);
  const byPool = Map.groupBy(inPools, ({ pool }) => pool?.name ?? '');
  const found = [...byPool].map(([pool, nodes]) => ({ pool, ...poolIsolation(nodes) }));
  const pools = found.filter(({ status, reason }) => status !== 'True' && reason !== 'NoNodes');
  if (pools.length > 0) log.warn({ pools }, 'Tenants of these pools may not be kept apart');
}

/** The conditions with those of the isolation and of the images. A pool that lists no images has no ImagesReady. */
function withFindings(
  { metadata: { generation } }: GpuPool,
  conditions: NonNullable<GpuPoolStatus['conditions']>,
  { nodes, images, now }: { nodes: readonly NodeFacts[]; images: Finding | undefined; now: number },
): NonNullable<GpuPoolStatus['conditions']> {
  const context = { observedGeneration: generation, now };
  const isolated = setCondition(conditions, { type: 'Isolated', ...poolIsolation(nodes) }, context);
  const all =
    images === undefined
      ? isolated.filter(({ type }) => type !== 'ImagesReady')
      : setCondition(isolated, images, context);
  // metav1.Condition types its status as a string; Finding allows the three words alone.
  return all as typeof conditions;
}

/** Shows what a pool has, whether it keeps tenants apart, and where its images are. */
export function poolStatus(deps: PoolStatusDeps): StatusKind<GpuPool> {
  return {
    name: 'gpupool',
    type: GPU_POOLS,
    store: deps.stores.pools,
    sources: [inventorySource(deps)],
    statusOf(pool, now) {
      const { name } = pool.metadata;
      const nodes = [...deps.inventory.nodes()].filter((facts) => facts.pool?.name === name);
      const counts = countPool(name, nodes, deps.inventory);
      const ready = readyStatus(pool, counts.nodes > 0 ? HAS_NODES : noNodes(pool.spec, deps.inventory), now);
      const images = imageProgress(pool, nodes, deps.pulls);
      const conditions = withFindings(pool, ready.conditions, { nodes, images: imagesReady(images), now });
      return { ...ready, conditions, ...counts, ...(images.length > 0 && { images }) };
    },
  };
}
