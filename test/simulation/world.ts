import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { DEVICE_CLASSES } from '../../src/kube/devices.ts';
import { NAMESPACES } from '../../src/kube/types.ts';
import { GPU_POOLS, gpuPoolSpecSchema } from '../../src/resources/gpu-pool.ts';
import { TENANT_LABEL } from '../../src/resources/tenants/tenant-policy.ts';
import { parsesLines } from './api/lines.ts';
import { FAIR, type Weather } from './api/network.ts';
import { ControllerProcess } from './berth/controller-process.ts';
import { ExportProcess } from './berth/export-process.ts';
import { FrontProcess } from './berth/front-process.ts';
import { MemorySink } from './berth/memory-sink.ts';
import { Chance } from './clock/chance.ts';
import { followsSignals } from './clock/signals.ts';
import { VirtualTime } from './clock/virtual-time.ts';
import { Judge } from './judge/judge.ts';
import { Cluster } from './nodes/cluster.ts';
import { gpuClass } from './nodes/devices.ts';
import { DEVICE_CLASS } from './nodes/driver.ts';
import { slicedIn } from './nodes/sliced.ts';
import { LOCAL, SHARED } from './nodes/volumes.ts';
import { OWN } from './own.ts';

export interface Shape {
  seed: number;
  tenants: number;
  /** Nodes with eight GPUs each, of two products in turn. */
  nodes: number;
  /** Days between the first of January and its first one. */
  firstDay: number;
}

export const PRODUCTS = ['NVIDIA-H100', 'NVIDIA-L4'] as const;
/** What the names of pools end with whose GPUs are in slices. */
const SLICED = '-sliced';
const GPUS_PER_NODE = 8;
/** A replica that serves instances ends so long after it got its last request. */
const DRAIN_MS = 20_000;
/** A replica that is gone has a successor within this time. */
const SUCCESSOR_MS = 8_000;

/** What is random in Berth itself comes from the seed as well, and it reads watches, until the answer is called. */
function seedBerth(chance: Chance): () => void {
  const { random } = Math;
  const { randomBytes, randomUUID } = crypto;
  Math.random = () => chance.next();
  const hex = (length: number): string =>
    Math.floor(chance.next() * 16 ** length)
      .toString(16)
      .padStart(length, '0');
  const bytes = (size: number): Buffer => Buffer.from(Array.from({ length: size }, () => hex(2)).join(''), 'hex');
  crypto.randomBytes = bytes as typeof randomBytes;
  crypto.randomUUID = () => `${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${hex(8)}${hex(4)}`;
  syncBuiltinESMExports();
  const ends = [parsesLines(), followsSignals()];
  return () => {
    for (const end of ends) end();
    Math.random = random;
    Object.assign(crypto, { randomBytes, randomUUID });
    syncBuiltinESMExports();
  };
}

/** A cluster, Berth on it, and a judge who watches the kubelets. */
export class World {
  readonly time: VirtualTime;
  readonly chance: Chance;
  readonly judge: Judge;
  readonly cluster: Cluster;
  readonly tenants: readonly string[];
  controllers: ControllerProcess[] = [];
  fronts: FrontProcess[] = [];
  /** What ends each session that is open: with the replica that serves it all of them are over. */
  readonly sessions = new Set<() => void>();
  /** Where bills are copied to. */
  readonly sink = new MemorySink();
  readonly #claimOnPod: boolean;
  /** A single one has a successor only when it is gone. */
  readonly #replicas: number;
  readonly #unseed: () => void;
  #fronts = 0;
  #weather = FAIR;

