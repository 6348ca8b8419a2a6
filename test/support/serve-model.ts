import type { AddressInfo, Server } from 'node:net';
import { ENDPOINT_SLICES, type ObjectRef, type Pod, PODS, SERVICES } from '../../src/kube/types.ts';
import { type EngineOptions, type ScriptedEngine, startEngine } from './scripted-engine.ts';
import type { TestNamespace } from './test-cluster.ts';
import { openWay, ownAddress } from './way.ts';

const NAME = 'engine';

type Space = Pick<TestNamespace, 'client' | 'name'>;

/** Tells Kubernetes of a model server there, and of its pod. */
async function publish({ client, name: namespace }: Space, way: Server, pod?: Pod): Promise<void> {
  const labels = { 'berth.dev/model-server': 'true' };
  const spec = { ports: [{ name: 'http', port: 80 }] };
  await client.create(SERVICES, { metadata: { name: NAME, namespace, labels }, spec });
  const targetRef = pod && { kind: 'Pod', name: pod.metadata.name, namespace };
  await client.create(ENDPOINT_SLICES, {
    metadata: { name: NAME, namespace, labels: { ...labels, 'kubernetes.io/service-name': NAME } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: portOf(way) }],
    endpoints: [{ addresses: [ownAddress()], conditions: { ready: true }, ...(targetRef && { targetRef }) }],
  });
}

function portOf(way: Server): number {
  return (way.address() as AddressInfo).port;
}

/** A model server of Berth's own namespace, in this process. */
export async function serveModel(space: Space, options: EngineOptions): Promise<ScriptedEngine> {
  const engine = await startEngine(options);
  const way = await openWay(engine.port);
  await publish(space, way);
  return {
    ...engine,
    async close() {
      way.close();
      await engine.close();
    },
  };
}

/** The same with a pod, whose container may crash and come back. */
export class ModelPod implements AsyncDisposable {
  readonly #space: TestNamespace;
  readonly #options: EngineOptions;
  readonly #ref: ObjectRef;
  #engine: ScriptedEngine;
  #way: Server;
  readonly #port: number;
  #restarts = 0;

  private constructor(space: TestNamespace, options: EngineOptions, [engine, way]: [ScriptedEngine, Server]) {
    this.#space = space;
    this.#options = options;
    this.#ref = { namespace: space.name, name: NAME };
    this.#engine = engine;
    this.#way = way;
    this.#port = portOf(way);
  }

  static async start(space: TestNamespace, options: EngineOptions): Promise<ModelPod> {
    const engine = await startEngine(options);
    const way = await openWay(engine.port);
    const model = new ModelPod(space, options, [engine, way]);
    // Nothing runs it: the test says what a kubelet would.
    const spec = { schedulingGates: [{ name: 'test/never' }], containers: [{ name: 'main', image: 'none' }] };
    const pod = await space.client.create(PODS, { metadata: { ...model.#ref }, spec });
    await model.#say();
    await publish(space, way, pod);
    return model;
  }

  /** It is started again, and does not listen yet. It has no probe, so that Kubernetes takes it for ready. */
  async crash(): Promise<void> {
    this.#way.close();
    await this.#engine.close();
    this.#restarts += 1;
    await this.#say();
  }

  /** It listens again. */
  async recover(): Promise<void> {
    this.#engine = await startEngine(this.#options);
    this.#way = await openWay(this.#engine.port, this.#port);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#way.close();
    await this.#engine.close();
  }

  async #say(): Promise<void> {
    const ip = ownAddress();
    const state = { running: { startedAt: new Date().toISOString().replace(/\.\d+Z$/, 'Z') } };
    const main = { name: 'main', image: 'none', imageID: '', ready: true, restartCount: this.#restarts, state };
    const status = { phase: 'Running', podIP: ip, podIPs: [{ ip }], containerStatuses: [main] };
    await this.#space.client.patch(PODS, this.#ref, { status }, { type: 'merge', subresource: 'status' });
  }
}
