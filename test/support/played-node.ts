import { setTimeout as delay } from 'node:timers/promises';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { findCondition } from '../../src/kube/conditions.ts';
import { NotFoundError } from '../../src/kube/errors.ts';
import { NODES, type Pod, PODS } from '../../src/kube/types.ts';
import { addNode, gpuNode } from './http/fleet.ts';

/** Kubernetes takes a node for lost after 50 seconds without one. */
const HEARTBEAT_MS = 10_000;
const LOOK_MS = 250;
const GPUS = 'nvidia.com/gpu';
const STATUS = { type: 'strategic', subresource: 'status' } as const;

export interface PlayedNodeOptions {
  name: string;
  product: string;
  gpus: number;
  /** Milliseconds that each image takes; 0 where it is absent. */
  pullMs?: number;
}

/** A node whose kubelet the test plays: it sends heartbeats, starts pods and ends them, until the test has it fall silent. */
export class PlayedNode implements AsyncDisposable {
  readonly name: string;
  readonly #client: KubeClient;
  readonly #gpus: number;
  readonly #remove: () => Promise<void>;
  #pullMs: number;
  /** Whether its next heartbeat is the first since it was silent. */
  #isBack = true;
  /** Ends what the kubelet does; undefined while it is silent. */
  #playing: AbortController | undefined;
  #done: Promise<void> = Promise.resolve();

  private constructor(client: KubeClient, { name, gpus, pullMs = 0 }: PlayedNodeOptions, remove: () => Promise<void>) {
    this.name = name;
    this.#client = client;
    this.#gpus = gpus;
    this.#pullMs = pullMs;
    this.#remove = remove;
  }

  /** Adds the node to the cluster. */
  static async start(client: KubeClient, options: PlayedNodeOptions): Promise<PlayedNode> {
    const node = gpuNode(options.name, options.product, options.gpus);
    // No other program plays it.
    const { annotations: _annotations, ...metadata } = node.metadata;
    const played = new PlayedNode(client, options, await addNode(client, { ...node, metadata }));
    await played.#beat();
    played.answer();
    return played;
  }

  /** The machine hangs or is off: nothing is heard of it. */
  async silence(): Promise<void> {
    this.#playing?.abort();
    this.#playing = undefined;
    await this.#done;
  }

  /** It is back, and has the pods that it had. */
  answer(): void {
    if (this.#playing !== undefined) return;
    this.#isBack = true;
    this.#playing = new AbortController();
    this.#done = this.#run(this.#playing.signal);
  }

  /** Images are there from now on. */
  hasImages(): void {
    this.#pullMs = 0;
  }

  /** The device plugin takes a GPU of every pod out of service. */
  async failGpu(id: string): Promise<void> {
    await this.#allocate(this.#gpus - 1);
    const allocatedResourcesStatus = [{ name: GPUS, resources: [{ resourceID: id, health: 'Unhealthy' }] }];
    for (const { metadata, status } of await this.#pods()) {
      const statuses = status?.containerStatuses ?? [];
      const containerStatuses = statuses.map((one) =>
        one.name === 'main' ? { ...one, allocatedResourcesStatus } : one,
      );
      await this.#client.patch(PODS, metadata, { status: { containerStatuses } }, STATUS);
    }
  }

  /** It gives all of them out again. */
  async mendGpus(): Promise<void> {
    await this.#allocate(this.#gpus);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.silence();
    await this.#remove();
  }

  async #run(silent: AbortSignal): Promise<void> {
    let beatAt = -Infinity;
    while (!silent.aborted) {
      if (performance.now() >= beatAt + HEARTBEAT_MS) {
        beatAt = performance.now();
        await this.#beat();
      }
      for (const pod of await this.#pods()) await this.#tend(pod).catch(unlessGone);
      await delay(LOOK_MS, undefined, { signal: silent }).catch(() => undefined);
    }
  }

  async #pods(): Promise<Pod[]> {
    return (await this.#client.list(PODS, { fieldSelector: `spec.nodeName=${this.name}` })).items;
  }

  async #allocate(count: number): Promise<void> {
    await this.#client.patch(
      NODES,
      { name: this.name },
      { status: { allocatable: { [GPUS]: String(count) } } },
      STATUS,
    );
  }

  async #beat(): Promise<void> {
    const ready = { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'played by a test' };
    const changed = this.#isBack ? { lastTransitionTime: now() } : {};
    this.#isBack = false;
    const conditions = [{ ...ready, lastHeartbeatTime: now(), ...changed }];
    await this.#client.patch(NODES, { name: this.name }, { status: { conditions } }, STATUS);
  }

  async #tend(pod: Pod): Promise<void> {
    const { metadata, status = {} } = pod;
    if (metadata.deletionTimestamp !== undefined) {
      if (status.phase !== 'Failed')
        await this.#say(pod, 'Failed', { terminated: { exitCode: 137, finishedAt: now() } });
      await this.#client.delete(PODS, metadata, { gracePeriodSeconds: 0 });
      return;
    }
    const prepared = findCondition(status.conditions, 'Initialized');
    if (prepared === undefined) await this.#say(pod, 'Pending', { waiting: { reason: 'ContainerCreating' } });
    else if (findCondition(status.conditions, 'Ready')?.status !== 'True' && this.#isPulled(prepared)) {
      await this.#say(pod, 'Running', { running: { startedAt: now() } });
    }
  }

  #isPulled({ lastTransitionTime = '' }: { lastTransitionTime?: string }): boolean {
    return Date.now() >= Date.parse(lastTransitionTime) + this.#pullMs;
  }

  async #say({ metadata, spec }: Pod, phase: 'Pending' | 'Running' | 'Failed', state: object): Promise<void> {
    const ready = phase === 'Running';
    // Those of before keep their times.
    const types = phase === 'Pending' ? ['PodReadyToStartContainers', 'Initialized'] : ['ContainersReady', 'Ready'];
    const status = phase === 'Failed' ? 'False' : 'True';
    const conditions = types.map((type) => ({ type, status, lastTransitionTime: now() }));
    const containerStatuses = (spec?.containers ?? []).map(({ name, image = '' }) => {
      return { name, image, imageID: '', ready, started: ready, restartCount: 0, state };
    });
    const startTime = metadata.creationTimestamp;
    await this.#client.patch(PODS, metadata, { status: { phase, startTime, conditions, containerStatuses } }, STATUS);
  }
}

/** As Kubernetes writes times. */
function now(): string {
  return new Date().toISOString().replace(/\.\d+Z$/, 'Z');
}

function unlessGone(error: unknown): void {
  if (!(error instanceof NotFoundError)) throw error;
}