  constructor({ seed, tenants, nodes, firstDay }: Shape) {
    this.time = new VirtualTime(firstDay);
    this.chance = new Chance(seed ^ (firstDay << 16));
    this.#unseed = seedBerth(new Chance(seed ^ 0x5eed));
    this.#claimOnPod = this.chance.is(0.7);
    this.#replicas = this.chance.int(1, 2);
    const { time, chance } = this;
    this.judge = new Judge(time);
    const sliced = slicedIn({ seed, nodes, firstDay });
    const servesDevices = sliced.nodes.size > 0;
    this.cluster = new Cluster({ time, chance, witness: this.judge, servesDevices });
    this.judge.follow(this.cluster);
    const { api } = this.cluster;
    api.addsFinalizer = this.chance.is(0.5);
    api.create(NAMESPACES, { metadata: { name: OWN } });
    this.tenants = Array.from({ length: tenants }, (_, index) => `tenant-${index}`);
    for (const name of this.tenants) this.addTenant(name);
    this.cluster.addStorageClass(SHARED, true);
    this.cluster.addStorageClass(LOCAL, false);
    if (servesDevices) api.create(DEVICE_CLASSES, gpuClass(sliced.isNamed));
    for (const [index, product] of PRODUCTS.entries()) {
      const prices = [{ product: '*', onDemand: String(index + 1), interruptible: '0.5' }];
      const disk = { maxGb: 1024, storageClassName: index === 0 ? SHARED : LOCAL };
      const name = `pool-${index}`;
      const addPool = (pool: string, devices?: object): void => {
        const spec = gpuPoolSpecSchema.parse({ nodeSelector: { pool }, prices, disk, devices });
        api.create(GPU_POOLS, { metadata: { name: pool }, spec } as never);
      };
      addPool(name);
      if (servesDevices) addPool(`${name}${SLICED}`, { deviceClassName: DEVICE_CLASS });
      for (let node = index; node < nodes; node += PRODUCTS.length) {
        const isSliced = sliced.nodes.has(node);
        this.cluster.addMachine({
          name: `node-${node}`,
          product,
          gpus: GPUS_PER_NODE,
          labels: { pool: isSliced ? `${name}${SLICED}` : name },
          slices: isSliced ? sliced.perNode : undefined,
        });
      }
    }
  }

  addTenant(name: string): void {
    const labels = { [TENANT_LABEL]: 'true', 'kubernetes.io/metadata.name': name };
    this.cluster.api.create(NAMESPACES, { metadata: { name, labels } });
  }

  get #processDeps() {
    const { time, chance, judge } = this;
    const onStray = (what: string): void => judge.blame(1, what);
    return { api: this.cluster.api, time, chance, claimOnPod: this.#claimOnPod, onStray };
  }

