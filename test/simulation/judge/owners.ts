import {
  GPU_INSTANCES,
  type GpuInstance,
  type GpuInstanceSpec,
} from '../../../src/resources/instances/gpu-instance.ts';
import { GPU_POOLS, type GpuPool } from '../../../src/resources/gpu-pool.ts';
import { instanceState } from '../../../src/resources/instances/instance-state.ts';
import { TENANT_POLICIES, type TenantPolicy } from '../../../src/resources/tenants/tenant-policy.ts';
import { parseDuration } from '../../../src/resources/schema.ts';
import { startOf } from '../../../src/resources/pod/owner.ts';
import type { Claim } from '../../../src/resources/instances/claim.ts';
import { fractionOf } from '../../../src/resources/money.ts';
import { sameJson } from '../../../src/lib/json.ts';
import {
  type KubeObject,
  NAMESPACES,
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  type PersistentVolumeClaim,
  RESOURCE_QUOTAS,
} from '../../../src/kube/types.ts';
import { diskNameOf, sizeGbOf } from '../../../src/resources/pod/disk.ts';
import type { ApiServer } from '../api/server.ts';
import type { VirtualTime } from '../clock/virtual-time.ts';
import type { Cluster } from '../nodes/cluster.ts';
import type { Devices } from '../nodes/devices.ts';
import type { Piece } from '../nodes/layout.ts';
import type { Machine } from '../nodes/machine.ts';
import { LOCAL } from '../nodes/volumes.ts';
import type { Holding } from '../nodes/witness.ts';

export interface Watch {
  time: VirtualTime;
  blame: (invariant: number, what: string) => void;
  /** When Berth can have decided about something that happened then, at the latest. */
  decidedBy: (at: number) => number;
  /** Whether nobody had to know at a moment how the GPUs of a node are given out. */
  isBehind: (node: string, at: number) => boolean;
  /** Whether the budgets of an instance have room for a start of it. */
  hasBudgetFor: (instance: GpuInstance) => boolean;
}

/** Kubelets write whole seconds, and the clocks of two leaders differ by five. */
const MARGIN_MS = 7_000;
/** Pods end within it. */
const GRACE_MS = 30_000;
/** What somebody did so long before a pod was made may have come late. */
const BEFORE_MS = 120_000;
/** Who waits so much longer than another has been there is ahead of that one. */
const AHEAD_MS = 10_000;
/** A trouble of a node goes on after it: Kubernetes clears pods away later. */
const AFTER_MS = 90_000;
/** A node can be used again so long after its trouble. */
const USABLE_MS = 20_000;

/** Ceilings hold with an overshoot of so long. */
const CEILING_MS = 60_000;

/** Ends after which only its owner starts an instance again; in the first he must ask, in the others an edit does. */
const DONE: ReadonlySet<string> = new Set(['Expired', 'Idle', 'BudgetSpent', 'Completed']);
const FAILED: ReadonlySet<string> = new Set(['ContainerFailed', 'ImagePullFailed', 'NoCapacity']);

/** Ends that nobody wanted, after which an instance comes back. */
const TAKEN_AWAY: ReadonlySet<string> = new Set(['Preempted', 'NodeLost', 'GPUUnhealthy']);

/** Ends after which no node is avoided. */
const BY_OWNER: ReadonlySet<string> = new Set(['Stopped', 'Expired', 'Idle', 'BudgetSpent', 'Completed']);

/** A value that was so until then. */
interface Until<T> {
  value: T;
  to: number;
}

type Price = GpuPool['spec']['prices'][number];

interface Ceiling {
  max: number;
  from: number;
}

/** What the owner of an instance asked for, and what became of it. */
interface Rental {
  uid: string;
  name: string;
  namespace: string;
  isOnDemand: boolean;
  product: string | undefined;
  gpus: number | undefined;
  /** Its image never comes, its program ends, or it may run so long only. */
  endsByItself: boolean;
  durations: Set<string>;
  prices: Until<string | undefined>[];
  /** What the first start cost. */
  price: string | undefined;
  /** Of its claims, by number of the start. */
  claims: Map<number, { claim: Claim; at: number }>;
  createdAt: number;
  touchedAt: number;
  askedAt: number;
  editedAt: number;
  /** When its start request was written, and those that a start or an end was decided with. */
  requestedAt: number;
  honoured: Set<string>;
  changedAt: number;
  stoppedAt: number | undefined;
  isDeleted: boolean;
  /** An operator took it away before its program had ended. */
  isCleared: boolean;
  /** What it has now, and all that it had. */
  holds: Set<Holding>;
  took: Holding[];
  /** Since when nothing is in its way but that no place is free. */
  waitsFrom: number | undefined;
  /** Since when nothing is in its way but a ceiling over the GPUs of its tenant. */
  limitedFrom: number | undefined;
  /** From when to when that was so last, if a place was in its way then. */
  wasLimited: { from: number; to: number } | undefined;
  /** The same of one over its disks. */
  diskLimitedFrom: number | undefined;
  /** A start of it ended otherwise than its owner wanted: it may avoid nodes. */
  mayAvoid: boolean;
  /** Since when only its owner starts it again, and why. */
  over: { at: number; reason: string } | undefined;
}

/** GPUs that an instance has, or that become free for it. */
function grantedOf(instance: GpuInstance | undefined): number {
  const { claim, reserved } = instance?.status ?? {};
  return (claim ?? reserved)?.gpuCount ?? 0;
}

