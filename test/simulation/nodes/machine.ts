import { instanceUidOf } from '../../../src/resources/pod/owner.ts';
import { MAIN_CONTAINER } from '../../../src/resources/pod/tools-volume.ts';
import { RESOURCE_CLAIMS } from '../../../src/kube/devices.ts';
import { type Node, NODES, PERSISTENT_VOLUME_CLAIMS, type Pod, PODS } from '../../../src/kube/types.ts';
import type { ApiServer } from '../api/server.ts';
import type { Chance } from '../clock/chance.ts';
import type { VirtualTime } from '../clock/virtual-time.ts';
import { GPUS, requestsOf } from './amounts.ts';
import { devicesOf } from './devices.ts';
import { deviceName, Driver, type Illness, uuidOf } from './driver.ts';
import { labelsOf, LAYOUTS, type LayoutName, type Piece, piecesOf, wholePiece } from './layout.ts';
import type { Volumes } from './volumes.ts';
import type { Holding, Witness } from './witness.ts';

export interface MachineDeps {
  api: ApiServer;
  time: VirtualTime;
  chance: Chance;
  witness: Witness;
  volumes: Volumes;
}

export interface MachineShape {
  name: string;
  product: string;
  gpus: number;
  labels?: Record<string, string>;
  /** ResourceSlices in which its GPUs are; absent where a device plugin counts them. */
  slices?: number | undefined;
}

type PodStatus = NonNullable<Pod['status']>;
type ContainerStatus = NonNullable<PodStatus['containerStatuses']>[number];

/** A pod as its kubelet knows it. */
interface Tended {
  pod: Pod;
  holding: Holding;
  state: 'preparing' | 'running' | 'stopping' | 'ended';
  startedAt?: string;
  finishedAt?: string;
  /** The run before this one. */
  last?: { startedAt: string; finishedAt: string };
  exitCode: number;
  restarts: number;
  isEvicted?: boolean;
  cancel: (() => void) | undefined;
}

