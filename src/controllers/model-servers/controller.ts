import { type KubeClient, pathOf } from '../../kube/client/client.ts';
import { keyOf, type KubeObject, type Lease, LEASES, type ResourceType, type Service } from '../../kube/types.ts';
import { serverAnnotations } from '../../resources/model-servers/annotations.ts';
import { readScale, type ScaleSpec, type ScaleTarget } from '../../resources/model-servers/scale.ts';
import { AlreadyExistsError, ConflictError, ForbiddenError, NotFoundError } from '../../kube/errors.ts';
import type { ReadStore } from '../../kube/watch/store.ts';
import {
  isAsleep,
  LEASE_ASLEEP,
  LEASE_PROBLEM,
  LEASE_SERVICE,
  MODEL_LEASE_LABEL,
  modelLeaseName,
  notesOf,
  renewalOf,
} from '../../resources/model-servers/lease.ts';
import { Controller, type ReconcileContext, type Result } from '../../runtime/controller.ts';
import { Fence } from '../../runtime/fence.ts';
import { decide, LOOK_MS, type Memory, remember } from './decide.ts';
import { storeSource } from '../../runtime/source.ts';
import { type CommonDeps, RECONCILE_TIMEOUT_MS } from '../common-deps.ts';

/** `autoscaling/v1` Scale, as far as Berth reads it. */
interface ScaleObject extends KubeObject {
  spec?: { replicas?: number };
}

/** What the scale subresource of a workload says, and of which version of the workload. */
interface Scale {
  replicas: number;
  resourceVersion: string | undefined;
}

interface Workload {
  namespace: string;
  target: ScaleTarget;
  signal: AbortSignal;
}

function typeOf({ group, version, plural }: ScaleTarget): ResourceType<ScaleObject> {
  return { group, version, plural, kind: 'Scale', namespaced: true };
}

/** Rejects with NotFoundError when there is no such workload, or it does not scale. */
async function readReplicas(client: Pick<KubeClient, 'raw'>, { namespace, target, signal }: Workload): Promise<Scale> {
  const path = pathOf(typeOf(target), { namespace, name: target.name }, 'scale');
  const { metadata, spec } = await client.raw<ScaleObject>('GET', path, undefined, { signal });
  return { replicas: spec?.replicas ?? 0, resourceVersion: metadata.resourceVersion };
}

/** Writes the replicas if the workload is as it was read. Rejects with ConflictError otherwise. */
async function writeReplicas(
  client: Pick<KubeClient, 'patch'>,
  { namespace, target, signal }: Workload,
  { replicas, resourceVersion }: Scale,
): Promise<void> {
  const ref = { namespace, name: target.name };
  const body = { metadata: { resourceVersion }, spec: { replicas } };
  await client.patch(typeOf(target), ref, body, { type: 'merge', subresource: 'scale', signal });
}

/** What the controller of model servers needs beside what all controllers have. */
export interface ModelServerOptions {
  /** Narrowed to the label `berth.dev/model-server=true`. */
  services: ReadStore<Service>;
  /** Those of Berth's own namespace with the label of model servers. */
  leases: ReadStore<Lease>;
  /** Where the operator lets Berth scale workloads. */
  namespaces: readonly string[];
  /** Berth's own namespace. */
  namespace: string;
}

interface Deps extends ModelServerOptions, Pick<CommonDeps, 'client' | 'clock'> {
  fence: Fence;
}

/** Users who may write Services in such a namespace must not fill etcd with Leases. */
const SERVERS_OF_NAMESPACE = 200;

/** A Service whose workload Berth scales, and its Lease. */
interface Server {
  key: string;
  namespace: string;
  spec: ScaleSpec;
  lease: Lease;
}