  /** Berth comes up: one or two replicas of the controllers, and one that serves instances. */
  async start(): Promise<void> {
    this.judge.disturb(SUCCESSOR_MS);
    this.controllers = Array.from({ length: this.#replicas }, () => this.#controller());
    this.fronts = [this.#front()];
    await this.time.advance(5_000);
  }

  /** Berth goes down, as at an outage of everything that it runs on. */
  stop(): void {
    for (const one of [...this.controllers, ...this.fronts]) one.kill();
    this.controllers = [];
    this.fronts = [];
    this.#endSessions();
  }

  #endSessions(): void {
    for (const end of this.sessions) end();
    this.sessions.clear();
  }

  end(): void {
    this.stop();
    this.#unseed();
  }

  #controller(): ControllerProcess {
    const process = new ControllerProcess(this.#processDeps);
    process.link.weather = this.#weather;
    return process;
  }

  #front(): FrontProcess {
    this.#fronts += 1;
    const process = new FrontProcess(this.#processDeps, `front-${this.#fronts}`);
    process.link.weather = this.#weather;
    return process;
  }

  /** The replica that renewed the lease last. */
  get leader(): ControllerProcess | undefined {
    return this.controllers.toSorted((a, b) => b.link.ledAt - a.link.ledAt)[0];
  }

  /** A replica of the controllers dies. Another one starts soon. */
  killLeader(): void {
    const { leader } = this;
    if (leader === undefined || leader.clock.isDead) return;
    this.judge.note('the leader dies');
    this.judge.disturb(SUCCESSOR_MS);
    leader.kill();
    this.#replace(leader);
  }

  /** The leader stops in good order, as at an upgrade. */
  stopLeader(): void {
    const { leader } = this;
    if (leader === undefined || leader.clock.isDead) return;
    this.judge.note('the leader stops');
    this.judge.disturb(SUCCESSOR_MS);
    void leader.stop().then(() => this.#replace(leader));
  }

  #replace(old: ControllerProcess): void {
    this.time.after(this.chance.between(500, SUCCESSOR_MS), () => {
      if (!this.controllers.includes(old)) return;
      this.controllers = [...this.controllers.filter((one) => one !== old), this.#controller()];
    });
  }

  /** The leader is suspended, as a virtual machine that is moved. */
  freezeLeader(ms: number): void {
    const { leader } = this;
    if (leader === undefined || leader.clock.isDead) return;
    this.judge.note(`the leader is suspended for ${Math.round(ms)} ms`);
    this.judge.disturb(ms);
    leader.clock.freeze();
    this.time.after(ms, () => leader.clock.thaw());
  }

  /** Somebody sets the wall clock of the leader, and sets it right some time later. */
  setLeaderClock(aheadMs: number, ms: number): void {
    const { leader } = this;
    if (leader === undefined || leader.clock.isDead) return;
    this.judge.note(`the clock of the leader is set ${Math.round(aheadMs / 1000)} s ahead`);
    this.judge.disturb(ms + SUCCESSOR_MS);
    leader.clock.aheadMs = aheadMs;
    this.time.after(ms, () => {
      leader.clock.aheadMs = 0;
    });
  }

  /** The one that serves instances dies, and comes back. */
  killFront(): void {
    const [front] = this.fronts;
    front?.kill();
    this.#endSessions();
    this.fronts = [this.#front()];
  }

  get processes() {
    return [...this.controllers, ...this.fronts];
  }

  /** How the ways to the API server are for some time. */
  storm(weather: Partial<Weather>, ms: number): void {
    this.judge.disturb(ms);
    this.setWeather(weather);
    this.time.afterPlain(ms, () => this.setWeather({}));
  }

  /** The API server is away for so long, and has forgotten then what it could tell watches of before. */
  restartServer(ms: number): void {
    for (const { link } of this.processes) link.endWatches('cut');
    this.time.afterPlain(ms, () => this.cluster.api.compact());
  }

  /** An operator sees to it that there are two replicas. */
  haveStandby(): void {
    if (this.controllers.length === 1) this.controllers = [...this.controllers, this.#controller()];
  }

  /** The replicas that do not lead hear of nothing for so long. */
  stallOthers(ms: number): void {
    this.judge.disturb(ms);
    for (const one of this.controllers) if (one !== this.leader) one.link.stall(ms);
  }

  setWeather(weather: Partial<Weather>): void {
    this.#weather = { ...FAIR, ...weather };
    for (const { link } of this.processes) link.weather = this.#weather;
  }

  /** A new version: each replica has a successor before it stops, one after the other, and those that serve instances, too. */
  upgrade(pauseMs: number): void {
    this.judge.note('a new version comes');
    this.#upgradeControllers(this.controllers, pauseMs);
    const old = this.fronts;
    const sessions = [...this.sessions];
    const front = this.#front();
    this.time.after(pauseMs, () => {
      // Another died meanwhile and has a successor, or it is night.
      if (this.fronts !== old) {
        front.kill();
        return;
      }
      this.fronts = [front, ...old];
      this.time.after(DRAIN_MS, () => {
        for (const one of old) one.kill();
        for (const end of sessions) end();
        this.fronts = this.fronts.filter((one) => !old.includes(one));
      });
    });
  }

  #upgradeControllers(old: readonly ControllerProcess[], pauseMs: number): void {
    const [first] = old;
    if (first === undefined || !this.controllers.includes(first)) return;
    this.controllers = [...this.controllers, this.#controller()];
    this.time.after(pauseMs, () => {
      if (!this.controllers.includes(first)) return;
      this.judge.disturb(SUCCESSOR_MS);
      void first.stop().then(() => this.#stopped(old, pauseMs));
    });
  }

  #stopped([first, ...others]: readonly ControllerProcess[], pauseMs: number): void {
    this.controllers = this.controllers.filter((one) => one !== first);
    this.#upgradeControllers(others, pauseMs);
  }

  /** A run of the command that copies bills begins; killed after so long, if that is said. */
  exportUsage(all: boolean, killedAfterMs?: number): void {
    const run = new ExportProcess(this.#processDeps);
    run.link.weather = this.#weather;
    if (killedAfterMs !== undefined) this.time.afterPlain(killedAfterMs, () => run.kill());
    run.run(this.sink, all).then(
      (exported) => this.judge.exported(exported, this.sink),
      // The next one does what this one could not.
      (error: unknown) => this.judge.note(`bills are not copied: ${String(error)}`),
    );
  }
}
