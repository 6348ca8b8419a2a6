import { API_VERSION } from '../../../src/resources/schema.ts';
import { type Claim, GPU_INSTANCES, type GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { parseDuration } from '../../../src/resources/schema.ts';
import { USAGE_RECORDS, type UsageRecord } from '../../../src/resources/usage-record.ts';
import type { HeldDevice } from '../../../src/resources/instances/held-devices.ts';
import { FAILURE_WINDOW_MS } from '../../../src/inventory/nodes/quarantine.ts';
import { fractionOf } from '../../../src/resources/money.ts';
import { sameJson } from '../../../src/lib/json.ts';
import type { Interval } from '../../../src/resources/instances/interval.ts';
import { instanceUidOf, startOf } from '../../../src/resources/pod/owner.ts';
import { type KubeObject, type Lease, NAMESPACES, NODES, type Pod } from '../../../src/kube/types.ts';
import { CONTROLLER_LEASE } from '../../../src/runtime/lease-record.ts';
import { FINALIZER } from '../../../src/resources/cleanup.ts';
import type { Exported } from '../../../src/sink/export.ts';
import type { ApiServer } from '../api/server.ts';
import type { MemorySink } from '../berth/memory-sink.ts';
import type { Cluster } from '../nodes/cluster.ts';
import type { VirtualTime } from '../clock/virtual-time.ts';
import { uuidOf } from '../nodes/driver.ts';
import type { Piece } from '../nodes/layout.ts';
import type { Machine } from '../nodes/machine.ts';
import type { Holding, Witness } from '../nodes/witness.ts';
import { Ledger } from './ledger.ts';
import { Owners } from './owners.ts';
import { Purses } from './purses.ts';
import { wrongIn } from './sums.ts';

/** What went wrong, against which invariant, and when. */
export interface Violation {
  invariant: number;
  what: string;
  /** Milliseconds since the world began. */
  at: number;
}

/** Annotation of a pod that a tenant made, with the uid of the instance whose it claims to be. */
export const FORGED = 'example.com/forged-of';
/** So long nobody else takes the lease of the controllers. */
const LEASE_MS = 8_000;
/** Replicas say within this time who uses what. */
const HEARD_MS = 45_000;
/** Histories are written within this time. */
const HISTORY_MS = 60_000;
/** No status is written so often within a minute. */
const MANY_WRITES = 200;
const MINUTE_MS = 60_000;
/** Starts of an instance within an hour. */
const MOST_PODS = 11;
const HOUR_MS = 3_600_000;
/** Kubelets write whole seconds, and the controller reads them between two writes. */
const ROUNDING_MS = 2_000;
const GRACE_MS = 30_000;
/** Berth sees what happened, and decides, within this time while nothing is broken. */
const REACTION_MS = 5_000;
/** After a fault of its leader or of its way to the API server, Berth is itself again within this time. */
const RECOVERY_MS = 20_000;

interface Life {
  uid: string;
  name: string;
  namespace: string;
  holdings: Holding[];
  /** When its owner or anybody else began to delete it, or it was gone. */
  isDeleted: boolean;
  goneAt?: number;
  /** Berth kept it until it went. */
  wasKept?: boolean;
  /** A person deleted it, or asked that it be deleted after some time. */
  isUnwanted: boolean;
  keepsDisk: boolean;
  hadDisk: boolean;
  /** Numbers of starts, each with the UUID of a GPU that its status named. */
  named: Set<string>;
  /** When it was switched off or deleted. */
  stops: number[];
  /** When Berth said that a start of it ends. */
  endings: number[];
  /** When people used it. */
  uses: { from: number; to?: number }[];
  /** Its namespace was deleted, with all bills and disks in it. */
  isNamespaceGone: boolean;
  /** Somebody took off what keeps it until it is billed. */
  isUnbilled: boolean;
  /** Writes of it since a moment. */
  writes: { since: number; count: number };
}

/** The starts that are billed, by their number. */
type Billed = Map<number, Interval>;

/** Milliseconds of some spans that lie between two moments. */
function sumWithin(spans: readonly { from: number; to?: number }[], from: number, end: number): number {
  return spans.reduce(
    (sum, { from: began, to = end }) => sum + Math.max(0, Math.min(to, end) - Math.max(from, began)),
    0,
  );
}

/** How many whole GPUs a holding has. One that is astray pays for as many as it rented. */
function gpusOf(holding: Holding | undefined, rented: Claim | undefined): number {
  if (holding?.isAstray === true && rented !== undefined) return rented.gpuCount * fractionOf(rented.gpuShare);
  return (holding?.pieces ?? []).reduce((sum, { share }) => sum + fractionOf(share), 0);
}

/** Whether two devices of a GPU are beside each other: other partitions, or other replicas. */
function areBeside(a: Piece, b: Piece): boolean {
  return a.id !== b.id && a.kind === b.kind && a.kind !== 'whole';
}

/** What a holding has of the GPU of a device. */
function idsOn({ pieces }: Holding, { gpu }: Piece): string {
  return pieces.flatMap((one) => (one.gpu === gpu ? [one.id] : [])).join(', ');
}

/** Whether a pod came after one of a later start: its creation was on its way for so long. */
function isLate(pod: Pod, other: Pod): boolean {
  return (startOf(pod)?.incarnation ?? 0) < (startOf(other)?.incarnation ?? 0);
}

/** Knows what the kubelets really ran, and nothing of the books of Berth, which it compares with that. */
export class Judge implements Witness {
  readonly violations: Violation[] = [];
  readonly history: { at: number; text: string }[] = [];
  readonly #time: VirtualTime;
  readonly #lives = new Map<string, Life>();
  /** By uid, also of those that are long over: a disk that is kept has their files. */
  readonly #tenants = new Map<string, string>();
  /** When Kubernetes knew that a node does not answer, */
  readonly #silences = new Map<string, { from: number; to?: number }[]>();
  /** and when it really did not. */
  readonly #aways = new Map<string, { from: number; to?: number }[]>();
  /** When each node answered again. */
  readonly #answers = new Map<string, number[]>();
  /** When Berth could hear or decide nothing, oldest begin first. */
  readonly #outages: { from: number; to: number }[] = [];
  /** Who has a GPU or parts of it, by UUID. */
  readonly #usedBy = new Map<string, Set<Holding>>();
  /** When the GPUs of a node were last given out otherwise. */
  readonly #switchedAt = new Map<string, number>();
  #api: ApiServer | undefined;
  #owners: Owners | undefined;
  #purses: Purses | undefined;
  #ledger: Ledger | undefined;
  /** The lease of the controllers. */
  #renewedAt = 0;
  #holdings = 0;
  #seen = 0;

  constructor(time: VirtualTime) {
    this.#time = time;
  }

  get starts(): number {
    return this.#holdings;
  }

  /** Instances that ever were. */
  get lives(): number {
    return this.#seen;
  }

  follow(cluster: Pick<Cluster, 'api' | 'devices' | 'machines'>): void {
    const { api } = cluster;
    this.#api = api;
    const watch = {
      time: this.#time,
      blame: (invariant: number, what: string) => this.blame(invariant, what),
      decidedBy: (at: number) => this.#decidedBy(at),
      isBehind: (node: string, at: number) => this.#isBehind(node, at),
      hasBudgetFor: (instance: GpuInstance) => this.#purses?.hasRoomFor(instance) ?? true,
    };
    this.#owners = new Owners(watch, cluster);
    this.#purses = new Purses(watch, api);
    this.#ledger = new Ledger(watch, api, (uid) => this.#lives.get(uid)?.isUnbilled ?? true);
    api.follow(({ kind, before, after }) => {
      if (kind.type.kind === 'Namespace' && after?.metadata.deletionTimestamp !== undefined)
        this.#seeEnd(after.metadata.name);
      if (kind.type.kind === 'Pod' && after === undefined) this.#seePodGone(before as Pod);
      if (kind.type.kind === 'Pod' && before?.metadata.deletionTimestamp === undefined) this.#seePodGo(before, after);
      if (kind.type.kind === 'Lease') this.#seeLease(before, after);
      if (kind.type.kind !== 'GPUInstance') return;
      const instance = (after ?? before) as GpuInstance;
      const { uid = '', name, namespace = '' } = instance.metadata;
      const life = this.#life(uid, name, namespace);
      this.#mustRest(life);
      this.#mustHaveEnded(life, before as GpuInstance | undefined, after as GpuInstance | undefined);
      const { diskPolicy, onExpiry, maxDuration, idleTimeout } = instance.spec;
      const isOff = (one: GpuInstance | undefined): boolean =>
        one?.spec.powerState === 'Stopped' || one?.metadata.deletionTimestamp !== undefined;
      if (isOff(after as GpuInstance | undefined) && !isOff(before as GpuInstance | undefined))
        life.stops.push(this.#time.wall);
      const isEnding = (one: KubeObject | undefined): boolean =>
        (one as GpuInstance | undefined)?.status?.ending !== undefined;
      if (isEnding(after) && !isEnding(before)) life.endings.push(this.#time.wall);
      if (instance.metadata.deletionTimestamp === undefined) life.keepsDisk = diskPolicy === 'Retain';
      const { incarnation = 0, devices = [] } = (after as GpuInstance | undefined)?.status ?? {};
      for (const { uuid } of devices) if (uuid !== undefined) life.named.add(`${incarnation} ${uuid}`);
      const isIdle = (one: GpuInstance | undefined): boolean => one?.status?.ending?.reason === 'Idle';
      if (isIdle(after as GpuInstance | undefined) && !isIdle(before as GpuInstance | undefined))
        this.#mustBeIdle(life, idleTimeout);
      if (onExpiry === 'Delete' && (maxDuration ?? idleTimeout) !== undefined) life.isUnwanted = true;
      if (after === undefined || after.metadata.deletionTimestamp !== undefined) life.isDeleted = true;
      if (after === undefined) {
        life.goneAt = this.#time.wall;
        life.wasKept = before?.metadata.finalizers?.includes(FINALIZER) ?? false;
      }
    });
  }

  /** Nobody takes the lease of the controllers from a holder that may still write. */
  #seeLease(before: Lease | undefined, after: Lease | undefined): void {
    if (after?.metadata.name !== CONTROLLER_LEASE) return;
    const [old, now] = [before, after].map((one) => one?.spec?.holderIdentity ?? '');
    const heldMs = this.#time.wall - this.#renewedAt;
    if (old !== '' && now !== '' && old !== now && heldMs < LEASE_MS)
      this.blame(1, `the lease of a leader that renewed it ${(heldMs / 1000).toFixed(1)} s ago is taken`);
    this.#renewedAt = this.#time.wall;
  }

  /** What a tenant made itself is its own, whatever it says that it is. */
  #seePodGo(before: KubeObject | undefined, after: KubeObject | undefined): void {
    const { name, namespace = '', annotations, ownerReferences = [] } = before?.metadata ?? { name: '' };
    const uid = annotations?.[FORGED];
    if (uid === undefined || (after !== undefined && after.metadata.deletionTimestamp === undefined)) return;
    // With its namespace it goes, and with its owner.
    const isNamespaceGoing = this.#api?.find(NAMESPACES, { name: namespace })?.metadata.deletionTimestamp !== undefined;
    const life = this.#lives.get(uid);
    const isOwnerGoing = ownerReferences.length > 0 && (life === undefined || life.isDeleted);
    if (!isNamespaceGoing && !isOwnerGoing) this.blame(10, `${namespace}/${name} of a tenant itself is deleted`);
  }

  /** A pod counts until its program has ended, or its node is gone. */
  #seePodGone(pod: Pod): void {
    const uid = instanceUidOf(pod) ?? '';
    const runs = this.#runs(this.#lives.get(uid)?.holdings ?? [], pod.metadata.uid);
    if (runs !== undefined) this.blame(1, `${pod.metadata.name} is gone, and ${runs.node} runs it`);
  }

  /** Nobody writes to an instance again and again: what a write says must not bring the next. */
  #mustRest({ name, writes }: Life): void {
    if (this.#time.wall > writes.since + MINUTE_MS) Object.assign(writes, { since: this.#time.wall, count: 0 });
    writes.count += 1;
    if (writes.count === MANY_WRITES) this.blame(6, `${name} is written ${MANY_WRITES} times within a minute`);
  }

  /** An instance has its place, and is there, until its program has ended. */
  #mustHaveEnded({ name, holdings, isUnbilled }: Life, before?: GpuInstance, after?: GpuInstance): void {
    const { claim, podUid } = before?.status ?? {};
    if (claim === undefined || after?.status?.claim !== undefined || isUnbilled) return;
    const runs = this.#runs(holdings, podUid);
    if (runs !== undefined)
      this.blame(2, `${name} gives its place back, and ${runs.node} runs ${runs.pod.metadata.name}`);
  }

  /** What runs of a pod, on a node that is not gone. */
  #runs(holdings: readonly Holding[], podUid: string | undefined): Holding | undefined {
    const found = holdings.find(({ pod, to }) => to === undefined && pod.metadata.uid === podUid);
    return found === undefined || this.#api?.find(NODES, { name: found.node }) === undefined ? undefined : found;
  }

  /** Somebody uses an instance, until the answer is called. */
  used(uid: string): () => void {
    const use: { from: number; to?: number } = { from: this.#time.wall };
    this.#lives.get(uid)?.uses.push(use);
    return () => {
      use.to ??= this.#time.wall;
    };
  }

  /** Nobody used it for as long as its owner allows. A session that began just now may be on its way to Berth. */
  #mustBeIdle({ name, uses }: Life, idleTimeout = '0s'): void {
    const { wall } = this.#time;
    const known = uses.filter(({ from }) => from < wall - HEARD_MS);
    const last = Math.max(0, ...known.map(({ to = wall }) => to));
    const idleMs = wall - last;
    if (idleMs + ROUNDING_MS < parseDuration(idleTimeout))
      this.blame(4, `${name} ends as idle after ${idleTimeout}, and was used ${(idleMs / 1000).toFixed(1)} s ago`);
  }

  /** Somebody does something to an instance that may end its program. */
  touched(uid: string): void {
    this.#owners?.touched(uid);
  }

  /** Something is wrong with a node, for so long. `mayEnd`: also with what runs there. */
  troubled(node: string, ms: number, mayEnd: boolean): void {
    this.#owners?.troubled(node, ms, mayEnd);
  }

  /** A person deletes an instance. */
  unwanted(uid: string): void {
    const life = this.#lives.get(uid);
    if (life !== undefined) life.isUnwanted = true;
  }

  /** A person deletes an instance, and takes off what keeps it until it is billed. */
  unbilled(uid: string): void {
    const life = this.#lives.get(uid);
    if (life !== undefined) Object.assign(life, { isUnwanted: true, isUnbilled: true });
    this.#owners?.cleared(uid);
  }

  /** GPUs that a tenant has or is about to have. */
  granted(namespace: string): number {
    return this.#owners?.granted(namespace) ?? 0;
  }

  /** Whether a node gives out nothing, because somebody has what it does not give out any more. */
  isClosed(node: string): boolean {
    return this.#owners?.isClosed(node) ?? false;
  }

  /** Whether the GPUs of a machine are what an instance rents. */
  suits(uid: string, machine: Machine): boolean {
    return this.#owners?.suits(uid, machine) ?? false;
  }

  /** Whether a ceiling of its tenant leaves room for so many GPUs. */
  hasRoom(namespace: string, gpus: number): boolean {
    return this.#owners?.hasRoom(namespace, gpus) ?? true;
  }

  /** Whether the ceiling over the disks of a tenant has room for so many GB. */
  hasDiskRoom(namespace: string, gb: number): boolean {
    return this.#owners?.hasDiskRoom(namespace, gb) ?? true;
  }

  /** Whether a key may call, as everybody must know by now; undefined while some may not. */
  mayCall(hash: string): boolean | undefined {
    return this.#purses?.mayCall(hash);
  }

  /** What budgets hold, when nothing was broken or asked for some time. */
  judgeBudgets(): void {
    this.#purses?.judgeAtRest();
  }

  /** A copy of the bills was made, and reached everything. */
  exported(exported: Exported, sink: MemorySink): void {
    this.#ledger?.exported(exported, sink);
  }

  /** When an instance was used last; now while it is. */
  lastUsed(uid: string): number {
    return Math.max(0, ...(this.#lives.get(uid)?.uses ?? []).map(({ to = this.#time.wall }) => to));
  }

  /**
   * Whether nothing need be known of an instance that is gone: its namespace went, somebody cleared it away, or it went
   * while nobody could write its history. What Berth itself keeps goes only once its history is written.
   */
  isForgotten(uid: string): boolean {
    const life = this.#lives.get(uid);
    if (life === undefined || life.isNamespaceGone || life.isUnbilled) return true;
    const { goneAt = this.#time.wall, wasKept } = life;
    if (wasKept === true) return false;
    return this.#outages.some(({ from, to }) => from < goneAt + HISTORY_MS && to + HISTORY_MS > goneAt);
  }

  /** Whether the last instance of this name left a disk that goes with it, as far as Berth could see. */
  leavesDisk(namespace: string, name: string): boolean {
    const lives = [...this.#lives.values()].filter((life) => life.namespace === namespace && life.name === name);
    const last = lives.at(-1);
    return last !== undefined && !last.keepsDisk && !last.isUnbilled && !last.isNamespaceGone;
  }

  /** Whether an instance may be gone, because a person wants that or took away its namespace. */
  mayBeGone(uid: string): boolean {
    const life = this.#lives.get(uid);
    return life === undefined || life.isUnwanted || life.isNamespaceGone;
  }

  note(text: string): void {
    this.history.push({ at: this.#time.elapsed, text });
    if (this.history.length > 20_000) this.history.splice(0, 10_000);
  }

  /** For so long from now Berth may hear or decide nothing, and it needs some time to recover. */
  disturb(ms: number): void {
    const from = this.#time.wall;
    this.#outages.push({ from, to: from + ms + RECOVERY_MS });
  }

  /** When Berth can have decided about something that happened then, at the latest. */
  #decidedBy(at: number): number {
    let by = at;
    // One outage may begin before Berth has recovered from another.
    for (const { from, to } of this.#outages) if (from <= by + REACTION_MS && to > by) by = to;
    return by + REACTION_MS;
  }

  /** When Kubernetes noticed that a node lost its power then, or the node answered before. */
  #noticedBy(node: string, at: number): number {
    const noticed = this.#silences.get(node)?.find(({ from }) => from >= at)?.from ?? Infinity;
    const answered = this.#answers.get(node)?.find((one) => one >= at) ?? Infinity;
    return Math.min(noticed, answered, this.#time.wall);
  }

  blame(invariant: number, what: string): void {
    this.violations.push({ invariant, what, at: this.#time.elapsed });
    this.note(`!! ${invariant}: ${what}`);
  }

  took(holding: Holding, product: string): void {
    const { instance, node, gpus, pod } = holding;
    if (instance === undefined) return;
    this.#holdings += 1;
    const name = pod.metadata.ownerReferences?.find(({ apiVersion }) => apiVersion === API_VERSION)?.name ?? '?';
    this.note(`${node} gives ${gpus.length} GPUs to ${pod.metadata.namespace}/${pod.metadata.name}`);
    this.#mustBeUnused(holding);
    const life = this.#life(instance, name, pod.metadata.namespace ?? '');
    const other = life.holdings.find(({ to }) => to === undefined);
    if (other !== undefined && other.pod.metadata.uid !== pod.metadata.uid && !isLate(pod, other.pod)) {
      this.blame(
        1,
        `${pod.metadata.name} runs on ${node} while ${other.pod.metadata.name} still runs on ${other.node}`,
      );
    }
    life.holdings.push(holding);
    this.#owners?.took(holding, product);
    const since = this.#time.wall - HOUR_MS;
    const recent = new Set(life.holdings.filter(({ from }) => from > since).map((one) => one.pod.metadata.uid));
    if (recent.size > MOST_PODS) this.blame(6, `${name} had ${recent.size} pods within an hour`);
  }

  /** A GPU has one program at a time, each of its partitions has one, and of its replicas no more are used than there are. */
  #mustBeUnused(holding: Holding): void {
    const { pieces, pod, node } = holding;
    holding.isAstray = this.#isBehind(node, Date.parse(pod.metadata.creationTimestamp ?? ''));
    for (const piece of pieces) {
      const users = this.#usedBy.get(piece.gpu) ?? new Set();
      this.#usedBy.set(piece.gpu, users);
      const others = [...users].filter((one) => one !== holding && one.to === undefined && this.#isKnown(one, piece));
      const other =
        others.find((one) => one.pieces.some((its) => its.gpu === piece.gpu && !areBeside(piece, its))) ??
        (others.length < piece.most ? undefined : others[0]);
      if (other !== undefined && !holding.isAstray)
        this.blame(
          1,
          `${piece.id} has ${pod.metadata.name} while ${other.pod.metadata.name} still has ${idsOn(other, piece)}`,
        );
      users.add(holding);
    }
  }

  /**
   * Whether Berth can know what of a GPU a holding has. Of an instance that an operator took away nobody knows how the GPUs
   * were divided that its program still has.
   */
  #isKnown({ isAstray, instance = '', pieces }: Holding, { kind }: Piece): boolean {
    const isOtherwise = pieces.some((piece) => piece.kind !== kind);
    return isAstray !== true && !(isOtherwise && this.#owners?.isCleared(instance) === true);
  }

  refused(node: string): void {
    this.troubled(node, FAILURE_WINDOW_MS, false);
  }

  switched(node: string): void {
    this.note(`the GPUs of ${node} are given out otherwise`);
    this.#switchedAt.set(node, this.#time.wall);
  }

  /** Whether nobody had to know at a moment how the GPUs of a node are given out. */
  #isBehind(node: string, at: number): boolean {
    const since = this.#switchedAt.get(node);
    return since !== undefined && at < this.#decidedBy(since) + ROUNDING_MS;
  }

  ended(holding: Holding): void {
    const { node, pod } = holding;
    this.note(`${node} has ended ${pod.metadata.namespace}/${pod.metadata.name}`);
    for (const { gpu } of holding.pieces) this.#usedBy.get(gpu)?.delete(holding);
    this.#owners?.ended(holding);
    if (holding.isUnheard !== true) this.#time.afterPlain(REACTION_MS, () => this.#mustBeFree(holding));
  }

  /** The GPUs of a container that has ended are free soon, whatever finalizers its pod has. */
  #mustBeFree(holding: Holding): void {
    const { to = 0, instance = '', pod } = holding;
    const life = this.#lives.get(instance);
    if (life === undefined) return;
    const left = this.#decidedBy(to) - this.#time.wall;
    if (left > 0) {
      this.#time.afterPlain(left, () => this.#mustBeFree(holding));
      return;
    }
    const found = this.#api?.find<GpuInstance>(GPU_INSTANCES, life);
    if (found?.metadata.uid !== instance || found.status?.claim === undefined) return;
    if (found.status.podUid !== pod.metadata.uid) return;
    const seconds = ((this.#time.wall - to) / 1000).toFixed(1);
    this.blame(2, `${life.name} holds GPUs, although ${pod.metadata.name} ended ${seconds} s ago`);
  }

  rejected(pod: Pod, node: string, why: string): void {
    if (this.#isBehind(node, Date.parse(pod.metadata.creationTimestamp ?? ''))) return;
    this.blame(1, `${node} rejected ${pod.metadata.namespace}/${pod.metadata.name}: ${why}`);
  }

  silent(node: string, isSilent: boolean): void {
    this.note(`${node} ${isSilent ? 'is silent' : 'answers'}`);
    const known = this.#silences.get(node) ?? [];
    this.#silences.set(node, known);
    const last = known.at(-1);
    if (!isSilent) this.#answers.set(node, [...(this.#answers.get(node) ?? []), this.#time.wall]);
    if (isSilent) known.push({ from: this.#time.wall });
    else if (last !== undefined) last.to ??= this.#time.wall;
  }

  away(node: string, isAway: boolean): void {
    const known = this.#aways.get(node) ?? [];
    this.#aways.set(node, known);
    const last = known.at(-1);
    if (isAway) known.push({ from: this.#time.wall });
    else if (last !== undefined) last.to ??= this.#time.wall;
  }

  mounted({ instance, pod }: Holding, volume: string, contents: Set<string>): void {
    if (instance === undefined) return;
    const life = this.#life(instance, pod.metadata.name, pod.metadata.namespace ?? '');
    const foreign = [...contents].find((uid) => uid !== instance && this.#tenants.get(uid) !== life.namespace);
    if (foreign !== undefined) this.blame(10, `${pod.metadata.name} has the files of another tenant on ${volume}`);
    if (life.hadDisk && !contents.has(instance)) this.blame(4, `${pod.metadata.name} starts without its files`);
    life.hadDisk = true;
    // The disk that an instance left to its successor goes as that one says.
    for (const uid of contents) {
      const earlier = this.#lives.get(uid);
      if (uid !== instance && earlier?.isDeleted === true) earlier.keepsDisk = false;
    }
    contents.add(instance);
  }

  volumeGone(volume: string, contents: ReadonlySet<string>, claim: string): void {
    for (const uid of contents) {
      const life = this.#lives.get(uid);
      if (life === undefined || life.isNamespaceGone || (life.isDeleted && !life.keepsDisk)) continue;
      this.blame(4, `the disk ${claim} (${volume}) of ${life.name} is gone, and nobody deleted that instance`);
    }
  }

  /** Compares bills with what was run, of instances that are gone. Forgets them. */
  settle(api: ApiServer): void {
    const billed = new Map<string, Billed>();
    for (const { metadata, spec } of api.list<UsageRecord>(USAGE_RECORDS)) {
      if (spec.adjustment !== undefined) continue;
      const known = billed.get(spec.instanceUid) ?? new Map<number, Interval>();
      for (const interval of spec.intervals ?? []) {
        if (known.has(interval.start)) this.blame(3, `start ${interval.start} of ${spec.instance} is billed twice`);
        known.set(interval.start, interval);
      }
      const wrong = wrongIn(spec);
      if (wrong !== undefined) this.blame(3, `${metadata.name}: ${wrong}`);
      billed.set(spec.instanceUid, known);
    }
    const left = new Set(api.list<GpuInstance>(GPU_INSTANCES).map(({ metadata }) => metadata.uid));
    for (const [uid, life] of this.#lives) {
      if (left.has(uid)) continue;
      // What an operator deleted was a bill, too.
      const known = billed.get(uid) ?? new Map<number, Interval>();
      for (const interval of this.#ledger?.deletedOf(uid) ?? []) known.set(interval.start, interval);
      if (!life.isNamespaceGone) this.#compare(life, known);
      this.#lives.delete(uid);
      this.#owners?.forget(uid);
      this.#ledger?.forget(uid);
    }
    for (const record of api.list<UsageRecord>(USAGE_RECORDS)) {
      if (record.spec.adjustment === undefined && !left.has(record.spec.instanceUid))
        api.delete(USAGE_RECORDS, record.metadata);
    }
  }

  #seeEnd(namespace: string): void {
    for (const life of this.#lives.values()) if (life.namespace === namespace) life.isNamespaceGone = true;
  }

  /** The rule of the meter, from what was run: never more, and no less than the grace and what was silent allow. */
  #compare(life: Life, billed: Billed): void {
    const { uid, name, namespace, holdings, isUnbilled, named } = life;
    const ran = Map.groupBy(holdings, ({ pod }) => startOf(pod)?.incarnation ?? 0);
    for (const start of new Set([...ran.keys(), ...billed.keys()])) {
      const bill = billed.get(start);
      const { claim, at: grantedAt = Infinity } = this.#owners?.claimOf(uid, start) ?? {};
      const isByPreemption = bill?.byPreemption === true;
      const { most, least } = this.#meter(ran.get(start) ?? [], life, { claim, ...(isByPreemption && { grantedAt }) });
      const ms = (bill?.gpuSeconds ?? 0) * 1000;
      const said = `start ${start} of ${namespace}/${name} is billed ${ms / 1000} GPU seconds and ran`;
      if (ms > most) this.blame(3, `${said} ${most / 1000} at most`);
      if (ms < least && !isUnbilled) this.blame(3, `${said} ${least / 1000} at least`);
      const { pricePerHour } = claim ?? {};
      const gpus = bill?.devices?.map(({ pool, device, uuid }) => {
        const real = uuidOf(pool, device);
        // No slice may have told of it while it ran.
        return uuid ?? (named.has(`${start} ${real}`) ? '?' : real);
      });
      // The place that others left is billed from its grant, and the scheduler may have chosen before a kubelet did.
      const isChosen = isByPreemption && !ran.has(start);
      if (gpus !== undefined && !isChosen)
        this.#mustName(`the bill of start ${start} of ${name}`, gpus, ran.get(start) ?? []);
      if (bill !== undefined && pricePerHour !== undefined && bill.pricePerHour !== pricePerHour)
        this.blame(3, `start ${start} of ${name} is billed at ${bill.pricePerHour}, and began at ${pricePerHour}`);
    }
  }

  /** GPUs are those that a kubelet gave to a pod. */
  #mustName(what: string, gpus: readonly string[], holdings: readonly Holding[]): void {
    const said = gpus.toSorted();
    const had = holdings.map((holding) => holding.gpus.toSorted());
    if (!had.some((one) => sameJson(one, said)))
      this.blame(3, `${what} names ${said.join(', ')}, and it had ${had.map((one) => one.join(', ')).join(' or ')}`);
  }

  /** A status names the GPUs that its pod has. */
  mustNameGpus(name: string, devices: readonly HeldDevice[] | undefined, holding: Holding): void {
    this.#mustName(name, devices?.map(({ uuid = '?' }) => uuid) ?? [], [holding]);
  }

  /** GPU milliseconds that one start may and must cost. `grantedAt`: when it was granted a place that others left for it. */
  #meter(
    holdings: readonly Holding[],
    { stops, endings }: Pick<Life, 'stops' | 'endings'>,
    { grantedAt, claim }: { grantedAt?: number; claim?: Claim | undefined },
  ): { most: number; least: number } {
    let most = holdings.length === 0 ? Infinity : 0;
    let least = 0;
    // The place that others left is billed from its grant, with a pod or without.
    if (holdings.length === 0 && grantedAt === undefined) most = 0;
    for (const starts of Map.groupBy(holdings, ({ pod }) => pod.metadata.uid).values()) {
      const ran = starts.filter(({ ranFrom }) => ranFrom !== undefined);
      const [first] = ran;
      const last = ran.at(-1);
      const made = Date.parse(starts[0]?.pod.metadata.creationTimestamp ?? '');
      if (first?.ranFrom === undefined || last === undefined) {
        // Whoever took the place of others pays from its grant.
        const from = Math.min(made, grantedAt ?? Infinity);
        if (grantedAt !== undefined) most += gpusOf(starts[0], claim) * (this.#time.wall - from + ROUNDING_MS);
        continue;
      }
      const from = grantedAt === undefined ? first.ranFrom : Math.min(made, grantedAt) - ROUNDING_MS;
      const end = last.ranTo ?? last.to ?? this.#time.wall;
      const silentMs = this.#silentMs(first.node, first.ranFrom, end);
      const heardMs = this.#heardMs(first.node, first.ranFrom, end);
      // A place is held until its end is decided, and billed so long (docs/decisions/0048).
      // Of a node that is away nobody hears, before Kubernetes has noticed that.
      const isUnheard = last.isCutOff === true || last.isUnheard === true;
      const held = this.#decidedBy(isUnheard ? this.#noticedBy(last.node, end) : end);
      most += gpusOf(first, claim) * (held - from - Math.max(0, heardMs - ROUNDING_MS) + ROUNDING_MS);
      // However late Berth carries out what its owner asked for: nobody pays more than the grace for that.
      // Where nothing is heard of the end, the meter stops when that was decided.
      const { ranFrom: began } = first;
      const decided = isUnheard ? [...stops, ...endings].toSorted((a, b) => a - b) : stops;
      const asked = decided.find((at) => at > began) ?? end;
      const ranMs = ran.reduce(
        (sum, { ranFrom = 0, ranTo = end }) => sum + Math.max(0, Math.min(ranTo, asked) - ranFrom),
        0,
      );
      least += gpusOf(first, claim) * Math.max(0, ranMs - silentMs - GRACE_MS - ROUNDING_MS);
    }
    return { most, least };
  }

  /** The same of those silences that Berth must have heard of before they were over. */
  #heardMs(node: string, from: number, end: number): number {
    const heard = (this.#silences.get(node) ?? []).filter(({ from: began, to = end }) => this.#decidedBy(began) < to);
    return sumWithin(heard, from, end);
  }

  #silentMs(node: string, from: number, end: number): number {
    return sumWithin(this.#aways.get(node) ?? [], from, end);
  }

  #life(uid: string, name: string, namespace: string): Life {
    const known = this.#lives.get(uid);
    if (known !== undefined) return known;
    const life: Life = {
      uid,
      name,
      namespace,
      holdings: [],
      isDeleted: false,
      isUnwanted: false,
      keepsDisk: false,
      hadDisk: false,
      named: new Set(),
      stops: [],
      endings: [],
      uses: [],
      isNamespaceGone: false,
      isUnbilled: false,
      writes: { since: this.#time.wall, count: 0 },
    };
    this.#lives.set(uid, life);
    this.#tenants.set(uid, namespace);
    this.#seen += 1;
    return life;
  }
}