/** What one leader knows of the model servers that scale to zero. */
export class ModelServers {
  readonly #deps: Deps;
  readonly #memories = new Map<string, Memory>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  async reconcile(key: string, { signal, log }: ReconcileContext): Promise<Result> {
    const service = this.#deps.services.get(key);
    const spec = this.#specOf(service);
    await this.#removeLeases(key, spec === undefined ? undefined : service?.metadata.uid, signal);
    if (service === undefined || spec === undefined) {
      this.#memories.delete(key);
      return undefined;
    }
    const lease = this.#leaseOf(service);
    if (lease === undefined) {
      if (!this.#isFull(service)) await this.#createLease(key, service, signal);
      else log.warn({ most: SERVERS_OF_NAMESPACE }, 'The namespace has more model servers at zero than Berth follows');
      return undefined;
    }
    const namespace = service.metadata.namespace ?? '';
    const memory = remember(this.#memories.get(key), renewalOf(lease), this.#deps.clock.monotonic());
    this.#memories.set(key, memory);
    try {
      const scale = await readReplicas(this.#deps.client, { namespace, target: spec.target, signal });
      const result = await this.#step({ key, namespace, spec, lease }, scale, memory, { signal, log });
      await this.#tell(key, lease, undefined, signal);
      return result;
    } catch (error) {
      // While the API server was away, no replica of the gateway could object.
      if (!(error instanceof ConflictError)) delete memory.markedAt;
      const problem = problemOf(error, namespace, spec);
      if (problem === undefined) throw error;
      log.warn({ err: error }, 'The workload of a model server cannot be scaled');
      await this.#tell(key, lease, problem, signal);
      return { requeueAfterMs: LOOK_MS };
    }
  }

  async #step(
    server: Server,
    scale: Scale,
    memory: Memory,
    { signal, log }: Pick<ReconcileContext, 'signal' | 'log'>,
  ): Promise<Result> {
    const { client, clock } = this.#deps;
    const { key, namespace, spec, lease } = server;
    const { replicas } = scale;
    if (isAsleep(lease) && replicas === 0) delete memory.markedAt;
    const now = clock.monotonic();
    const view = {
      renewal: renewalOf(lease),
      asleepAfter: notesOf(lease)[LEASE_ASLEEP],
      replicas,
      minimum: spec.replicas,
      idleMs: spec.idleSeconds * 1000,
    };
    const step = decide(view, memory, now);
    if (step.kind === 'wait') return { requeueAfterMs: step.ms };
    if (step.kind === 'scale') {
      if (step.replicas === 0 && !(await this.#maySleep(server, signal))) return { requeueAfterMs: LOOK_MS };
      await writeReplicas(client, { namespace, target: spec.target, signal }, { ...scale, replicas: step.replicas });
      const { target } = spec;
      log.info({ from: replicas, to: step.replicas, target }, 'The workload of a model server was scaled');
      return { requeueAfterMs: LOOK_MS };
    }
    await this.#annotate(key, lease, { [LEASE_ASLEEP]: step.kind === 'mark' ? view.renewal : null }, signal);
    if (step.kind === 'unmark') memory.since = clock.monotonic();
    if (step.kind === 'mark' && replicas > 0) memory.markedAt = clock.monotonic();
    else delete memory.markedAt;
    return { requeueAfterMs: 0 };
  }

  /** Whether the server still sleeps, by the API server's own word, and so do the others in front of its workload. */
  async #maySleep({ key, namespace, spec, lease }: Server, signal: AbortSignal): Promise<boolean> {
    const { name } = lease.metadata;
    const now = await this.#deps.client.get(LEASES, { namespace: this.#deps.namespace, name }, { signal });
    if (!isAsleep(now)) return false;
    for (const other of this.#deps.services.values()) {
      if (other.metadata.namespace !== namespace || `${namespace}/${other.metadata.name}` === key) continue;
      const { target } = this.#specOf(other) ?? {};
      if (target === undefined || JSON.stringify(target) !== JSON.stringify(spec.target)) continue;
      const lease = this.#leaseOf(other);
      if (lease === undefined || !isAsleep(lease)) return false;
    }
    return true;
  }

  #specOf(service: Service | undefined): ScaleSpec | undefined {
    if (service === undefined || service.metadata.deletionTimestamp !== undefined) return undefined;
    if (!this.#deps.namespaces.includes(service.metadata.namespace ?? '')) return undefined;
    // The gateway logs what is wrong with the annotations.
    return readScale(serverAnnotations(service, []), []);
  }

  #isFull({ metadata: { namespace = '' } }: Service): boolean {
    const services = [...this.#deps.leases.values()].map((lease) => notesOf(lease)[LEASE_SERVICE] ?? '');
    return services.filter((one) => one.startsWith(`${namespace}/`)).length >= SERVERS_OF_NAMESPACE;
  }

  #leaseOf({ metadata }: Service): Lease | undefined {
    return this.#deps.leases.get(`${this.#deps.namespace}/${modelLeaseName(metadata.uid ?? '')}`);
  }

  async #createLease(key: string, { metadata }: Service, signal: AbortSignal): Promise<void> {
    const { client, fence, leases, namespace } = this.#deps;
    const name = modelLeaseName(metadata.uid ?? '');
    const lease: Lease = {
      metadata: { namespace, name, labels: { [MODEL_LEASE_LABEL]: 'true' }, annotations: { [LEASE_SERVICE]: key } },
      spec: {},
    };
    try {
      fence.wrote(key, leases, await client.create(LEASES, lease, { signal }));
    } catch (error) {
      // The cache will show it.
      if (!(error instanceof AlreadyExistsError)) throw error;
    }
  }

