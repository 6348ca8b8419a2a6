import { INSTANCE_LABEL, INSTANCE_UID_LABEL, instanceUidOf, ownerOf } from '../../../src/resources/pod/owner.ts';
import { FINALIZER } from '../../../src/resources/cleanup.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { GPU_POOLS, type GpuPool } from '../../../src/resources/gpu-pool.ts';
import {
  TENANT_POLICIES,
  type TenantPolicy,
  tenantPolicySpecSchema,
} from '../../../src/resources/tenants/tenant-policy.ts';
import {
  type KubeObject,
  NAMESPACES,
  NODES,
  type ObjectRef,
  type Pod,
  PODS,
  RESOURCE_QUOTAS,
  type ResourceQuota,
  type ResourceType,
} from '../../../src/kube/types.ts';
import { DEVICE_TAINT_RULES, type DeviceTaintRule } from '../../../src/kube/devices.ts';
import type { FrontProcess } from '../berth/front-process.ts';
import { Failure } from '../api/failure.ts';
import type { Weather } from '../api/network.ts';
import { FORGED } from '../judge/judge.ts';
import { GPUS } from '../nodes/amounts.ts';
import { deviceName, DRIVER } from '../nodes/driver.ts';
import type { LayoutName } from '../nodes/layout.ts';
import type { Machine } from '../nodes/machine.ts';
import { PRODUCTS, type World } from '../world.ts';
import { type Act, textOf } from './acts.ts';
import { Treasurer } from './treasurer.ts';

/** The finalizer of somebody else. */
export const HELD = 'example.com/held';

/** What a caller of the HTTP interface was told. */
export interface Told {
  ref: ObjectRef & { namespace: string };
  uid: string | undefined;
}

/** Troubles of nodes of which no program ends. */
const RUNS_ON: ReadonlySet<string> = new Set(['hideSlices', 'unready']);
/** Acts and fields of which no program ends. */
const WORDS: ReadonlySet<string> = new Set([
  'repeat',
  'again',
  'session',
  'ask',
  'start',
  'forge',
  'correct',
  'deleteRecords',
]);
const HARMLESS: ReadonlySet<string> = new Set(['displayName', 'image', 'maxPrice', 'diskPolicy', 'onExpiry']);

const STORMS: Readonly<Record<Extract<Act, { do: 'storm' }>['kinds'][number], Partial<Weather>>> = {
  refused: { refused: 0.5 },
  failed: { failed: 0.3 },
  lost: { lost: 0.3 },
  slow: { slow: 0.3 },
  lag: { watchLagMs: [500, 8_000] },
  // What is lost matters more to who does not see what is there.
  blind: { lost: 0.5, watchLagMs: [500, 8_000] },
  away: { isAway: true },
};

/** Until GPUs are given out otherwise. */
const SWITCH_MS = 10_000;
/** What the names of pools end with that are the halves of others. */
const HALF = '-half';
/** Sizes that a pool offers which says nothing of them. */
const ALL_SIZES = [1, 2, 4, 8];

function productOf({ product, part = '' }: Extract<Act, { do: 'rent' }>): string {
  return `${PRODUCTS[product] ?? ''}${part}`;
}

/** Of what somebody rents with kubectl. */
function nameOf(id: number): string {
  return `k-${id}`;
}

/** Everybody who does something in a world. */
export class People {
  readonly #world: World;
  readonly #rented = new Map<number, Told>();
  readonly #rents = new Map<number, Extract<Act, { do: 'rent' }>>();
  /** What the requests of one key were answered. */
  readonly #answered = new Map<number, string>();
  /** What was asked for first of each. */
  readonly #asked = new Map<number, string>();
  /** Pools that are gone for a while. */
  #pools: GpuPool[] = [];
  /** Instances that a caller was told of, by uid: they stay until somebody deletes them. */
  readonly promised = new Map<string, string>();
  readonly refusals = new Map<string, number>();
  /** Who looks after keys and bills. */
  readonly #treasurer: Treasurer;

  constructor(world: World) {
    this.#world = world;
    this.#treasurer = new Treasurer(world, (of) => this.#rented.get(of));
  }

  perform(act: Act): void {
    this.#world.judge.note(textOf(act));
    this.#tell(act);
    try {
      this.#do(act);
    } catch (error) {
      // What a person asks for may be refused.
      if (!(error instanceof Failure)) throw error;
    }
  }