/** How long a container takes to end once it is asked to. */
const QUICK_STOP: readonly [number, number] = [200, 2_000];
const LAST_WORDS_MS = 60;
/** A device plugin that starts anew gives out nothing for so long. */
const PLUGIN_MS: readonly [number, number] = [500, 8_000];
/** A kubelet that cannot prepare the devices of a pod, or is not ready, tries again. */
const PREPARE_MS = 2_000;
const EVICTED = { phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory.' } as const;

/** What a kubelet says in conditions of a pod that has failed, and of which it has no sandbox. */
const LET_GO = [
  { type: 'PodReadyToStartContainers', status: 'False' },
  { type: 'ContainersReady', status: 'False', reason: 'PodFailed' },
  { type: 'Ready', status: 'False', reason: 'PodFailed' },
] as const;

/** What a kubelet says of a pod that is being deleted, and of which it has no container. */
function lostStatus({ containerStatuses, conditions = [], ...status }: PodStatus = {}, now: string): PodStatus {
  const others = conditions.filter(({ type }) => LET_GO.every((own) => own.type !== type));
  const lost = containerStatuses?.map(({ state, ...one }): ContainerStatus => {
    const { startedAt } = state?.running ?? {};
    if (startedAt === undefined) return { ...one, ...(state && { state }) };
    const terminated = { exitCode: 137, reason: 'ContainerStatusUnknown', startedAt, finishedAt: now };
    return { ...one, ready: false, started: false, state: { terminated } };
  });
  const said = LET_GO.map((own) => ({ ...own, lastTransitionTime: now }));
  return { ...status, conditions: [...others, ...said], ...(lost && { containerStatuses: lost }), phase: 'Failed' };
}

/** A node: its kubelet, its GPUs by UUID, and the containers that really run on it. */
export class Machine {
  readonly name: string;
  readonly shape: MachineShape;
  readonly #deps: MachineDeps;
  readonly #tended = new Map<string, Tended>();
  readonly #images = new Set<string>();
  readonly #sick = new Set<string>();
  readonly driver: Driver | undefined;
  #layout: LayoutName = 'whole';
  /** What its device plugin gives out. */
  #pieces: readonly Piece[];
  /** Names of resources that it ever had. */
  readonly #resources = new Set<string>([GPUS]);
  #isPluginAway = false;
  /** Which devices its kubelet gave to a pod that is not over, by uid. */
  readonly #checkpoint = new Map<string, readonly Piece[]>();
  #wanted: LayoutName = 'whole';
  /** Its kubelet starts nothing. What runs goes on, and may end. */
  #isUnready = false;
  #isSilent = false;
  #isOff = false;

  constructor(deps: MachineDeps, shape: MachineShape) {
    this.name = shape.name;
    this.shape = shape;
    this.#deps = deps;
    const { name: node, product, slices } = shape;
    this.#pieces = this.#gpuNames().map((gpu) => wholePiece(gpu, product));
    this.driver =
      slices === undefined ? undefined : new Driver(deps, { node, product, gpus: this.#gpuNames(), slices });
  }

  get isOff(): boolean {
    return this.#isOff;
  }

  get answers(): boolean {
    return !this.#isSilent && !this.#isOff;
  }

  /** Holdings that are not over. */
  get holdings(): Holding[] {
    return [...this.#tended.values()].map(({ holding }) => holding).filter(({ to }) => to === undefined);
  }

  /** What can be rented of it, whoever has it. */
  get pieces(): readonly Piece[] {
    return this.#pieces;
  }

  /**
   * Its GPUs are given out otherwise from now on. As with NVIDIA's MIG manager and device plugin nobody's program ends, and
   * nobody is told which of the new devices a program has that runs.
   */
  switchTo(layout: LayoutName): void {
    if (this.driver !== undefined || layout === this.#wanted) return;
    this.#wanted = layout;
    this.#isPluginAway = true;
    this.#report();
    this.#startPlugin(layout);
  }

  #startPlugin(layout: LayoutName): void {
    const { time, chance, witness } = this.#deps;
    time.afterPlain(chance.between(...PLUGIN_MS), () => {
      if (layout !== this.#wanted) return;
      if (!this.answers) {
        this.#startPlugin(layout);
        return;
      }
      this.#isPluginAway = false;
      this.#layOut(layout);
      witness.switched(this.name);
      this.#report();
    });
  }

  #layOut(layout: LayoutName): void {
    const { product } = this.shape;
    const used = new Set(this.holdings.flatMap(({ pieces }) => pieces.map(({ gpu }) => gpu)));
    // Only whole GPUs are told apart by whether they are idle.
    const isKept = (gpu: string): boolean => 'onlyIdle' in LAYOUTS[layout] && this.#layout === 'whole' && used.has(gpu);
    this.#layout = layout;
    this.#pieces = this.#gpuNames().flatMap((gpu) =>
      isKept(gpu) ? [wholePiece(gpu, product)] : piecesOf(layout, gpu, product),
    );
    for (const { resourceName } of this.#pieces) this.#resources.add(resourceName);
  }

  /** By resource: its devices, or those that can be used. */
  #counted(isUsable: (piece: Piece) => boolean): Record<string, string> {
    if (this.driver !== undefined) return {};
    const pieces = this.#pieces.filter(isUsable);
    return Object.fromEntries(
      [...this.#resources].map((name) => [
        name,
        String(pieces.filter(({ resourceName }) => resourceName === name).length),
      ]),
    );
  }

  #gpuNames(): string[] {
    return Array.from({ length: this.shape.gpus }, (_, index) => uuidOf(this.name, deviceName(index)));
  }

  /** Makes the Node, or makes it anew. */
  register(): void {
    const { api } = this.#deps;
    const { name, labels } = this.shape;
    const node: Node = {
      metadata: {
        name,
        labels: {
          'kubernetes.io/hostname': name,
          'kubernetes.io/arch': 'amd64',
          'kubernetes.io/os': 'linux',
          ...(this.driver === undefined && {
            ...this.#discovered(),
            'nvidia.com/cuda.driver-version.full': '550.54.15',
            'nvidia.com/cuda.runtime-version.full': '12.4',
          }),
          'berth.dev/gpu-isolation': 'enforced',
          ...labels,
        },
      },
      spec: { taints: [{ key: GPUS, value: 'present', effect: 'NoSchedule' }] },
      status: this.#status(),
    };
    if (api.find(NODES, { name }) === undefined) api.create(NODES, node);
    this.driver?.publish();
  }

  #discovered(): Record<string, string> {
    const { product, gpus } = this.shape;
    const all = Object.entries(labelsOf(this.#layout, product, gpus));
    return Object.fromEntries(all.flatMap(([label, value]) => (value === null ? [] : [[label, value]])));
  }

  #status(): NonNullable<Node['status']> {
    const { time } = this.#deps;
    const all = { cpu: '96', memory: '1024Gi', 'ephemeral-storage': '8Ti', pods: '110' };
    return {
      capacity: { ...all, ...this.#counted(() => true) },
      allocatable: { ...all, ...this.#counted(({ gpu }) => !this.#isPluginAway && !this.#sick.has(gpu)) },
      conditions: [
        {
          type: 'Ready',
          status: 'True',
          reason: 'KubeletReady',
          message: 'kubelet is posting ready status',
          lastHeartbeatTime: time.seconds,
          lastTransitionTime: time.seconds,
        },
      ],
      images: [...this.#images].map((image) => ({ names: [image] })),
    };
  }

  #report(): void {
    if (!this.answers) return;
    this.driver?.publish();
    const { capacity, allocatable, images } = this.#status();
    const { product, gpus } = this.shape;
    const told = this.driver === undefined ? Object.entries(labelsOf(this.#layout, product, gpus)) : [];
    this.#deps.api.change(NODES, { name: this.name }, (node) => {
      const labels = { ...node.metadata.labels, ...this.#discovered() };
      for (const [label, value] of told) if (value === null) delete labels[label];
      return {
        ...node,
        ...(this.driver === undefined && { metadata: { ...node.metadata, labels } }),
        status: {
          ...node.status,
          ...(capacity && { capacity }),
          ...(allocatable && { allocatable }),
          ...(images && { images }),
        },
      };
    });
  }

  get isUnready(): boolean {
    return this.#isUnready;
  }

  setUnready(isUnready: boolean): void {
    this.#isUnready = isUnready;
  }

  /** Nothing is heard of it. Its containers run on. */
  silence(): void {
    this.#isSilent = true;
  }

  /** It answers again, and learns what became of its pods. */
  answer(): void {
    if (!this.#isSilent) return;
    this.#isSilent = false;
    if (!this.#isOff) this.#catchUp();
  }

  /** The power fails: everything ends at once. */
  turnOff(): void {
    if (this.#isOff) return;
    this.#isOff = true;
    for (const tended of this.#tended.values()) {
      tended.cancel?.();
      if (tended.holding.to === undefined) tended.holding.isCutOff = true;
      this.#free(tended);
    }
  }

  /** It starts anew, without its containers. */
  turnOn(): void {
    if (!this.#isOff) return;
    this.#isOff = false;
    if (this.driver !== undefined) this.#waitForDriver();
    if (this.#isSilent) return;
    this.#catchUp();
  }

  /** A GPU fails, or is replaced. `illness`: what its driver says of it. */
  setSick(index: number, isSick: boolean, illness: Illness = 'taint'): void {
    const [gpu = ''] = this.#gpuNames().slice(index % this.shape.gpus);
    if (isSick) this.#sick.add(gpu);
    else this.#sick.delete(gpu);
    this.driver?.setIll(gpu, isSick ? illness : undefined);
    this.#report();
    for (const tended of this.#tended.values())
      if (tended.holding.pieces.some((piece) => piece.gpu === gpu)) this.#say(tended);
  }

  /** A kubelet that starts takes the slices of its node away, and waits for the driver. */
  #waitForDriver(): void {
    const { time, chance } = this.#deps;
    this.driver?.wipe();
    time.afterPlain(chance.between(200, 5_000), () => this.hideSlices(false));
  }

  /** Its driver starts anew. */
  restartDriver(): void {
    this.driver?.restart(() => this.answers);
  }

  /** The slices of its driver are taken away, or are there again. */
  hideSlices(isHidden: boolean): void {
    if (!isHidden) this.driver?.comeBack();
    else if (this.answers) this.driver?.wipe();
    this.#report();
  }

  /** The program of a pod ends by itself. */
  exit(podUid: string, code: number): void {
    const tended = this.#tended.get(podUid);
    if (tended?.state !== 'running' || this.#isOff) return;
    this.#ended(tended, code);
  }

  /** The node is short of something, and the kubelet ends the pod. Its object stays. */
  evict(podUid: string): void {
    const tended = this.#tended.get(podUid);
    if (tended === undefined || !this.answers || tended.state === 'stopping' || tended.state === 'ended') return;
    tended.isEvicted = true;
    this.#stop(tended, tended.pod);
  }

  /** The pod has changed, or is gone. */
  see(uid: string, pod: Pod | undefined): void {
    if (!this.answers) return;
    if (pod === undefined) this.#checkpoint.delete(uid);
    const tended = this.#tended.get(uid);
    if (tended === undefined) {
      if (pod !== undefined) this.#meet(pod);
      return;
    }
    if (pod !== undefined) tended.pod = pod;
    else if (tended.state === 'ended') this.#tended.delete(uid);
    const isGoing = pod === undefined || pod.metadata.deletionTimestamp !== undefined;
    if (isGoing) this.#stop(tended, pod);
  }

  #catchUp(): void {
    const { api } = this.#deps;
    this.#report();
    const here = api.list(PODS).filter(({ spec }) => spec?.nodeName === this.name);
    const there = new Map(here.map((pod) => [pod.metadata.uid ?? '', pod]));
    for (const uid of this.#checkpoint.keys()) if (!there.has(uid)) this.#checkpoint.delete(uid);
    for (const [uid, tended] of Array.from(this.#tended)) {
      const pod = there.get(uid);
      // The power failed: it has no container. Those that go on are started anew.
      if (tended.holding.to !== undefined && tended.state !== 'ended') {
        this.#tended.delete(uid);
        const isDone = pod?.spec?.restartPolicy === 'Never' && tended.startedAt !== undefined;
        if (pod !== undefined && !isDone && pod.metadata.deletionTimestamp === undefined) {
          this.#meet(pod, tended);
        } else if (pod !== undefined) {
          this.#tended.set(uid, tended);
          this.#over(tended, 137);
        }
        continue;
      }
      if (pod !== undefined) this.#say(tended);
      this.see(uid, pod);
    }
    for (const [uid, pod] of there) if (!this.#tended.has(uid)) this.#meet(pod);
  }

  #meet(pod: Pod, before?: Tended): void {
    const { api, time, chance } = this.#deps;
    const { phase } = pod.status ?? {};
    if (phase === 'Succeeded' || phase === 'Failed') this.#checkpoint.delete(pod.metadata.uid ?? '');
    if (phase === 'Succeeded') {
      if (pod.metadata.deletionTimestamp !== undefined) this.#letGo(pod);
      return;
    }
    if (pod.metadata.deletionTimestamp === undefined && phase === 'Failed') return;
    if (pod.metadata.deletionTimestamp !== undefined) {
      api.change(PODS, pod.metadata, (one) =>
        one.metadata.uid === pod.metadata.uid ? { ...one, status: lostStatus(one.status, time.seconds) } : one,
      );
      this.#letGo(pod);
      return;
    }
    const { uid = '' } = pod.metadata;
    time.afterPlain(chance.between(30, 300), () => {
      if (!this.answers || this.#tended.has(uid)) return;
      const now = api.find(PODS, pod.metadata);
      if (now?.metadata.uid !== uid) return;
      if (now.metadata.deletionTimestamp !== undefined) this.#meet(now);
      else if (this.#isUnready) time.afterPlain(PREPARE_MS, () => this.#meet(now, before));
      else this.#admit(now, before);
    });
  }

  #admit(pod: Pod, before: Tended | undefined): void {
    if (this.driver === undefined) {
      const pieces = this.#checkpoint.get(pod.metadata.uid ?? '');
      const some = pieces === undefined ? this.#chosen(pod) : this.#remembered(pod, pieces);
      if (some !== undefined) this.#tend(pod, some, before);
      return;
    }
    const prepared = this.#prepared(pod, this.driver);
    if (prepared !== undefined) this.#tend(pod, prepared, before);
    else this.#deps.time.afterPlain(PREPARE_MS, () => this.#meet(pod, before));
  }

  /** The GPUs of the claim that the scheduler made for a pod; undefined while it is not there. */
  #prepared({ metadata, status }: Pod, driver: Driver): Piece[] | undefined {
    const { resourceClaimName: name = '' } = status?.extendedResourceClaimStatus ?? {};
    const claim = this.#deps.api.find(RESOURCE_CLAIMS, { namespace: metadata.namespace, name });
    if (claim?.status?.reservedFor?.some(({ uid }) => uid === metadata.uid) !== true) return undefined;
    const gpus = devicesOf(claim).flatMap(({ device }) => driver.gpuOf(device) ?? []);
    return gpus.map((gpu) => wholePiece(gpu, this.shape.product));
  }

  /** The devices that a pod had before its node lost its power: a kubelet gives it these or none. */
  #remembered(pod: Pod, pieces: readonly Piece[]): readonly Piece[] | undefined {
    const healthy = new Set(this.#pieces.flatMap(({ id, gpu }) => (this.#sick.has(gpu) ? [] : [id])));
    if (!this.#isPluginAway && pieces.every(({ id }) => healthy.has(id))) return pieces;
    const why = 'previously allocated devices are no longer healthy; cannot allocate unhealthy devices';
    this.#reject(pod, `Allocate failed due to ${why}, which is unexpected`);
    this.#deps.witness.refused(this.name);
    return undefined;
  }

  #reject(pod: Pod, why: string): void {
    this.#checkpoint.delete(pod.metadata.uid ?? '');
    this.#write(pod, { phase: 'Failed', reason: 'UnexpectedAdmissionError', message: `Pod was rejected: ${why}` });
  }

  /** The devices that a device plugin gives to a pod. */
  #chosen(pod: Pod): Piece[] | undefined {
    const { witness } = this.#deps;
    const requests = requestsOf(pod);
    const name = [...this.#resources].find((one) => (requests[one] ?? 0) > 0) ?? GPUS;
    const wanted = requests[name] ?? 0;
    // A kubelet knows devices by their ids only: of what is given out otherwise since it knows nothing.
    const held = [...this.holdings.map(({ pieces }) => pieces), ...this.#checkpoint.values()];
    const taken = new Set(held.flat().map(({ id }) => id));
    const all = this.#pieces.filter(({ resourceName }) => resourceName === name);
    const left = all.filter(({ id }) => !taken.has(id));
    const free = this.#isPluginAway ? [] : left.filter(({ gpu }) => !this.#sick.has(gpu));
    if (free.length < wanted) {
      const why = `Allocate failed due to requested number of devices unavailable for ${name}. Requested: ${wanted}, Available: ${free.length}, which is unexpected`;
      this.#reject(pod, why);
      // A GPU that fell ill a moment ago is nobody's mistake.
      if (left.length < wanted) witness.rejected(pod, this.name, why);
      return undefined;
    }
    return free.slice(0, wanted);
  }

  #tend(pod: Pod, pieces: readonly Piece[], before: Tended | undefined): void {
    const { time, witness, chance } = this.#deps;
    const holding: Holding = {
      pod,
      instance: instanceUidOf(pod),
      node: this.name,
      pieces,
      gpus: pieces.map(({ id }) => id),
      from: time.wall,
    };
    const { startedAt, finishedAt = time.seconds, restarts = -1 } = before ?? {};
    const tended: Tended = {
      pod,
      holding,
      state: 'preparing',
      ...(startedAt !== undefined && { last: { startedAt, finishedAt } }),
      exitCode: 0,
      restarts: restarts + 1,
      cancel: undefined,
    };
    this.#tended.set(pod.metadata.uid ?? '', tended);
    this.#checkpoint.set(pod.metadata.uid ?? '', pieces);
    witness.took(holding, pieces[0]?.product ?? this.shape.product);
    this.#say(tended);
    const image = pod.spec?.containers[0]?.image ?? '';
    const isThere = this.#images.has(image);
    if (image.includes('absent')) return;
    const pullMs = isThere ? chance.between(100, 600) : chance.between(1_000, 20_000);
    tended.cancel = time.afterPlain(pullMs, () => {
      this.#images.add(image);
      if (!isThere) this.#report();
      this.#run(tended);
    });
  }

  #run(tended: Tended): void {
    const { time, witness, volumes } = this.#deps;
    const { pod, holding } = tended;
    tended.state = 'running';
    tended.startedAt = time.seconds;
    holding.ranFrom ??= Date.parse(tended.startedAt);
    for (const { persistentVolumeClaim } of pod.spec?.volumes ?? []) {
      if (persistentVolumeClaim === undefined) continue;
      const { claimName } = persistentVolumeClaim;
      const claim = this.#deps.api.find(PERSISTENT_VOLUME_CLAIMS, {
        namespace: pod.metadata.namespace,
        name: claimName,
      });
      const volume = claim?.spec?.volumeName;
      if (volume !== undefined) witness.mounted(holding, volume, volumes.contents(volume));
    }
    this.#say(tended);
    const program = pod.spec?.containers.find(({ name }) => name === MAIN_CONTAINER)?.args ?? [];
    const seconds = program[0] === 'sleep' ? Number(program[1]) : undefined;
    if (seconds !== undefined && pod.spec?.restartPolicy === 'Never') {
      tended.cancel = time.afterPlain(seconds * 1000, () => this.#ended(tended, 0));
    }
  }

  #ended(tended: Tended, code: number): void {
    if (tended.pod.spec?.restartPolicy === 'Never' || tended.state === 'stopping') {
      this.#over(tended, code);
      return;
    }
    // The container starts again, and keeps its GPUs.
    const { seconds } = this.#deps.time;
    tended.restarts += 1;
    if (tended.startedAt !== undefined) tended.last = { startedAt: tended.startedAt, finishedAt: seconds };
    tended.startedAt = seconds;
    this.#say(tended);
  }

  #stop(tended: Tended, pod: Pod | undefined): void {
    const { time, chance } = this.#deps;
    if (tended.state === 'ended') {
      if (pod !== undefined) this.#letGo(pod);
      return;
    }
    if (tended.state === 'stopping') return;
    const wasRunning = tended.state === 'running';
    tended.cancel?.();
    tended.state = 'stopping';
    tended.holding.isAsked = true;
    const grace = (pod?.metadata.deletionGracePeriodSeconds ?? 30) * 1000;
    const isSlow = wasRunning && chance.is(0.15);
    const ms = wasRunning ? Math.min(isSlow ? 30_000 : chance.between(...QUICK_STOP), Math.max(grace, 2_000)) : 50;
    tended.cancel = time.afterPlain(ms, () => this.#over(tended, isSlow ? 137 : 143));
  }

  /** No container of the pod runs any more. */
  #over(tended: Tended, code: number): void {
    const { api, time } = this.#deps;
    tended.state = 'ended';
    tended.exitCode = code;
    tended.finishedAt ??= time.seconds;
    this.#checkpoint.delete(tended.pod.metadata.uid ?? '');
    this.#free(tended);
    if (!this.answers) return;
    this.#say(tended);
    const { uid = '' } = tended.pod.metadata;
    const pod = api.find(PODS, tended.pod.metadata);
    if (pod?.metadata.uid !== uid) this.#tended.delete(uid);
    else if (pod.metadata.deletionTimestamp !== undefined) this.#letGo(pod);
  }

  #free(tended: Tended): void {
    const { time, witness } = this.#deps;
    const { holding } = tended;
    if (holding.to !== undefined) return;
    holding.to = time.wall;
    if (!this.answers) holding.isUnheard = true;
    if (holding.ranFrom !== undefined) {
      holding.ranTo = time.wall;
      tended.finishedAt ??= time.seconds;
    }
    witness.ended(holding);
  }

  /** The last word of a kubelet about a pod that is being deleted. */
  #letGo(pod: Pod): void {
    const { api, time } = this.#deps;
    const { uid } = pod.metadata;
    time.afterPlain(LAST_WORDS_MS, () => {
      if (!this.answers) return;
      const now = api.find(PODS, pod.metadata);
      if (now?.metadata.uid === uid) api.delete(PODS, pod.metadata, { gracePeriodSeconds: 0 });
      const left = api.find(PODS, pod.metadata);
      if (left?.metadata.uid !== uid) this.#tended.delete(uid ?? '');
    });
  }

  #containers(tended: Tended): ContainerStatus[] {
    const { pod, state, startedAt, finishedAt, last: before, exitCode, restarts, holding } = tended;
    const image = pod.spec?.containers[0]?.image ?? '';
    const sick = holding.pieces.filter(({ gpu }) => this.#sick.has(gpu));
    return (pod.spec?.containers ?? []).map(({ name }): ContainerStatus => {
      const common = {
        name,
        image,
        imageID: '',
        restartCount: restarts,
        ...(before !== undefined && { lastState: { terminated: { exitCode: 1, reason: 'Error', ...before } } }),
      };
      const health =
        sick.length > 0 && name === MAIN_CONTAINER && this.driver === undefined
          ? {
              allocatedResourcesStatus: [
                {
                  name: sick[0]?.resourceName ?? GPUS,
                  resources: sick.map(({ id }) => ({ resourceID: id, health: 'Unhealthy' })),
                },
              ],
            }
          : {};
      if (startedAt === undefined) {
        const waiting = image.includes('absent')
          ? { reason: 'ImagePullBackOff', message: `Back-off pulling image "${image}"` }
          : { reason: 'ContainerCreating' };
        return { ...common, ready: false, started: false, state: { waiting }, ...health };
      }
      if (state === 'ended') {
        const terminated = {
          exitCode,
          reason: exitCode === 0 ? 'Completed' : 'Error',
          startedAt,
          ...(finishedAt !== undefined && { finishedAt }),
        };
        return { ...common, ready: false, started: false, state: { terminated } };
      }
      return { ...common, ready: true, started: true, state: { running: { startedAt } }, ...health };
    });
  }

  #say(tended: Tended): void {
    const { pod, state, exitCode, startedAt } = tended;
    const { time } = this.#deps;
    const isReady = startedAt !== undefined && state !== 'ended';
    const phase =
      state === 'ended' ? (exitCode === 0 ? 'Succeeded' : 'Failed') : startedAt === undefined ? 'Pending' : 'Running';
    const init = (pod.spec?.initContainers ?? []).map(({ name, image = '' }): ContainerStatus => ({
      name,
      image,
      imageID: '',
      ready: startedAt !== undefined,
      started: false,
      restartCount: 0,
      state:
        startedAt === undefined
          ? { waiting: { reason: 'PodInitializing' } }
          : { terminated: { exitCode: 0, startedAt, finishedAt: startedAt } },
    }));
    const truth = (value: boolean): 'True' | 'False' => (value ? 'True' : 'False');
    const wanted = [
      { type: 'PodReadyToStartContainers', status: truth(state !== 'ended') },
      { type: 'Initialized', status: truth(startedAt !== undefined) },
      { type: 'ContainersReady', status: truth(isReady), ...(phase === 'Failed' && { reason: 'PodFailed' }) },
      { type: 'Ready', status: truth(isReady), ...(phase === 'Failed' && { reason: 'PodFailed' }) },
    ];
    this.#write(pod, {
      phase,
      ...(tended.isEvicted === true && state === 'ended' && EVICTED),
      startTime: pod.metadata.creationTimestamp,
      podIP: '10.0.0.1',
      conditions: wanted.map((one) => ({ ...one, lastTransitionTime: time.seconds })),
      containerStatuses: this.#containers(tended),
      ...(init.length > 0 && { initContainerStatuses: init }),
    });
  }

  #write(pod: Pod, status: PodStatus): void {
    if (!this.answers) return;
    const { conditions: wanted = [], ...rest } = status;
    this.#deps.api.change(PODS, pod.metadata, (one) => {
      if (one.metadata.uid !== pod.metadata.uid) return one;
      const before = one.status?.conditions ?? [];
      // Those of which nothing changes keep their times, and those of others stay.
      const own = wanted.map((next) => {
        const same = before.find(({ type, status: known }) => type === next.type && known === next.status);
        return { ...next, lastTransitionTime: (same ?? next).lastTransitionTime };
      });
      const others = before.filter(({ type }) => !wanted.some((next) => next.type === type));
      return { ...one, status: { ...one.status, ...rest, conditions: [...others, ...own] } };
    });
  }
}
