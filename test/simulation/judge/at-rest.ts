import { doOthersEnd } from '../../../src/caches/line-order.ts';
import { FINALIZER } from '../../../src/resources/cleanup.ts';
import { CONFIRM_BY, GPU_INSTANCES, type GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { instanceState } from '../../../src/resources/instances/instance-state.ts';
import { parseDuration } from '../../../src/resources/schema.ts';
import {
  NAMESPACES,
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PODS,
  RESOURCE_QUOTAS,
  type ResourceQuota,
} from '../../../src/kube/types.ts';
import { diskNameOf, instanceNameOfDisk } from '../../../src/resources/pod/disk.ts';
import { instanceUidOf } from '../../../src/resources/pod/owner.ts';
import { exceeded } from '../api/quotas.ts';
import { GPUS } from '../nodes/amounts.ts';
import { HELD, type People } from '../people/perform.ts';
import type { Piece } from '../nodes/layout.ts';
import { PRODUCTS, type World } from '../world.ts';
import { isOverBudget } from './purses.ts';

/** States in which an instance waits for something that is not there. */
const WAITS: ReadonlySet<string> = new Set([
  'WaitingForCapacity',
  'NodeLost',
  'Preempted',
  'WaitingForOffer',
  'PriceTooHigh',
  'DiskNodeGone',
  'TenantLimit',
  'BudgetExceeded',
  'QuotaExceeded',
  'StartLimit',
]);

function waits({ cluster: { api } }: World, instance: GpuInstance): boolean {
  const { reason } = instanceState(instance);
  const space = api.find(NAMESPACES, { name: instance.metadata.namespace ?? '' });
  return WAITS.has(reason) || (reason === 'NamespaceTerminating' && space?.metadata.deletionTimestamp !== undefined);
}

/** How a start may end that nobody switched off: its owner set a limit, or is to blame. */
const OVER: ReadonlySet<string> = new Set([
  'Stopped',
  'Expired',
  'Idle',
  'Completed',
  'ContainerFailed',
  'ImagePullFailed',
  'NoCapacity',
  'OfferNotFound',
  'BudgetSpent',
]);

/** Ends after which onExpiry deletes. */
const LIMITED: ReadonlySet<string> = new Set(['Expired', 'Idle']);

/** Of the refusal of a tenant whose starts held GPUs and never ran. */
const HELD_FOR_NOTHING = 'ended before their containers ran';
/** Longer than a limit that was set while the instance ran needs. */
const LATE_MS = 5 * 60_000;

/** An image comes within 20 s. */
const STARTS_MS = 30_000;
/** A program that is told to end has its grace. */
const ENDS_MS = 35_000;

/** Whether Berth keeps an instance. */
export function isKept({ metadata }: GpuInstance): boolean {
  return metadata.finalizers?.includes(FINALIZER) ?? false;
}

/** What of a product nobody has on a node: nothing while somebody has what the node does not give out any more. */
function freeOn(world: World, node: string, product: string): number {
  const machine = world.cluster.machines.get(node);
  if (machine === undefined || world.judge.isClosed(node)) return 0;
  const { holdings } = machine;
  const held = holdings.flatMap(({ isAstray, pieces }) => (isAstray === true ? [] : pieces));
  const isFree = (piece: Piece): boolean =>
    held.every(({ id, gpu, kind }) => id !== piece.id && (gpu !== piece.gpu || kind === piece.kind));
  const free = machine.pieces.filter((piece) => piece.product === product && isFree(piece)).length;
  // Whoever is astray counts for as much as it rented.
  const astray = holdings.reduce((sum, { isAstray, pieces }) => sum + (isAstray === true ? pieces.length : 0), 0);
  return Math.max(0, free - astray);
}

/** What is for rent, by product. */
function productsOf({ cluster }: World): Set<string> {
  const pieces = [...cluster.machines.values()].flatMap((machine) => machine.pieces);
  return new Set([...PRODUCTS, ...pieces.map(({ product }) => product)]);
}

/** The node that the disk of an instance is tied to; undefined for none. */
function nodeOfDisk({ cluster: { api, volumes } }: World, instance: GpuInstance): string | undefined {
  const { namespace } = instance.metadata;
  const disk = api.find(PERSISTENT_VOLUME_CLAIMS, { namespace, name: diskNameOf(instance) });
  return disk && volumes.nodeOf(disk);
}

/** Whether a quota leaves no room for one more start with so many GPUs. */
function isOverQuota({ cluster: { api } }: World, namespace: string, gpus: number): boolean {
  const wanted = { pods: 1, [`requests.${GPUS}`]: gpus };
  return api.list<ResourceQuota>(RESOURCE_QUOTAS, namespace).some((quota) => exceeded(quota, wanted) !== undefined);
}

/** What must be true when nothing was broken or asked for some time. */
export function judgeAtRest(world: World, people: People): void {
  const { judge, cluster } = world;
  const { api } = cluster;
  const holdings = [...cluster.machines.values()].flatMap((machine) => machine.holdings);
  const held = Map.groupBy(holdings, ({ instance }) => instance ?? '');
  const seen = new Set<string>();
  for (const instance of api.list<GpuInstance>(GPU_INSTANCES)) {
    const { uid = '', name, namespace, deletionTimestamp } = instance.metadata;
    seen.add(uid);
    // Its image never comes, and it has twenty minutes for that.
    if (instance.spec.image?.includes('absent') === true || instance.status?.image?.includes('absent') === true)
      continue;
    const said = `${namespace}/${name}`;
    const { state, reason, message } = instanceState(instance);
    const own = held.get(uid) ?? [];
    const { wall } = world.time;
    // A limit or a budget may be over at any time.
    const isChanging =
      own.some(({ from, ranFrom }) => ranFrom === undefined && from + STARTS_MS > wall) ||
      Date.parse(instance.status?.ending?.at ?? '') + ENDS_MS > wall;
    if (deletionTimestamp !== undefined) {
      // Kubernetes keeps it for its pods, if its owner asks for that.
      if (isKept(instance)) judge.blame(8, `${said} was deleted and is still there: ${reason}`);
    } else if (state === 'running' && own.length === 0) judge.blame(7, `${said} is said to run, and no node runs it`);
    else if (state !== 'running' && own.length > 0 && !isChanging)
      judge.blame(2, `${said} is ${reason}, and ${own[0]?.node} runs it`);
    else if (
      !isChanging &&
      state !== 'running' &&
      state !== 'stopped' &&
      state !== 'failed' &&
      !waits(world, instance)
    ) {
      // A back-off of ten minutes may follow a fault that was healed just now.
      if (reason !== 'BackingOff' && reason !== 'GPUUnhealthy')
        judge.blame(7, `${said} is neither ready nor waiting nor over: ${reason}: ${message}`);
    }
    const [holding] = own;
    if (state === 'running' && holding !== undefined && cluster.machines.get(holding.node)?.driver !== undefined)
      judge.mustNameGpus(said, instance.status?.devices, holding);
    if ((state === 'stopped' || state === 'failed') && instance.spec.powerState === 'Running' && !OVER.has(reason)) {
      judge.blame(9, `${said} does not come back: ${reason}: ${message}`);
    }
    const { maxDuration, idleTimeout, onExpiry } = instance.spec;
    const ran = Math.max(own[0]?.ranFrom ?? Infinity, judge.lastUsed(uid));
    if (idleTimeout !== undefined && ran + parseDuration(idleTimeout) + LATE_MS < world.time.wall)
      judge.blame(7, `${said} runs on, and nobody used it for its idleTimeout of ${idleTimeout}`);
    const stopped = Date.parse(instance.status?.stages?.stopped ?? '');
    // What once kept it, as a silence of its node, keeps it for good.
    const isDue = LIMITED.has(reason) && onExpiry === 'Delete' && instance.status?.ending?.limit !== undefined;
    if (isDue && instance.metadata.generation === 1 && stopped + LATE_MS < world.time.wall)
      judge.blame(7, `${said} is ${reason} and stays, and was to be deleted`);
    const due = (own[0]?.ranFrom ?? Infinity) + (maxDuration === undefined ? Infinity : parseDuration(maxDuration));
    if (due + LATE_MS < world.time.wall) judge.blame(7, `${said} runs beyond its maxDuration of ${maxDuration}`);
    if (instance.spec.powerState === 'Stopped' && own.length > 0) judge.blame(8, `${said} was stopped and runs`);
    const isLimited = reason === 'TenantLimit' && message.includes('ceiling');
    if (!isLimited && !['WaitingForCapacity', 'NodeLost', 'Preempted', 'QuotaExceeded'].includes(reason)) continue;
    // What it waits for is looked at with its budgets.
    if (isOverBudget(instance)) continue;
    // For what its tenant held without a bill, for some hours at most.
    if (message.includes(HELD_FOR_NOTHING)) continue;
    const { gpu } = instance.spec;
    const rented = instance.status?.rented?.gpus;
    const [product, count] = [gpu?.product ?? rented?.product, gpu?.count ?? rented?.gpuCount];
    if (product === undefined || count === undefined) continue;
    if (!judge.hasRoom(namespace ?? '', count) || isOverQuota(world, namespace ?? '', count)) continue;
    const hasDisk = api.find(PERSISTENT_VOLUME_CLAIMS, { namespace, name: diskNameOf(instance) }) !== undefined;
    if (!hasDisk && !judge.hasDiskRoom(namespace ?? '', instance.spec.diskGb ?? 0)) continue;
    if (isLimited) judge.blame(5, `${said} waits for ${count} GPUs under its ceiling: ${message}`);
    const diskNode = nodeOfDisk(world, instance);
    const fits = [...cluster.machines.values()].find(
      (machine) =>
        judge.suits(uid, machine) &&
        freeOn(world, machine.name, product) >= count &&
        (diskNode === undefined || diskNode === machine.name),
    );
    if (fits !== undefined)
      judge.blame(5, `${said} waits for ${count} ${product}, and ${fits.name} has them free: ${reason}: ${message}`);
  }
  for (const { instance = '', node, pod } of holdings) {
    if (!seen.has(instance)) judge.blame(2, `${node} runs ${pod.metadata.name} of an instance that is gone`);
  }
  for (const instance of api.list<GpuInstance>(GPU_INSTANCES)) {
    const { uid = '', name, namespace, annotations = {}, deletionTimestamp } = instance.metadata;
    if (deletionTimestamp !== undefined || doOthersEnd(instance) || people.promised.has(uid)) continue;
    const { status } = instance;
    if (annotations[CONFIRM_BY] !== undefined && status?.claim?.byPreemption !== true)
      judge.blame(8, `${namespace}/${name} is there, and nobody was told of it`);
  }
  for (const [uid, name] of people.promised) {
    if (seen.has(uid) || judge.mayBeGone(uid)) continue;
    judge.blame(8, `${name} was answered with 201 and is gone`);
  }
  judge.judgeBudgets();
  judgeOffers(world);
}

/** Nothing is left of instances that are gone, but what their owners keep. */
export function judgeLeftovers({ judge, cluster: { api } }: World): void {
  for (const pod of api.list(PODS)) {
    const { name, namespace, finalizers = [] } = pod.metadata;
    if (instanceUidOf(pod) !== undefined && !finalizers.includes(HELD))
      judge.blame(2, `the pod ${namespace}/${name} is left of an instance that is gone`);
  }
  for (const disk of api.list(PERSISTENT_VOLUME_CLAIMS)) {
    const { namespace = '', name, finalizers = [] } = disk.metadata;
    const instance = instanceNameOfDisk(disk);
    if (instance !== undefined && !finalizers.includes(HELD) && judge.leavesDisk(namespace, instance))
      judge.blame(9, `the disk ${namespace}/${name} is left, and was to go with its instance`);
  }
}

/** What Berth offers is what is free, by the kubelets. */
function judgeOffers(world: World): void {
  const { judge, cluster, fronts } = world;
  const [front] = fronts;
  if (front === undefined) return;
  for (const product of productsOf(world)) {
    const all = [...cluster.machines.values()];
    const nodes = all.filter(({ pieces }) => pieces.some((piece) => piece.product === product));
    if (nodes.some(({ name }) => cluster.api.find(NODES, { name }) === undefined)) continue;
    const real = nodes.reduce((sum, { name }) => sum + freeOn(world, name, product), 0);
    const ones = front.inventory.offers().filter((offer) => offer.product === product && offer.gpuCount === 1);
    const offered = ones.reduce((sum, { available }) => sum + available, 0);
    if (offered > real) judge.blame(1, `${offered} GPUs ${product} are offered, and ${real} are free`);
    if (offered < real) judge.blame(2, `${offered} GPUs ${product} are offered, although ${real} are free`);
  }
}
