import { NODES, type Pod, PODS, STORAGE_CLASSES } from '../../../src/kube/types.ts';
import { ApiServer } from '../api/server.ts';
import type { Chance } from '../clock/chance.ts';
import type { VirtualTime } from '../clock/virtual-time.ts';
import { ClaimKeeper } from './claim-keeper.ts';
import { Devices } from './devices.ts';
import { disrupted, Keepers } from './keepers.ts';
import { Machine, type MachineShape } from './machine.ts';
import { PodIndex } from './pod-index.ts';
import { Scheduler } from './scheduler.ts';
import { Volumes } from './volumes.ts';
import type { Witness } from './witness.ts';

/** Kubernetes notices a silent node between these, */
const NOTICED_MS: readonly [number, number] = [40_000, 50_000];
/** and takes its pods away so much later. */
const EVICTED_MS = 300_000;

export interface ClusterDeps {
  time: VirtualTime;
  chance: Chance;
  witness: Witness;
  /** Whether Kubernetes knows Dynamic Resource Allocation. */
  servesDevices: boolean;
}

/** Kubernetes without Berth: an API server, a scheduler, controllers and machines with GPUs. */
export class Cluster {
  readonly api: ApiServer;
  readonly machines = new Map<string, Machine>();
  readonly pods: PodIndex;
  readonly volumes: Volumes;
  readonly devices: Devices;
  readonly #deps: ClusterDeps;
  readonly #keepers: Keepers;
  readonly #notices = new Map<string, () => void>();

  constructor(deps: ClusterDeps) {
    const { time, chance, witness, servesDevices } = deps;
    this.#deps = deps;
    this.api = new ApiServer(time, chance, servesDevices);
    this.pods = new PodIndex(this.api);
    this.volumes = new Volumes(this.api, witness);
    this.devices = new Devices(this.api);
    const parts = { api: this.api, time, chance, pods: this.pods, volumes: this.volumes, devices: this.devices };
    new Scheduler(parts).start();
    this.#keepers = new Keepers(parts);
    new ClaimKeeper(parts).start();
    this.api.follow(({ kind, before, after }) => {
      if (kind.type.kind === 'Pod') this.#tellMachine(before, after);
    });
  }

  addStorageClass(name: string, isDefault: boolean): void {
    const annotations = { 'storageclass.kubernetes.io/is-default-class': String(isDefault) };
    this.api.create(STORAGE_CLASSES, { metadata: { name, annotations } });
  }

  addMachine(shape: MachineShape): Machine {
    const { time, chance, witness } = this.#deps;
    const machine = new Machine({ api: this.api, time, chance, witness, volumes: this.volumes }, shape);
    this.machines.set(shape.name, machine);
    machine.register();
    return machine;
  }

  /** A machine hangs or loses its network, or its power. */
  lose(name: string, how: 'silent' | 'off'): void {
    const machine = this.machines.get(name);
    if (machine === undefined || !machine.answers) return;
    if (how === 'off') machine.turnOff();
    else machine.silence();
    this.#deps.witness.away(name, true);
    const { time, chance } = this.#deps;
    const cancel = time.afterPlain(chance.between(...NOTICED_MS), () => {
      this.#deps.witness.silent(name, true);
      this.#keepers.markSilent(name);
      this.#notices.set(
        name,
        time.afterPlain(EVICTED_MS, () => this.#keepers.evict(name)),
      );
    });
    this.#notices.set(name, cancel);
  }

  /** It answers again. */
  restore(name: string): void {
    const machine = this.machines.get(name);
    if (machine === undefined || machine.answers) return;
    this.#notices.get(name)?.();
    this.#notices.delete(name);
    if (this.api.find(NODES, { name }) === undefined) machine.register();
    this.#deps.witness.silent(name, false);
    this.#deps.witness.away(name, false);
    machine.setUnready(false);
    machine.turnOn();
    machine.answer();
    this.#keepers.markReady(name);
  }

  /** The kubelet says that it starts nothing. The taint follows when Kubernetes gets to it. */
  setUnready(name: string, taintedAfterMs: number): void {
    this.machines.get(name)?.setUnready(true);
    this.#keepers.markUnready(name);
    this.#deps.time.afterPlain(taintedAfterMs, () => this.#keepers.taintUnready(name));
  }

  setReady(name: string): void {
    const machine = this.machines.get(name);
    if (machine?.isUnready !== true) return;
    machine.setUnready(false);
    // Of one that does not answer, its next report says it.
    if (machine.answers) this.#keepers.markReady(name);
  }

  cordon(name: string, unschedulable: boolean): void {
    this.api.change(NODES, { name }, (node) => ({ ...node, spec: { ...node.spec, unschedulable } }));
  }

  /** kubectl drain: cordons, and evicts what runs there. */
  drain(name: string): void {
    this.cordon(name, true);
    for (const pod of this.pods.on(name)) {
      if (pod.metadata.deletionTimestamp !== undefined) continue;
      const said = disrupted('EvictionByEvictionAPI', 'Eviction API: evicting', this.#deps.time.seconds);
      this.api.change(PODS, pod.metadata, said);
      this.api.delete(PODS, pod.metadata);
    }
  }

  #tellMachine(before: Pod | undefined, after: Pod | undefined): void {
    const pod = after ?? before;
    const node = pod?.spec?.nodeName;
    const { uid } = pod?.metadata ?? {};
    if (node === undefined || uid === undefined) return;
    const isNew = before?.spec?.nodeName === undefined;
    const isGoing = after === undefined || before?.metadata.deletionTimestamp !== after.metadata.deletionTimestamp;
    if (!isNew && !isGoing) return;
    const { time, chance } = this.#deps;
    time.afterPlain(chance.between(5, 120), () => {
      const machine = this.machines.get(node);
      const now = pod && this.api.find(PODS, pod.metadata);
      machine?.see(uid, now?.metadata.uid === uid ? now : undefined);
    });
  }
}