/** What stands for GPUs that are divided in the same way. */
function kindOf({ resourceName, product, share }: Pick<Piece, 'resourceName' | 'product' | 'share'>): string {
  return `${resourceName} ${product} ${share}`;
}

/** What a start depends on, beside that its owner asks for it. */
function contentOf({ image, runtype, args, command }: GpuInstanceSpec): string {
  return JSON.stringify([image, runtype, args, command]);
}

/** Judges what owners were promised of each start: its GPUs, its price, its end, and who is next. */
export class Owners {
  readonly #watch: Watch;
  readonly #api: ApiServer;
  readonly #devices: Devices;
  readonly #machines: Cluster['machines'];
  readonly #rentals = new Map<string, Rental>();
  readonly #troubles = new Map<string, { from: number; to: number; mayEnd: boolean }[]>();
  /** Prices of one GPU, by pool. */
  readonly #prices = new Map<string, Until<Price>[]>();
  /** GPUs that a tenant may have at once, by namespace, and since when it may have no more. */
  readonly #ceilings = new Map<string, Ceiling>();
  /** The same of GB of its disks. */
  readonly #diskCeilings = new Map<string, Ceiling>();
  /** Who gave GPUs of a node back last. */
  readonly #givenBack = new Map<string, { namespace: string; product: string; gpus: number; at: number }>();
  /** When a tenant was granted a place last. */
  readonly #grantedAt = new Map<string, number>();
  /** When a tenant was granted less, or allowed more, last. */
  readonly #easedAt = new Map<string, number>();
  /** When it had room for another disk last. */
  readonly #disksEasedAt = new Map<string, number>();
  /** When somebody got GPUs of a node last, and when a program there ended. */
  readonly #tookAt = new Map<string, number>();
  readonly #endedAt = new Map<string, number>();
  /** GPUs of a node that are granted, by what of them is. */
  readonly #granted = new Map<string, Map<string, number>>();
  /** uids of instances for which others leave a place. */
  readonly #coming = new Set<string>();
  #repricedAt = 0;
  /** When a pool last offered other sizes. */
  #resizedAt = 0;
  readonly #sizes = new Map<string, readonly number[]>();

  constructor(watch: Watch, { api, devices, machines }: Pick<Cluster, 'api' | 'devices' | 'machines'>) {
    this.#watch = watch;
    this.#machines = machines;
    this.#api = api;
    this.#devices = devices;
    api.follow(({ kind, before, after }) => {
      if (kind.type.kind === TENANT_POLICIES.kind && after !== undefined) this.#seeCeiling(after as TenantPolicy);
      if (kind.type.kind === GPU_INSTANCES.kind) this.#see(before as GpuInstance, after as GpuInstance);
      if (kind.type.kind === PERSISTENT_VOLUME_CLAIMS.kind && before === undefined) this.#seeDisk(after);
      if (kind.type.kind === PERSISTENT_VOLUME_CLAIMS.kind && after === undefined)
        this.#mustGrow(before?.metadata.namespace ?? '');
      if (kind.type.kind === GPU_POOLS.kind && after !== undefined) this.#seePool(after as GpuPool);
    });
  }