  /** The judge hears of what may end a program. */
  #tell(act: Act): void {
    const { judge } = this.#world;
    if ('node' in act && 'forMs' in act && act.do !== 'switch')
      judge.troubled(`node-${act.node}`, act.forMs, !RUNS_ON.has(act.do));
    if (act.do === 'unpool')
      for (const node of this.#world.cluster.machines.keys()) judge.troubled(node, act.forMs, true);
    if (!('of' in act) || (act.do === 'edit' && HARMLESS.has(act.field))) return;
    if (!WORDS.has(act.do)) judge.touched(this.#instanceOf(act.of)?.metadata.uid ?? '');
  }

  /** What is in the way of rest goes: nothing is lost, cordoned, held or broken any more. */
  heal(): void {
    const { cluster } = this.#world;
    this.#bringPools();
    this.#unite();
    this.#offerAllSizes();
    this.#world.setWeather({});
    for (const { clock } of this.#world.processes) clock.thaw();
    for (const machine of cluster.machines.values()) {
      cluster.restore(machine.name);
      cluster.setReady(machine.name);
      if (cluster.api.find(NODES, { name: machine.name }) === undefined) machine.register();
      cluster.cordon(machine.name, false);
      for (let gpu = 0; gpu < machine.shape.gpus; gpu += 1) machine.setSick(gpu, false);
      machine.hideSlices(false);
    }
    if (cluster.api.servesDevices)
      for (const { metadata } of cluster.api.list(DEVICE_TAINT_RULES)) cluster.api.delete(DEVICE_TAINT_RULES, metadata);
    // What holds a pod must hold nothing else, however long it stays.
    for (const { metadata } of cluster.api.list<KubeObject>(GPU_INSTANCES)) this.#release(GPU_INSTANCES, metadata);
    for (const name of this.#world.tenants)
      if (cluster.api.find(NAMESPACES, { name }) === undefined) this.#world.addTenant(name);
  }

  #instanceOf(of: number): GpuInstance | undefined {
    const told = this.#rented.get(of);
    const found = told && this.#world.cluster.api.find(GPU_INSTANCES, told.ref);
    return told?.uid === undefined || found?.metadata.uid === told.uid ? found : undefined;
  }

  #podOf(of: number): Pod | undefined {
    const uid = this.#instanceOf(of)?.metadata.uid;
    const { cluster } = this.#world;
    return uid === undefined ? undefined : cluster.pods.ownedBy(uid).find((pod) => instanceUidOf(pod) === uid);
  }

  #do(act: Act): void {
    const { cluster, time } = this.#world;
    const { api } = cluster;
    switch (act.do) {
      case 'rent':
        this.#rents.set(act.id, act);
        if (act.way === 'http') this.#rent(act, act.id);
        else this.#create(act);
        return;
      case 'repeat': {
        const rent = this.#rents.get(act.of);
        if (rent?.way === 'http' && rent.hasKey) this.#rent(rent, act.of);
        return;
      }
      case 'again': {
        const rent = this.#rents.get(act.of);
        if (rent?.way === 'kubectl') this.#create(rent);
        return;
      }
      case 'stop':
        this.#edit(act.of, { powerState: 'Stopped' });
        return;
      case 'start':
        this.#edit(act.of, { powerState: 'Running' });
        return;
      case 'ask':
        this.#ask(act);
        return;
      case 'edit':
        this.#editField(act.of, act.field, act.id);
        return;
      case 'delete': {
        const instance = this.#instanceOf(act.of);
        if (instance === undefined) return;
        this.#world.judge.unwanted(instance.metadata.uid ?? '');
        api.delete(GPU_INSTANCES, instance.metadata, { propagationPolicy: act.how });
        return;
      }
      case 'deletePod': {
        const pod = this.#podOf(act.of);
        if (pod !== undefined) api.delete(PODS, pod.metadata, act.byForce ? { gracePeriodSeconds: 0 } : {});
        return;
      }
      case 'evict': {
        const pod = this.#podOf(act.of);
        cluster.machines.get(pod?.spec?.nodeName ?? '')?.evict(pod?.metadata.uid ?? '');
        return;
      }
      case 'clearAway':
        this.#clearAway(act);
        return;
      case 'strip': {
        const pod = this.#podOf(act.of);
        if (pod === undefined) return;
        const metadata = act.what === 'labels' ? { labels: null } : { ownerReferences: null };
        api.merge(PODS, pod.metadata, { metadata });
        return;
      }
      case 'forge':
        this.#forge(act);
        return;
      case 'hold': {
        const [type, object] =
          act.what === 'pod'
            ? [PODS as ResourceType, this.#podOf(act.of)]
            : [GPU_INSTANCES as ResourceType, this.#instanceOf(act.of)];
        if (object === undefined) return;
        api.merge(type, object.metadata, { metadata: { finalizers: [...(object.metadata.finalizers ?? []), HELD] } });
        time.afterPlain(act.forMs, () => this.#release(type, object.metadata));
        return;
      }
      case 'exit': {
        const pod = this.#podOf(act.of);
        const node = pod?.spec?.nodeName;
        if (node !== undefined) cluster.machines.get(node)?.exit(pod?.metadata.uid ?? '', act.code);
        return;
      }
      case 'session': {
        const instance = this.#instanceOf(act.of);
        const { namespace = '', name = '' } = instance?.metadata ?? {};
        const [front] = this.#world.fronts;
        if (front === undefined || instance === undefined) return;
        const end = front.activity.began({ namespace, name });
        const close = this.#world.judge.used(instance.metadata.uid ?? '');
        this.#world.sessions.add(close);
        time.after(act.forMs, () => {
          this.#world.sessions.delete(close);
          close();
          end();
        });
        return;
      }
      case 'deleteNamespace':
        api.delete(NAMESPACES, { name: `tenant-${act.tenant}` });
        return;
      default:
        if (!this.#treasurer.does(act)) this.#break(act);
    }
  }

  #break(act: Act): void {
    const world = this.#world;
    const { cluster, time } = world;
    const { api } = cluster;
    switch (act.do) {
      case 'drain':
      case 'cordon': {
        const name = `node-${act.node}`;
        if (act.do === 'drain') cluster.drain(name);
        else cluster.cordon(name, true);
        time.afterPlain(act.forMs, () => cluster.cordon(name, false));
        return;
      }
      case 'lose': {
        const name = `node-${act.node}`;
        cluster.lose(name, act.how);
        const isOff = (): boolean => cluster.machines.get(name)?.isOff === true;
        const isGone = act.deletesNode && act.how === 'off';
        if (isGone)
          time.afterPlain(act.forMs / 2, () => isOff() && api.find(NODES, { name }) && api.delete(NODES, { name }));
        if (act.forcesPods) time.afterPlain(act.forMs / 3, () => this.#forcePods(name));
        time.afterPlain(act.forMs, () => cluster.restore(name));
        return;
      }
      case 'sicken': {
        const machine = cluster.machines.get(`node-${act.node}`);
        machine?.setSick(act.gpu, true);
        time.afterPlain(act.forMs, () => machine?.setSick(act.gpu, false));
        return;
      }
      case 'sickenDevice': {
        const machine = cluster.machines.get(`node-${act.node}`);
        machine?.setSick(act.gpu, true, act.illness);
        time.afterPlain(act.forMs, () => machine?.setSick(act.gpu, false));
        return;
      }
      case 'taintDevice': {
        const deviceSelector = { driver: DRIVER, pool: `node-${act.node}`, device: deviceName(act.gpu) };
        const ref = { name: `taint-${act.id}` };
        const taint = { key: 'example.com/repair', effect: 'NoSchedule' };
        api.create(DEVICE_TAINT_RULES, { metadata: ref, spec: { deviceSelector, taint } } as DeviceTaintRule);
        time.afterPlain(act.forMs, () => api.find(DEVICE_TAINT_RULES, ref) && api.delete(DEVICE_TAINT_RULES, ref));
        return;
      }
      case 'restartDriver':
        cluster.machines.get(`node-${act.node}`)?.restartDriver();
        return;
      case 'hideSlices': {
        const machine = cluster.machines.get(`node-${act.node}`);
        machine?.hideSlices(true);
        time.afterPlain(act.forMs, () => machine?.hideSlices(false));
        return;
      }
      case 'relabel':
        api.merge(
          NODES,
          { name: `node-${act.node}` },
          { metadata: { labels: { 'nvidia.com/cuda.driver-version.full': act.driver } } },
        );
        return;
      case 'ceil':
        this.#ceil(act);
        return;
      case 'quota':
        this.#limit(act);
        return;
      case 'switch': {
        const machine = cluster.machines.get(`node-${act.node}`);
        if (machine === undefined) return;
        this.#switch(machine, act.to);
        time.afterPlain(act.forMs, () => this.#switch(machine, 'whole'));
        return;
      }
      case 'split':
        this.#split(act);
        return;
      case 'resize':
        for (const name of this.#poolsOf(act.pool))
          api.merge<GpuPool>(GPU_POOLS, { name }, { spec: { sizes: act.sizes } });
        time.afterPlain(act.forMs, () => this.#offerAllSizes());
        return;
      case 'unpool':
        this.#pools.push(...api.list<GpuPool>(GPU_POOLS));
        for (const { metadata } of this.#pools) if (api.find(GPU_POOLS, metadata)) api.delete(GPU_POOLS, metadata);
        time.afterPlain(act.forMs, () => this.#bringPools());
        return;
      case 'reprice':
        for (const name of this.#poolsOf(act.pool)) {
          const { price: onDemand, interruptible = '0.5' } = act;
          const spec = { prices: [{ product: '*', onDemand, interruptible }] };
          api.merge<GpuPool>(GPU_POOLS, { name }, { spec });
        }
        return;
      case 'kill':
        world.killLeader();
        return;
      case 'stopLeader':
        world.stopLeader();
        return;
      case 'killFront':
        world.killFront();
        return;
      case 'killAtWrite': {
        const { leader } = world;
        if (leader === undefined) return;
        leader.link.beforeWrite({ skips: act.skips }, () => {
          if (leader !== world.leader) return {};
          world.killLeader();
          return { heldMs: act.arrivesAfterMs };
        });
        return;
      }
      case 'setClock':
        world.setLeaderClock(act.aheadMs, act.forMs);
        return;
      case 'freeze': {
        const { leader } = world;
        if (leader === undefined) return;
        if (!act.atWrite) {
          world.freezeLeader(act.forMs);
          return;
        }
        const grantTo = act.grantOf === undefined ? undefined : nameOf(act.grantOf);
        leader.link.beforeWrite({ skips: act.skips, grantTo }, () => {
          if (leader !== world.leader) return {};
          world.freezeLeader(act.forMs);
          return { isLost: act.breaks === true };
        });
        return;
      }
      case 'storm':
        world.storm(Object.assign({}, ...act.kinds.map((kind) => STORMS[kind])) as Partial<Weather>, act.forMs);
        if (act.restarts === true) world.restartServer(act.forMs);
        return;
      case 'stall':
        world.stallOthers(act.forMs);
        return;
      case 'scale':
        world.haveStandby();
        return;
      case 'unready': {
        const machine = cluster.machines.get(`node-${act.node}`);
        if (machine === undefined || !machine.answers) return;
        cluster.setUnready(machine.name, act.taintedAfterMs);
        time.afterPlain(act.forMs, () => cluster.setReady(machine.name));
        return;
      }
      case 'watches':
        world.judge.disturb(0);
        if (act.compacts) api.compact();
        for (const { link } of world.processes) link.endWatches(act.how);
        return;
      case 'upgrade':
        world.upgrade(act.pauseMs);
        return;
      default:
        throw new Error(`Nobody knows how to ${act.do}.`);
    }
  }

  /** An operator says how many GPUs, and how many GB of disks, a tenant may have at once. */
  #ceil({ tenant: of, gpus, diskGb, isBeyond = false }: Extract<Act, { do: 'ceil' }>): void {
    const { api } = this.#world.cluster;
    const tenant = `tenant-${of}`;
    const had = isBeyond ? this.#world.judge.granted(tenant) : 0;
    const namespaceLabels = { 'kubernetes.io/metadata.name': tenant };
    const spec = tenantPolicySpecSchema.parse({
      namespaceLabels,
      gpus: gpus === undefined ? [] : [{ max: had + gpus }],
      ...(diskGb !== undefined && { diskGb }),
    });
    const metadata = { name: `ceiling-${tenant}` };
    const policy: TenantPolicy = { metadata, spec };
    if (api.find(TENANT_POLICIES, metadata) === undefined) api.create(TENANT_POLICIES, policy);
    // Merged, a ceiling that the new spec does not name would stay.
    else
      api.merge<KubeObject & { spec: object }>(TENANT_POLICIES, metadata, {
        spec: { ...spec, diskGb: diskGb ?? null },
      });
  }

  /** Beside what the tenant has, or with less. */
  #limit({ id, tenant: of, gpus, pods, forMs }: Extract<Act, { do: 'quota' }>): void {
    const { cluster, time } = this.#world;
    const { api } = cluster;
    const hard = {
      ...(gpus !== undefined && { [`requests.${GPUS}`]: String(gpus) }),
      ...(pods !== undefined && { pods: String(pods) }),
    };
    const metadata = { namespace: `tenant-${of}`, name: `quota-${id}` };
    const made = api.create<ResourceQuota>(RESOURCE_QUOTAS, { metadata, spec: { hard } } as ResourceQuota);
    time.afterPlain(forMs, () => {
      if (api.find(RESOURCE_QUOTAS, metadata)?.metadata.uid === made.metadata.uid)
        api.delete(RESOURCE_QUOTAS, metadata);
    });
  }

  #switch(machine: Machine, to: LayoutName): void {
    this.#world.judge.troubled(machine.name, SWITCH_MS, false);
    machine.switchTo(to);
  }

  /** Names of the pools of a product. */
  #poolsOf(pool: number): string[] {
    const names = this.#world.cluster.api.list<GpuPool>(GPU_POOLS).map(({ metadata }) => metadata.name);
    return names.filter((name) => name.startsWith(`pool-${pool}`));
  }

  /** Every second node of a pool is in another one, until both are one again. */
  #split({ pool, isLabelFirst, gapMs, forMs }: Extract<Act, { do: 'split' }>): void {
    const { cluster, time, judge } = this.#world;
    const { api } = cluster;
    const [name, half] = [`pool-${pool}`, `pool-${pool}${HALF}`];
    const nodes = api.list<KubeObject>(NODES).filter(({ metadata }) => metadata.labels?.['pool'] === name);
    const moved = nodes.filter((_, index) => index % 2 === 1);
    const found = api.find<GpuPool>(GPU_POOLS, { name });
    if (found === undefined || api.find(GPU_POOLS, { name: half }) !== undefined) return;
    const label = (): void => {
      for (const { metadata } of moved) {
        judge.troubled(metadata.name, gapMs, true);
        this.#label(metadata.name, half);
      }
    };
    const create = (): void => {
      if (api.find(GPU_POOLS, { name: half }) === undefined)
        api.create(GPU_POOLS, {
          metadata: { name: half },
          spec: { ...found.spec, nodeSelector: { pool: half } },
        } as GpuPool);
    };
    const [first, then] = isLabelFirst ? [label, create] : [create, label];
    first();
    time.afterPlain(gapMs, then);
    time.afterPlain(gapMs + forMs, () => this.#unite());
  }

  #label(node: string, pool: string): void {
    const { api } = this.#world.cluster;
    api.change(NODES, { name: node }, ({ metadata, ...rest }) => ({
      ...rest,
      metadata: { ...metadata, labels: { ...metadata.labels, pool } },
    }));
    const machine = this.#world.cluster.machines.get(node);
    if (machine !== undefined) machine.shape.labels = { ...machine.shape.labels, pool };
  }

  /** Pools that were split are one again. */
  #unite(): void {
    const { api, machines } = this.#world.cluster;
    for (const { name, shape } of machines.values()) {
      const pool = shape.labels?.['pool'] ?? '';
      if (!pool.endsWith(HALF)) continue;
      this.#world.judge.troubled(name, 0, true);
      this.#label(name, pool.slice(0, -HALF.length));
    }
    this.#pools = this.#pools.filter(({ metadata }) => !metadata.name.endsWith(HALF));
    for (const { metadata } of api.list<GpuPool>(GPU_POOLS))
      if (metadata.name.endsWith(HALF)) api.delete(GPU_POOLS, metadata);
  }

  #offerAllSizes(): void {
    const { api } = this.#world.cluster;
    for (const { metadata } of api.list<GpuPool>(GPU_POOLS))
      api.merge<GpuPool>(GPU_POOLS, metadata, { spec: { sizes: [...ALL_SIZES] } });
  }

  /** The pools that an operator took away by mistake are there again. */
  #bringPools(): void {
    const { api } = this.#world.cluster;
    for (const { metadata, spec } of this.#pools) {
      const pool: GpuPool = { metadata: { name: metadata.name }, spec };
      if (api.find(GPU_POOLS, metadata) === undefined) api.create(GPU_POOLS, pool);
    }
    this.#pools = [];
  }

  #ask({ of, at, isOld }: Extract<Act, { do: 'ask' }>): void {
    const request = `at ${at}`;
    const first = this.#asked.get(of) ?? request;
    this.#asked.set(of, first);
    this.#edit(of, { startRequest: isOld ? first : request });
  }