  /** Deletes the Leases of earlier Services of this name, all but that of `uid`. */
  async #removeLeases(key: string, uid: string | undefined, signal: AbortSignal): Promise<void> {
    const { client, leases } = this.#deps;
    const kept = uid === undefined ? undefined : modelLeaseName(uid);
    const old = [...leases.values()].filter(
      (lease) => notesOf(lease)[LEASE_SERVICE] === key && lease.metadata.name !== kept,
    );
    for (const { metadata } of old) {
      const { namespace, name, uid: own } = metadata;
      await client.delete(LEASES, { namespace, name }, { signal, ...(own !== undefined && { uid: own }) });
    }
  }

  /** Says to the gateway why the workload cannot be scaled, or takes that back. */
  async #tell(key: string, lease: Lease, problem: string | undefined, signal: AbortSignal): Promise<void> {
    if (notesOf(lease)[LEASE_PROBLEM] === problem) return;
    const { client, fence, leases, namespace } = this.#deps;
    const body = { metadata: { annotations: { [LEASE_PROBLEM]: problem ?? null } } };
    const { name } = lease.metadata;
    fence.wrote(key, leases, await client.patch(LEASES, { namespace, name }, body, { type: 'merge', signal }));
  }

  /** Writes annotations if the Lease is as it was read: no renewal came meanwhile. Rejects with ConflictError. */
  async #annotate(
    key: string,
    { metadata }: Lease,
    annotations: Record<string, string | null>,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, fence, leases, namespace } = this.#deps;
    const { name, resourceVersion } = metadata;
    const body = { metadata: { resourceVersion, annotations } };
    fence.wrote(key, leases, await client.patch(LEASES, { namespace, name }, body, { type: 'merge', signal }));
  }
}

/** What the operator can mend, in words for callers. Undefined for any other error. */
function problemOf(error: unknown, namespace: string, { target }: ScaleSpec): string | undefined {
  const workload = `${target.plural}.${target.group} '${target.name}'`;
  if (error instanceof NotFoundError) return `Its Service names ${workload}, which does not exist or does not scale.`;
  if (error instanceof ForbiddenError)
    return `Berth may not scale ${workload} in the namespace ${namespace}. The operator can allow it in models.scaleFromZero of the chart.`;
  return undefined;
}

const WORKERS = 2;

/** Lets the workloads of model servers go to zero while nobody calls them, and brings them back. Keys are Services. */
export function createModelServerController(
  { client, clock, log, metrics }: Pick<CommonDeps, 'client' | 'clock' | 'log' | 'metrics'>,
  options: ModelServerOptions,
): Controller {
  const fence = new Fence(clock, log);
  const servers = new ModelServers({ ...options, client, clock, fence });
  return new Controller({
    name: 'model-server',
    sources: [
      storeSource(options.services, (service) => [keyOf(service)]),
      storeSource(options.leases, (lease) => {
        const service = notesOf(lease)[LEASE_SERVICE];
        return service === undefined ? [] : [service];
      }),
    ],
    reconcile: (key, context) => servers.reconcile(key, context),
    concurrency: WORKERS,
    timeoutMs: RECONCILE_TIMEOUT_MS,
    fence,
    clock,
    log,
    metrics: metrics('model-server', WORKERS),
  });
}