  get #now(): number {
    return this.#watch.time.wall;
  }

  /** Somebody does something to an instance that may end its program. */
  touched(uid: string): void {
    const rental = this.#rentals.get(uid);
    if (rental !== undefined) rental.touchedAt = this.#now;
  }

  /** An operator takes an instance away, and what keeps it until its program has ended. */
  cleared(uid: string): void {
    const rental = this.#rentals.get(uid);
    if (rental !== undefined) rental.isCleared = true;
  }

  /** Whether an operator took an instance away before its program had ended. */
  isCleared(uid: string): boolean {
    return this.#rentals.get(uid)?.isCleared === true;
  }

  /** Something is wrong with a node, for so long. `mayEnd`: also with what runs there. */
  troubled(node: string, ms: number, mayEnd: boolean): void {
    const from = this.#now;
    this.#troubles.set(node, [...(this.#troubles.get(node) ?? []), { from, to: from + ms, mayEnd }]);
  }

  /** What a start was granted, and when that was written. */
  claimOf(uid: string, start: number): { claim: Claim; at: number } | undefined {
    return this.#rentals.get(uid)?.claims.get(start);
  }

  forget(uid: string): void {
    this.#rentals.delete(uid);
  }

  #blame(invariant: number, what: string): void {
    this.#watch.blame(invariant, what);
  }

  #seeCeiling({ spec: { namespaceLabels, gpus, diskGb = Infinity, budget } }: TenantPolicy): void {
    // One with a budget says nothing of GPUs and disks.
    if (budget.costs.length > 0) return;
    const [{ max } = { max: Infinity }] = gpus;
    const tenant = namespaceLabels['kubernetes.io/metadata.name'] ?? '';
    const of = [
      [this.#ceilings, max],
      [this.#diskCeilings, diskGb],
    ] as const;
    for (const [ceilings, most] of of) {
      const known = ceilings.get(tenant);
      const from = most < (known?.max ?? Infinity) ? this.#now : known?.from;
      ceilings.set(tenant, { max: most, from: from ?? this.#now });
    }
    this.#easedAt.set(tenant, this.#now);
    this.#mustServe(tenant);
    this.#mustGrow(tenant);
  }

  /**
   * Looks as soon as Berth must have decided about what happened `at` that time, milliseconds since the epoch. What
   * disturbs Berth after the event gives it more time, too.
   */
  #onceDecided(at: number, look: () => void): void {
    const left = this.#watch.decidedBy(at) + MARGIN_MS - this.#now;
    if (left > 0) this.#watch.time.afterPlain(left, () => this.#onceDecided(at, look));
    else look();
  }

  /** GB of all disks of a tenant, those that are kept included. */
  #diskGb(namespace: string): number {
    const disks = this.#api.list<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIMS, namespace);
    return disks.reduce((sum, disk) => sum + sizeGbOf(disk), 0);
  }

  hasDiskRoom(namespace: string, gb: number): boolean {
    return this.#diskGb(namespace) + gb <= (this.#diskCeilings.get(namespace)?.max ?? Infinity);
  }

  /** Nobody waits for long for the room of a disk that is gone, or that another ceiling gives. */
  #mustGrow(namespace: string): void {
    const from = this.#now;
    this.#disksEasedAt.set(namespace, from);
    this.#onceDecided(from, () => {
      if (this.#disksEasedAt.get(namespace) !== from) return;
      const all = this.#api.list<GpuInstance>(GPU_INSTANCES, namespace);
      const disks = new Set(this.#api.list(PERSISTENT_VOLUME_CLAIMS, namespace).map(({ metadata }) => metadata.name));
      // A place that is granted, or that others leave, has its disk soon.
      const isComing = (one: GpuInstance): boolean =>
        one.status?.claim !== undefined || one.status?.reserved !== undefined;
      if (all.some((one) => isComing(one) && !disks.has(diskNameOf(one)))) return;
      const left = all.find(({ metadata, spec }) => {
        const since = this.#rentals.get(metadata.uid ?? '')?.diskLimitedFrom ?? Infinity;
        return since < from && this.hasDiskRoom(namespace, spec.diskGb ?? 0);
      });
      if (left !== undefined)
        this.#blame(
          5,
          `${left.metadata.name} waits for room of disks, and ${namespace} has had it for ${(this.#now - from) / 1000} s`,
        );
    });
  }

  /** No disk is made beyond a ceiling that its tenant has had for a minute. */
  #seeDisk(disk: KubeObject | undefined): void {
    const { namespace = '', name } = disk?.metadata ?? { name: '' };
    const { max, from } = this.#diskCeilings.get(namespace) ?? { max: Infinity, from: 0 };
    const gb = this.#diskGb(namespace);
    if (gb > max && this.#now > this.#watch.decidedBy(from) + CEILING_MS)
      this.#blame(10, `the disk ${name} is made, and ${namespace} has ${gb} GB of disks, of ${max}`);
  }

  /** Whether a ceiling of its tenant leaves room for so many GPUs. */
  hasRoom(namespace: string, gpus: number): boolean {
    return this.#held(namespace) + gpus <= (this.#ceilings.get(namespace)?.max ?? Infinity);
  }

  /** GPUs of a tenant. Of what an operator took away nobody is told how long it runs on. */
  #held(namespace: string): number {
    const own = [...this.#rentals.values()].filter((one) => one.namespace === namespace && !one.isCleared);
    return own.reduce((sum, { holds }) => sum + [...holds].reduce((all, { gpus }) => all + gpus.length, 0), 0);
  }

  /** No start goes beyond a ceiling that its tenant has had for a minute. */
  #mustHaveRoom({ namespace, name }: Rental, made: number): void {
    const { max, from } = this.#ceilings.get(namespace) ?? { max: Infinity, from: 0 };
    const held = this.#held(namespace);
    if (held > max && made > this.#watch.decidedBy(from) + CEILING_MS)
      this.#blame(10, `${name} starts, and ${namespace} has ${held} GPUs, of ${max}`);
  }

  #seePool({ metadata, spec }: GpuPool): void {
    if (!sameJson(this.#sizes.get(metadata.name), spec.sizes)) this.#resizedAt = this.#now;
    this.#sizes.set(metadata.name, spec.sizes);
    const known = this.#prices.get(metadata.name) ?? [];
    const last = known.at(-1);
    const [price] = spec.prices;
    if (price === undefined || sameJson(last?.value, price)) return;
    if (last !== undefined) last.to = this.#now;
    this.#repricedAt = this.#now;
    this.#prices.set(metadata.name, [...known, { value: price, to: Infinity }]);
  }

  #see(before: GpuInstance | undefined, after: GpuInstance | undefined): void {
    const instance = (after ?? before) as GpuInstance;
    const rental = this.#rentalOf(instance);
    const { spec } = instance;
    const now = this.#now;
    this.#count(before, after);
    if (grantedOf(after) < grantedOf(before)) {
      this.#easedAt.set(rental.namespace, now);
      this.#mustGrow(rental.namespace);
    }
    const old = before?.status?.claim;
    if (old !== undefined && after?.status?.claim === undefined)
      this.#givenBack.set(old.node, {
        namespace: rental.namespace,
        product: old.product,
        gpus: old.gpuCount,
        at: now,
      });
    if (after === undefined || after.metadata.deletionTimestamp !== undefined) {
      if (!rental.isDeleted) rental.changedAt = now;
      rental.isDeleted = true;
      rental.waitsFrom = undefined;
      rental.limitedFrom = undefined;
      rental.diskLimitedFrom = undefined;
      return;
    }
    if (before !== undefined && before.metadata.generation !== after.metadata.generation) {
      rental.changedAt = now;
      rental.waitsFrom = undefined;
      rental.limitedFrom = undefined;
      rental.diskLimitedFrom = undefined;
      const [was, next] = [before.spec, after.spec];
      if (was.powerState !== next.powerState) rental.askedAt = now;
      if (was.startRequest !== next.startRequest) this.#seeRequest(rental, next.startRequest);
      if (contentOf(was) !== contentOf(next)) rental.editedAt = now;
      if (was.maxPricePerHour !== next.maxPricePerHour) {
        const last = rental.prices.at(-1);
        if (last !== undefined) last.to = now;
        rental.prices.push({ value: next.maxPricePerHour, to: Infinity });
      }
      rental.stoppedAt = next.powerState === 'Stopped' ? (rental.stoppedAt ?? now) : undefined;
    }
    if (spec.maxDuration !== undefined) rental.durations.add(spec.maxDuration);
    rental.endsByItself ||=
      spec.image?.includes('absent') === true || spec.runtype === 'args' || spec.idleTimeout !== undefined;
    this.#seeClaim(rental, before, after);
    this.#seeEnding(rental, before, after);
    this.#seeWait(rental, after);
  }

  /** Each request is honoured once: who puts an older one back asks for nothing. */
  #seeRequest(rental: Rental, startRequest = ''): void {
    rental.requestedAt = this.#now;
    if (!rental.honoured.has(startRequest)) rental.askedAt = this.#now;
  }

  /** A start or an end was decided about. */
  #honour({ honoured, requestedAt }: Rental, { spec: { startRequest } }: GpuInstance): void {
    const isKnown = this.#watch.decidedBy(requestedAt) + MARGIN_MS < this.#now;
    if (startRequest !== undefined && isKnown) honoured.add(startRequest);
  }

  #rentalOf({ metadata, spec }: GpuInstance): Rental {
    const { uid = '', name, namespace = '' } = metadata;
    const known = this.#rentals.get(uid);
    if (known !== undefined) return known;
    const now = this.#now;
    const rental: Rental = {
      uid,
      name,
      namespace,
      isOnDemand: spec.type === 'OnDemand',
      product: spec.gpu?.product,
      gpus: spec.gpu?.count,
      endsByItself: false,
      durations: new Set(),
      prices: [{ value: spec.maxPricePerHour, to: Infinity }],
      price: undefined,
      claims: new Map(),
      createdAt: now,
      touchedAt: -Infinity,
      askedAt: now,
      editedAt: now,
      requestedAt: now,
      honoured: new Set(),
      changedAt: now,
      stoppedAt: spec.powerState === 'Stopped' ? now : undefined,
      isDeleted: false,
      isCleared: false,
      holds: new Set(),
      took: [],
      waitsFrom: undefined,
      limitedFrom: undefined,
      wasLimited: undefined,
      diskLimitedFrom: undefined,
      mayAvoid: false,
      over: undefined,
    };
    this.#rentals.set(uid, rental);
    return rental;
  }

  #seeClaim(rental: Rental, before: GpuInstance | undefined, after: GpuInstance): void {
    const { claim, incarnation = 0 } = after.status ?? {};
    if (claim === undefined) return;
    const isNew = before?.status?.claim === undefined;
    rental.claims.set(incarnation, { claim, at: rental.claims.get(incarnation)?.at ?? this.#now });
    if (!isNew) return;
    this.#honour(rental, after);
    this.#mustBeAskedFor(rental);
    this.#mustCost(rental, claim);
    this.#mustFit(rental, claim);
    this.#mustBeReady(rental, claim);
    this.#mustNotPass(rental, claim);
    this.#grantedAt.set(rental.namespace, this.#now);
  }

  /** What a node has of a product that nobody is granted: nothing while somebody has what it does not give out any more. */
  #freeOf(node: string, product: string): number {
    const machine = this.#machines.get(node);
    const [piece] = machine?.pieces.filter((one) => one.product === product) ?? [];
    if (machine === undefined || piece === undefined || this.isClosed(node)) return 0;
    const counted = this.#api.find(NODES, { name: node })?.status?.allocatable?.[piece.resourceName];
    return Number(counted ?? this.#devices.usable(node).length) - this.#grantedOn(node, kindOf(piece));
  }

  /** Whether a node gives out nothing, because somebody has what it does not give out any more. */
  isClosed(node: string): boolean {
    const machine = this.#machines.get(node);
    if (machine === undefined || machine.driver !== undefined) return false;
    const has = Map.groupBy(machine.pieces, kindOf);
    return [...(this.#granted.get(node) ?? [])].some(([kind, count]) => count > (has.get(kind)?.length ?? 0));
  }

  #grantedOn(node: string, kind: string): number {
    const kinds = this.#granted.get(node) ?? new Map<string, number>();
    // Slices have one kind of GPUs, and its resource two names.
    if (this.#machines.get(node)?.driver !== undefined) return [...kinds.values()].reduce((sum, one) => sum + one, 0);
    return kinds.get(kind) ?? 0;
  }

  /** Whether the GPUs of a machine are what an instance rents. */
  suits(uid: string, machine: Machine): boolean {
    const rental = this.#rentals.get(uid);
    return rental !== undefined && this.#suits(rental, machine);
  }

  #suits({ product, claims, gpus = 1 }: Rental, { name, pieces }: Machine): boolean {
    const piece = pieces.find((one) => one.product === product);
    if (piece === undefined) return false;
    const [own] = claims.values();
    // As many of another part of a GPU have another price.
    if (own !== undefined) return piece.share === (own.claim.gpuShare ?? '1');
    if (piece.kind === 'shared') return this.#areAlike(piece);
    const { pool = '' } = this.#api.find(NODES, { name })?.metadata.labels ?? {};
    return piece.kind !== 'whole' || this.#sizes.get(pool)?.includes(gpus) === true;
  }

  /** Whether all of a product are the same part of a GPU. */
  #areAlike({ product, share }: Piece): boolean {
    const all = [...this.#machines.values()].flatMap(({ pieces }) => pieces);
    return all.every((one) => one.product !== product || one.share === share);
  }

  /** Who waits may get what the GPUs of a node are now. */
  #mustMoveAny(node: string): void {
    const products = new Set(this.#machines.get(node)?.pieces.map(({ product }) => product));
    for (const product of products) this.#mustMove(node, product);
  }

  #count(before: GpuInstance | undefined, after: GpuInstance | undefined): void {
    const add = ({ node, gpuCount, gpuShare: share = '1', ...rest }: Claim, sign: 1 | -1) => {
      const kinds = this.#granted.get(node) ?? new Map<string, number>();
      const kind = kindOf({ ...rest, share });
      this.#granted.set(node, kinds.set(kind, (kinds.get(kind) ?? 0) + sign * gpuCount));
    };
    const [was, is] = [before?.status?.claim, after?.status?.claim];
    if (was !== undefined) add(was, -1);
    if (is !== undefined) add(is, 1);
    const { uid = '' } = (after ?? before)?.metadata ?? {};
    if (after?.status?.conditions?.some(({ reason }) => reason === 'PlaceComing') === true) this.#coming.add(uid);
    else this.#coming.delete(uid);
  }

  /**
   * A place that a tenant gives back goes to its own instance that waits longer, if the ceiling has room for that one
   * now. Whoever grants what became free knows that the ceiling has room.
   */
  #mustNotPass({ name, namespace, isOnDemand, product, gpus = 0, createdAt }: Rental, claim: Claim): void {
    const from = this.#now;
    const given = this.#givenBack.get(claim.node);
    if (given?.product !== claim.product) return;
    const { namespace: tenant, gpus: left, at } = given;
    const free = this.#freeOf(claim.node, claim.product);
    const isDue = tenant !== namespace && free < left && this.#watch.decidedBy(at) < at + MARGIN_MS;
    if (!isDue) return;
    const room = this.#mostOf(tenant) - this.granted(tenant);
    // Who needs no more, or would have had room without this one.
    const isPassed = (wanted: number): boolean => wanted <= gpus || (wanted > free && wanted <= free + gpus);
    // A claim may be on a pod first, and be heard of after what became of those that it passed.
    const sinceOf = ({ limitedFrom, wasLimited }: Rental): number =>
      limitedFrom ?? (wasLimited !== undefined && wasLimited.to >= at ? wasLimited.from : Infinity);
    const ahead = [...this.#rentals.values()].find(
      (one) =>
        one.namespace === tenant &&
        sinceOf(one) < at &&
        sinceOf(one) + AHEAD_MS < createdAt &&
        this.#repricedAt < sinceOf(one) &&
        (one.isOnDemand || !isOnDemand) &&
        one.product === product &&
        (one.gpus ?? Infinity) <= room &&
        isPassed(one.gpus ?? Infinity) &&
        !one.mayAvoid &&
        this.#mayStartOn(one),
    );
    if (ahead === undefined) return;
    this.#onceDecided(from, () => {
      const waits = (ahead.limitedFrom ?? ahead.waitsFrom) !== undefined;
      const isOther = Math.max(this.#grantedAt.get(tenant) ?? 0, ahead.touchedAt, ahead.changedAt) >= at;
      if (waits && !isOther)
        this.#blame(5, `${name} gets what ${tenant} gave back on ${claim.node} before ${ahead.name}, who waits longer`);
    });
  }

  /** Whether the disk of an instance is on every node, or there is room for one, its budgets have room, and no quota limits it. */
  #mayStartOn({ namespace, name }: Rental): boolean {
    const ref = { namespace, name };
    const instance = this.#api.find<GpuInstance>(GPU_INSTANCES, ref);
    if (instance === undefined || !this.#watch.hasBudgetFor(instance)) return false;
    if (this.#api.list(RESOURCE_QUOTAS, namespace).length > 0) return false;
    const disk = this.#api.find(PERSISTENT_VOLUME_CLAIMS, { namespace, name: diskNameOf(instance) });
    if (disk === undefined) return this.hasDiskRoom(namespace, instance.spec.diskGb ?? 0);
    return disk.spec?.storageClassName !== LOCAL && disk.metadata.deletionTimestamp === undefined;
  }

  /** A node has the GPUs that are granted of it. */
  #mustFit({ name }: Rental, { node, gpuShare: share = '1', grantedAt, ...rest }: Claim): void {
    const machine = this.#machines.get(node);
    if (machine === undefined || this.#watch.isBehind(node, Date.parse(grantedAt))) return;
    const kind = kindOf({ ...rest, share });
    const counted = machine.pieces.filter((piece) => kindOf(piece) === kind).length;
    const capacity = machine.driver === undefined ? counted : this.#devices.total(node) || Infinity;
    const granted = this.#grantedOn(node, kind);
    if (granted > capacity) this.#blame(1, `${name} is granted what others have: ${granted} ${kind} of ${node}`);
  }

  /** No place is granted on a node that said for some time that it is not ready, or said nothing. */
  #mustBeReady({ name }: Rental, { node, grantedAt }: Claim): void {
    const ready = this.#api.find(NODES, { name: node })?.status?.conditions?.find(({ type }) => type === 'Ready');
    if (ready === undefined || ready.status === 'True') return;
    const since = Date.parse(ready.lastTransitionTime ?? '');
    // The write of a grant may be on its way for long.
    const at = Math.min(this.#now, Date.parse(grantedAt));
    if (this.#watch.decidedBy(since) + MARGIN_MS < at)
      this.#blame(7, `${name} gets a place on ${node}, which is not ready for ${(at - since) / 1000} s`);
  }

  /** An instance that is over starts only because its owner wants that. */
  #mustBeAskedFor({ name, over, askedAt, editedAt }: Rental): void {
    if (over === undefined) return;
    const wanted = DONE.has(over.reason) ? askedAt : Math.max(askedAt, editedAt);
    if (this.#watch.decidedBy(wanted) + MARGIN_MS < over.at)
      this.#blame(6, `${name} is over (${over.reason}), and gets a place though nobody asked for a start`);
  }

  /** The price is one that the pool had a moment ago, and no more than the owner named or saw. */
  #mustCost(rental: Rental, { pool, pricePerHour, gpuCount, gpuShare }: Claim): void {
    const now = this.#now;
    const isRecent = ({ to }: Until<unknown>): boolean => this.#watch.decidedBy(to) + MARGIN_MS >= now;
    const price = Number(pricePerHour);
    const { name, isOnDemand, prices } = rental;
    const asked = (this.#prices.get(pool) ?? [])
      .filter(isRecent)
      .map(({ value }) => Number(isOnDemand ? value.onDemand : value.interruptible));
    if (!asked.some((one) => Math.abs(one * gpuCount * fractionOf(gpuShare) - price) < 0.001))
      this.#blame(
        10,
        `${name} costs ${pricePerHour} for ${gpuCount} GPUs, and one is ${asked.join(' or ')} in ${pool}`,
      );
    const named = prices.filter(isRecent).map(({ value }) => (value === undefined ? Infinity : Number(value)));
    const isNamed = prices.some(({ value }) => value !== undefined);
    const most = isNamed ? Math.max(...named) : Number(rental.price ?? Infinity);
    if (price > most) this.#blame(10, `${name} costs ${pricePerHour}, and its owner saw or named ${most}`);
    rental.price ??= pricePerHour;
  }

  #seeEnding(rental: Rental, before: GpuInstance | undefined, after: GpuInstance): void {
    const { reason: ending } = after.status?.ending ?? {};
    const { state, reason } = instanceState(after);
    const isOver = (state === 'stopped' || state === 'failed') && (DONE.has(reason) || FAILED.has(reason));
    rental.over = isOver ? (rental.over ?? { at: this.#now, reason }) : undefined;
    if ((state === 'stopped' || state === 'failed') && TAKEN_AWAY.has(reason))
      this.#blame(9, `${rental.name} is said to be ${state}, and comes back by itself: ${reason}`);
    if (ending === undefined || ending === before?.status?.ending?.reason) return;
    this.#honour(rental, after);
    rental.mayAvoid ||= !BY_OWNER.has(ending);
    if (ending === 'Expired') this.#mustBeLate(rental, after);
    if (ending === 'Completed' || ending === 'ContainerFailed') this.#mustHaveEnded(rental, after);
    if (ending === 'Preempted') this.#mustHelp(rental, after.status?.claim);
  }

  /** A program that its kubelet was told to end did not end by itself: its instance comes back. */
  #mustHaveEnded({ name, took }: Rental, { status }: GpuInstance): void {
    const last = took.findLast(({ pod }) => startOf(pod)?.incarnation === status?.incarnation);
    if (last?.isAsked === true)
      this.#blame(9, `${name} was taken away from ${last.node}, and is said to have ended: ${status?.ending?.reason}`);
  }

  /** Who ends for its time had that time. */
  #mustBeLate({ name, durations, took }: Rental, { status }: GpuInstance): void {
    const { byPreemption, grantedAt = '' } = status?.claim ?? {};
    // A container that starts anew, as after a failure of the power, has the time of its start.
    const own = took.filter(({ pod }) => startOf(pod)?.incarnation === status?.incarnation);
    const ranFrom = Math.min(...own.map((one) => one.ranFrom ?? Infinity));
    // What is billed from its grant has its time from then, too.
    const ranMs = this.#now - (byPreemption === true ? Date.parse(grantedAt) : ranFrom);
    const least = Math.min(...[...durations].map(parseDuration));
    if (own.length > 0 && ranMs + MARGIN_MS < least)
      this.#blame(4, `${name} ends as expired after ${ranMs / 1000} s, and has ${least / 1000} s`);
  }

  /** Who gives way does so for one that then starts. */
  #mustHelp({ name }: Rental, claim: Claim | undefined): void {
    const from = this.#now;
    if (claim === undefined) return;
    const { node, product } = claim;
    this.#onceDecided(this.#watch.decidedBy(from + GRACE_MS), () => {
      const others = [...this.#rentals.values()].filter(
        (one) => one.isOnDemand && (one.product ?? product) === product,
      );
      const helped = others.some((one) =>
        [...one.claims.values()].some(({ claim }) => Date.parse(claim.grantedAt) >= from - MARGIN_MS),
      );
      const isExcused =
        this.#isTroubled(node, from, this.#now) ||
        Math.max(this.#repricedAt, this.#resizedAt) > from - MARGIN_MS ||
        others.some(({ changedAt, touchedAt }) => Math.max(changedAt, touchedAt) > from - MARGIN_MS);
      if (!helped && !isExcused) this.#blame(6, `${name} gave way on ${node}, and nobody started there`);
    });
  }

  /** Nobody waits for long for what is free already when the waiting begins. */
  #mustFind(rental: Rental): void {
    const from = this.#now;
    this.#onceDecided(from + GRACE_MS, () => {
      const { waitsFrom, gpus = Infinity, product, name } = rental;
      if (waitsFrom !== from || !this.#mayStartAnywhere(rental)) return;
      if (Math.max(this.#repricedAt, this.#resizedAt) > from - MARGIN_MS) return;
      const isStill = (node: string): boolean =>
        Math.max(this.#tookAt.get(node) ?? 0, this.#endedAt.get(node) ?? 0, this.#givenBack.get(node)?.at ?? 0) < from;
      const node = [...this.#machines.values()].find(
        (one) =>
          product !== undefined &&
          this.#suits(rental, one) &&
          isStill(one.name) &&
          gpus <= this.#freeOf(one.name, product) &&
          !this.#isTroubled(one.name, from - USABLE_MS, this.#now, { afterMs: USABLE_MS }),
      );
      if (node !== undefined)
        this.#blame(
          5,
          `${name} waits for ${gpus} GPUs, and ${node.name} has had them free for ${(this.#now - from) / 1000} s`,
        );
    });
  }

  #seeWait(rental: Rental, { status, spec }: GpuInstance): void {
    const { waitsFrom: waited, limitedFrom } = rental;
    const ready = status?.conditions?.find(({ type }) => type === 'Ready');
    const waits = status?.claim === undefined && spec.powerState === 'Running';
    const isLimited = ready?.reason === 'TenantLimit' && ready.message.includes('ceiling gpus');
    rental.waitsFrom = waits && ready?.reason === 'WaitingForCapacity' ? (waited ?? this.#now) : undefined;
    if (waited === undefined && rental.waitsFrom !== undefined) this.#mustFind(rental);
    if (limitedFrom !== undefined && rental.waitsFrom !== undefined)
      rental.wasLimited = { from: limitedFrom, to: this.#now };
    rental.limitedFrom = waits && isLimited ? (rental.limitedFrom ?? this.#now) : undefined;
    const isDiskLimited = ready?.reason === 'TenantLimit' && ready.message.includes('ceiling diskGb');
    rental.diskLimitedFrom = waits && isDiskLimited ? (rental.diskLimitedFrom ?? this.#now) : undefined;
  }

  #isTroubled(node: string, from: number, to: number, { isEnd = false, afterMs = AFTER_MS } = {}): boolean {
    const troubles = this.#troubles.get(node) ?? [];
    return troubles.some((one) => one.from <= to && one.to + afterMs >= from && (one.mayEnd || !isEnd));
  }

  took(holding: Holding, product: string): void {
    const { instance = '', gpus, node, pod } = holding;
    const rental = this.#rentals.get(instance);
    if (rental === undefined) return;
    rental.holds.add(holding);
    this.#tookAt.set(node, this.#now);
    rental.took.push(holding);
    const { name, isDeleted, stoppedAt } = rental;
    const isAstray = holding.isAstray === true;
    if (!isAstray) rental.product ??= product;
    if (!isAstray) rental.gpus ??= gpus.length;
    if (!isAstray && (rental.product !== product || rental.gpus !== gpus.length))
      this.#blame(9, `${name} has ${gpus.length} ${product}, and rented ${rental.gpus} ${rental.product}`);
    const made = Date.parse(pod.metadata.creationTimestamp ?? '');
    if (!isDeleted && stoppedAt !== undefined && this.#watch.decidedBy(stoppedAt) + MARGIN_MS < made)
      this.#blame(8, `${name} was stopped ${(made - stoppedAt) / 1000} s before ${pod.metadata.name} was made`);
    this.#mustHaveRoom(rental, made);
    this.#mustBeNext(rental, node, made);
  }

  /** Nobody gets what another has waited for longer, who needs no more. */
  #mustBeNext(rental: Rental, node: string, made: number): void {
    const { createdAt, isOnDemand, gpus = 0, product, name, namespace } = rental;
    // A ceiling that has room for one has it for another of the same tenant that needs no more.
    const sinceOf = (one: Rental): number | undefined =>
      one.waitsFrom ?? (one.namespace === namespace ? one.limitedFrom : undefined);
    const isBehind = (one: Rental): boolean => (sinceOf(one) ?? Infinity) + AHEAD_MS < createdAt;
    const machine = this.#machines.get(node);
    const ahead = [...this.#rentals.values()].filter(
      (one) =>
        one !== rental &&
        isBehind(one) &&
        (one.isOnDemand || !isOnDemand) &&
        one.product === product &&
        (one.gpus ?? Infinity) <= gpus &&
        machine !== undefined &&
        this.#suits(one, machine) &&
        // No disk ties it to a node, also of a start that never ran, and no node is to be avoided.
        one.took.length === 0 &&
        this.#mayStartOn(one),
    );
    // What became of those ahead may not have been written yet, as that their tenant had no room.
    const isCalm =
      this.#watch.decidedBy(made) < made + MARGIN_MS && this.#watch.decidedBy(this.#resizedAt) + MARGIN_MS < made;
    if (ahead.length === 0 || !isCalm || this.#isTroubled(node, made - AFTER_MS, this.#now)) return;
    const since = ahead.map((one) => [one, sinceOf(one)] as const);
    this.#onceDecided(this.#now, () => {
      const left = since.find(([one, from]) => sinceOf(one) === from && one.touchedAt < made);
      if (left !== undefined)
        this.#blame(5, `${name} gets ${gpus} ${product} on ${node} before ${left[0].name}, who waits longer`);
    });
  }

  /** Whether nothing speaks against any node for one that waits: no disk, no earlier start, and no place of another. */
  #mayStartAnywhere({ took, name, namespace }: Rental): boolean {
    const ref = { namespace, name: `${name}-disk` };
    if (took.length > 0 || this.#api.find(PERSISTENT_VOLUME_CLAIMS, ref) !== undefined) return false;
    // A place may be kept for one that others leave it for.
    return this.#coming.size === 0;
  }

  /** Nobody waits for long for what is free, from when it became free. */
  #mustMove(node: string, product: string): void {
    const from = this.#now;
    this.#onceDecided(from + GRACE_MS, () => {
      if ((this.#tookAt.get(node) ?? 0) >= from || this.#isTroubled(node, from - AFTER_MS, this.#now)) return;
      // What has ended since is free since then, and has a look of its own.
      if ((this.#endedAt.get(node) ?? 0) > from) return;
      if (this.#resizedAt > from - MARGIN_MS) return;
      const free = this.#freeOf(node, product);
      const machine = this.#machines.get(node);
      const left = [...this.#rentals.values()].find(
        (one) =>
          (one.waitsFrom ?? Infinity) < from &&
          one.product === product &&
          machine !== undefined &&
          this.#suits(one, machine) &&
          (one.gpus ?? Infinity) <= free &&
          this.#mayStartAnywhere(one),
      );
      if (left !== undefined)
        this.#blame(
          5,
          `${left.name} waits for ${left.gpus} GPUs, and ${node} has ${free} free for ${(this.#now - from) / 1000} s`,
        );
    });
  }

  /** Nobody waits for long under a ceiling that has room again: it starts, or waits for a place. */
  #mustServe(namespace: string): void {
    const from = this.#now;
    this.#onceDecided(from + GRACE_MS, () => {
      if (this.#watch.decidedBy(this.#easedAt.get(namespace) ?? 0) + MARGIN_MS > this.#now) return;
      const [granted, most] = [this.granted(namespace), this.#mostOf(namespace)];
      const left = [...this.#rentals.values()].find(
        ({ limitedFrom = Infinity, namespace: of, gpus = Infinity }) =>
          of === namespace && limitedFrom < from && granted + gpus <= most,
      );
      if (left !== undefined)
        this.#blame(
          5,
          `${left.name} waits for ${left.gpus} GPUs under a ceiling of ${most}, which has room: ${granted}`,
        );
    });
  }

  #mostOf(namespace: string): number {
    return this.#ceilings.get(namespace)?.max ?? Infinity;
  }

  /** GPUs that a tenant has or is about to have: those of a place that is coming, too. */
  granted(namespace: string): number {
    const all = this.#api.list<GpuInstance>(GPU_INSTANCES, namespace);
    return all.reduce((sum, instance) => sum + grantedOf(instance), 0);
  }

  /** A program on demand ends by itself, by its owner or by a fault of its node. */
  ended(holding: Holding): void {
    const { instance = '', node, pod, from, isCutOff, isUnheard } = holding;
    const rental = this.#rentals.get(instance);
    rental?.holds.delete(holding);
    this.#endedAt.set(node, this.#now);
    if (rental !== undefined) this.#mustMoveAny(node);
    if (rental !== undefined) this.#mustServe(rental.namespace);
    if (rental === undefined || isCutOff === true || isUnheard === true) return;
    const { isOnDemand, isDeleted, endsByItself, durations, touchedAt, stoppedAt, name } = rental;
    if (!isOnDemand || isDeleted || endsByItself || durations.size > 0 || stoppedAt !== undefined) return;
    if (touchedAt > from - BEFORE_MS || this.#isTroubled(node, from - AFTER_MS, this.#now, { isEnd: true })) return;
    // Kubernetes ends the pods of a namespace before it deletes their instances.
    const namespace = this.#api.find(NAMESPACES, { name: rental.namespace });
    if (namespace === undefined || namespace.metadata.deletionTimestamp !== undefined) return;
    const found = this.#api.find<GpuInstance>(GPU_INSTANCES, rental);
    // What came late is of a start that was over.
    if (found?.status?.incarnation !== startOf(pod)?.incarnation) return;
    // Whether its budget was spent is looked at where that is said.
    if (found?.status?.ending?.reason === 'BudgetSpent') return;
    this.#blame(9, `${name} ended on ${node}, and nobody wanted that: ${found?.status?.ending?.reason}`);
  }
}