  /** A tenant makes a pod that says of itself that it is of an instance. No node takes it. */
  #forge({ of, id, what }: Extract<Act, { do: 'forge' }>): void {
    const instance = this.#instanceOf(of);
    if (instance === undefined) return;
    const { namespace, name, uid = '' } = instance.metadata;
    const marks =
      what === 'labels'
        ? { labels: { [INSTANCE_LABEL]: name, [INSTANCE_UID_LABEL]: uid } }
        : { ownerReferences: [ownerOf(instance)] };
    const terms = [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['nowhere'] }] }];
    const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } } };
    const pod = {
      metadata: { namespace, name: `${name}-own-${id}`, annotations: { [FORGED]: uid }, ...marks },
      spec: { affinity, containers: [{ name: 'own', image: 'own:1' }] },
    };
    this.#world.cluster.api.create(PODS, pod);
  }

  /** An operator clears away the pods of a node that does not answer. */
  #forcePods(node: string): void {
    const { api, pods } = this.#world.cluster;
    for (const { metadata } of pods.on(node)) api.delete(PODS, metadata, { gracePeriodSeconds: 0 });
  }

  #rent(act: Extract<Act, { do: 'rent' }>, of: number): void {
    const world = this.#world;
    const [front] = world.fronts;
    if (front === undefined) return;
    const left = new AbortController();
    const { leavesAfterMs } = act;
    if (leavesAfterMs !== undefined) world.time.after(leavesAfterMs, () => left.abort());
    const namespace = `tenant-${act.tenant}`;
    const offers = act.byOffer ? front.inventory.offers().filter((offer) => offer.gpuCount === act.gpus) : [];
    const offer = offers.find((one) => one.product === productOf(act));
    const body = {
      type: act.interruptible ? 1 : 0,
      disk_gb: 10,
      template_image: act.image,
      ...(offer === undefined ? { gpu: { name: productOf(act), count: act.gpus } } : { ask_id: offer.id }),
      ...(act.runSeconds > 0 && { runtype: 'args', args: ['sleep', String(act.runSeconds)] }),
      ...(act.maxDuration !== undefined && {
        max_duration: act.maxDuration,
      }),
      ...(act.idleTimeout !== undefined && { idle_timeout: act.idleTimeout }),
      ...((act.maxDuration ?? act.idleTimeout) !== undefined && {
        on_expiry: act.onExpiry === 'Delete' ? 'delete' : 'stop',
      }),
      on_no_capacity: act.queue ? 'queue' : 'fail',
      disk_policy: act.diskPolicy === 'Retain' ? 'retain' : 'delete',
    };
    const key = act.hasKey ? `key-${of}` : undefined;
    const token = this.#treasurer.tokenFor(act, front);
    const asked = front.rent({ namespace, body, key, token }, left.signal);
    void this.#hear({ of, namespace, front, left: left.signal }, asked);
  }

  /** What a caller is told, if it is still there. */
  async #hear(
    { of, namespace, front, left }: { of: number; namespace: string; front: FrontProcess; left: AbortSignal },
    asked: ReturnType<FrontProcess['rent']>,
  ): Promise<void> {
    try {
      const answer = await asked;
      if (front.clock.isDead || left.aborted || !('instance' in answer)) return;
      const { uid = '', name } = answer.instance.metadata;
      if (answer.outcome === 'refused') {
        this.#mustBeGone({ namespace, name }, uid);
        return;
      }
      this.#rented.set(of, { ref: { namespace, name }, uid });
      if (!answer.replayed) this.promised.set(uid, `${namespace}/${name}`);
      this.#mustBeSame(of, uid, name);
      this.#world.judge.note(`#${of} is told of ${namespace}/${name}`);
    } catch (error) {
      const text = (error instanceof Error ? `${error.name}: ${error.message}` : String(error)).slice(0, 80);
      this.refusals.set(text, (this.refusals.get(text) ?? 0) + 1);
    }
  }

  /** What a caller is refused is not there. */
  #mustBeGone(ref: Told['ref'], uid: string): void {
    const { judge, cluster } = this.#world;
    const { metadata } = cluster.api.find(GPU_INSTANCES, ref) ?? {};
    if (metadata?.uid === uid && metadata.deletionTimestamp === undefined)
      judge.blame(8, `${ref.namespace}/${ref.name} was refused, and is there`);
  }

  /** A repeated request is answered with the same instance, or refused. */
  #mustBeSame(of: number, uid: string, name: string): void {
    const { judge } = this.#world;
    const before = this.#answered.get(of) ?? uid;
    this.#answered.set(of, uid);
    if (before !== uid && !judge.isForgotten(before)) judge.blame(8, `${name} is another for the same request`);
  }

  #create(act: Extract<Act, { do: 'rent' }>): void {
    const namespace = `tenant-${act.tenant}`;
    const name = nameOf(act.id);
    const spec = {
      type: act.interruptible ? 'Interruptible' : 'OnDemand',
      gpu: { product: productOf(act), count: act.gpus },
      image: act.image,
      diskGb: 10,
      ...(act.runSeconds > 0 && { runtype: 'args', args: ['sleep', String(act.runSeconds)] }),
      ...(act.maxDuration !== undefined && { maxDuration: act.maxDuration }),
      ...(act.idleTimeout !== undefined && { idleTimeout: act.idleTimeout }),
      ...((act.maxDuration ?? act.idleTimeout) !== undefined && { onExpiry: act.onExpiry }),
      onNoCapacity: act.queue ? 'Queue' : 'Fail',
      diskPolicy: act.diskPolicy,
      onGPUFailure: act.onGPUFailure,
    };
    const made = this.#world.cluster.api.create(GPU_INSTANCES, { metadata: { namespace, name }, spec } as KubeObject);
    this.#rented.set(act.id, { ref: { namespace, name }, uid: made.metadata.uid });
  }

  /** An operator is rid of an instance: without its finalizer, and its pod by force. That of another may keep it. */
  #clearAway({ of, isHeld }: Extract<Act, { do: 'clearAway' }>): void {
    const [instance, pod] = [this.#instanceOf(of), this.#podOf(of)];
    if (instance === undefined) return;
    const { judge, cluster } = this.#world;
    const { finalizers = [] } = instance.metadata;
    const all = isHeld && !finalizers.includes(HELD) ? [...finalizers, HELD] : finalizers;
    if (all !== finalizers) cluster.api.merge(GPU_INSTANCES, instance.metadata, { metadata: { finalizers: all } });
    judge.unbilled(instance.metadata.uid ?? '');
    cluster.api.delete(GPU_INSTANCES, instance.metadata);
    const others = all.filter((name) => name !== FINALIZER);
    cluster.api.merge(GPU_INSTANCES, instance.metadata, { metadata: { finalizers: others } });
    if (pod !== undefined) cluster.api.delete(PODS, pod.metadata, { gracePeriodSeconds: 0 });
  }

  #edit(of: number, spec: object): void {
    const instance = this.#instanceOf(of);
    if (instance !== undefined) this.#world.cluster.api.merge(GPU_INSTANCES, instance.metadata, { spec });
  }

  #editField(of: number, field: Extract<Act, { do: 'edit' }>['field'], id: number): void {
    const values = {
      displayName: { displayName: `name ${id}` },
      image: { image: `image-${id % 7}:1` },
      maxPrice: { maxPricePerHour: String(1 + (id % 20)) },
      maxDuration: { maxDuration: id % 2 === 0 ? '3m' : null },
      idleTimeout: { idleTimeout: id % 2 === 0 ? '1m' : null },
      onExpiry: { onExpiry: id % 2 === 0 ? 'Stop' : 'Delete' },
      diskPolicy: { diskPolicy: id % 2 === 0 ? 'Retain' : 'Delete' },
    };
    this.#edit(of, values[field]);
  }

  #release(type: ResourceType, ref: ObjectRef): void {
    this.#world.cluster.api.change(type, ref, (one) => ({
      ...one,
      metadata: { ...one.metadata, finalizers: one.metadata.finalizers?.filter((name) => name !== HELD) ?? [] },
    }));
  }
}
