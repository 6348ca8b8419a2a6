import { pino } from 'pino';
import { INDEXES } from '../../src/caches/indexes.ts';
import { ClaimReads } from '../../src/controllers/gpu-instance/act/claim-reads.ts';
import type { InstanceDeps } from '../../src/controllers/gpu-instance/act/run.ts';
import { reconcileInstance } from '../../src/controllers/gpu-instance/act/reconcile.ts';
import type { StageTime } from '../../src/controllers/gpu-instance/decide/status/stage-times.ts';
import { TenantLine } from '../../src/controllers/gpu-instance/tenant-line.ts';
import { UnbilledPlaces } from '../../src/controllers/gpu-instance/unbilled-places.ts';
import { UnrecordedInstances } from '../../src/controllers/gpu-instance/unrecorded.ts';
import { WaitingLine } from '../../src/controllers/gpu-instance/waiting-line.ts';
import { Budgets } from '../../src/controllers/budgets/budgets.ts';
import type { Recorded } from '../../src/controllers/budgets/records.ts';
import { limitReader } from '../../src/controllers/tenants/tenant-ceilings.ts';
import { Cache } from '../../src/kube/watch/cache.ts';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { ForbiddenError, type KubeError, NotFoundError } from '../../src/kube/errors.ts';
import type { IndexFunctions } from '../../src/kube/watch/store.ts';
import {
  type KubeObject,
  keyOf,
  type Namespace,
  type Node,
  type ObjectRef,
  type PersistentVolumeClaim,
  type Pod,
  type ResourceQuota,
  type ResourceType,
  type StorageClass,
} from '../../src/kube/types.ts';
import type { ApiKey } from '../../src/resources/api-key.ts';
import { FINALIZER } from '../../src/resources/cleanup.ts';
import type { GpuInstance, GpuInstanceStatus } from '../../src/resources/instances/gpu-instance.ts';
import type { GpuPool } from '../../src/resources/gpu-pool.ts';
import type { InstanceTemplate } from '../../src/resources/instance-template.ts';
import { storedOf } from '../../src/resources/pod/claim-on-pod.ts';
import type { RegistryCredential } from '../../src/resources/registry-credential.ts';
import type { SshKey } from '../../src/resources/ssh-key.ts';
import type { TenantLimit } from '../../src/resources/tenants/tenant-limit.ts';
import type { TenantPolicy } from '../../src/resources/tenants/tenant-policy.ts';
import { monthOf } from '../../src/ledger/month.ts';
import { RecordedSpending } from '../../src/budgets/spending.ts';
import { Lru } from '../../src/lib/lru.ts';
import { Fence } from '../../src/runtime/fence.ts';
import { Inventory } from '../../src/inventory/inventory.ts';
import { claimingCache } from './claiming-cache.ts';
import { fakeClock } from './fake-clock.ts';
import { gpuNode, gpuPool } from './inventory-world.ts';

/** A complete cache of these objects, whose listeners must not throw. */
export function cacheOf<T extends KubeObject>(objects: T[] = [], indexers?: IndexFunctions<T>) {
  const cache = new Cache<T>({
    indexers,
    onListenerError: (error) => {
      throw error;
    },
  });
  cache.replace(objects, '1');
  return cache;
}

const FORBIDDEN = new ForbiddenError({ message: 'not yours', status: 403, reason: 'Forbidden' });

interface MetadataPatch {
  metadata: {
    ownerReferences?: KubeObject['metadata']['ownerReferences'];
    labels?: Record<string, string | null>;
    annotations?: Record<string, string | null>;
  };
}

function merged(
  before: Record<string, string> = {},
  patch: Record<string, string | null> = {},
): Record<string, string> {
  const entries = Object.entries({ ...before, ...patch }).filter(
    (entry): entry is [string, string] => entry[1] !== null,
  );
  return Object.fromEntries(entries);
}

/** An object with a merge patch of its metadata. */
function patched<T extends KubeObject>(before: T, { metadata: patch }: MetadataPatch, resourceVersion: string): T {
  const { metadata } = before;
  const labels = merged(metadata.labels, patch.labels);
  const annotations = merged(metadata.annotations, patch.annotations);
  const owners = patch.ownerReferences && { ownerReferences: patch.ownerReferences };
  return { ...before, metadata: { ...metadata, ...owners, labels, annotations, resourceVersion } };
}

/** The instance with the finalizer of the controller. */
export function held(instance: GpuInstance): GpuInstance {
  return { ...instance, metadata: { ...instance.metadata, finalizers: [FINALIZER] } };
}

/**
 * The reconciler of instances, with one node of eight GPUs. What it writes to instances is in the caches at once. Pods
 * are created, but a change or deletion of a pod or a disk is refused, unless the world `takesChanges`: then what is
 * written to pods and disks is in the caches at once too. `writes` are those that were made or refused.
 */
export function controllerWorld(
  refusal: KubeError = FORBIDDEN,
  /** Waited for before a patch of an instance is made; a rejection refuses it. */
  beforePatch: (path: string) => Promise<void> = () => Promise.resolve(),
  {
    nodes = [gpuNode('n')],
    pools = [gpuPool('default')],
    claimOnPod = false,
    createPod = (pod) => Promise.resolve(pod),
    storageClasses = [],
    takesChanges = false,
    tryCreate = () => Promise.resolve(),
  }: {
    nodes?: Node[];
    pools?: GpuPool[];
    claimOnPod?: boolean;
    createPod?: (pod: Pod) => Promise<Pod>;
    storageClasses?: StorageClass[];
    takesChanges?: boolean;
    /** A rejection refuses a creation that is tried. */
    tryCreate?: (kind: string) => Promise<void>;
  } = {},
) {
  const nodeCache = cacheOf(nodes);
  const quotas = cacheOf<ResourceQuota>([], INDEXES.quotas);
  const pods = cacheOf<Pod>([], INDEXES.pods);
  const instances = claimOnPod ? claimingCache(pods) : cacheOf<GpuInstance>([], INDEXES.instances);
  const disks = cacheOf<PersistentVolumeClaim>([], INDEXES.disks);
  const templates = cacheOf<InstanceTemplate>([], INDEXES.templates);
  const namespaces = cacheOf<Namespace>([{ metadata: { name: 'default', uid: 'uid-default' } }]);
  const policies = cacheOf<TenantPolicy>();
  const apiKeys = cacheOf<ApiKey>([], INDEXES.apiKeys);
  const limits = cacheOf<TenantLimit>([], INDEXES.tenantLimits);
  const poolCache = cacheOf<GpuPool>(pools);
  const stores: InstanceDeps['stores'] = {
    instances: instances.store,
    pods: pods.store,
    nodes: nodeCache.store,
    sshKeys: cacheOf<SshKey>([], INDEXES.sshKeys).store,
    quotas: quotas.store,
    templates: templates.store,
    apiKeys: apiKeys.store,
    pools: poolCache.store,
    tenantPolicies: policies.store,
    tenantLimits: limits.store,
    registries: cacheOf<RegistryCredential>([], INDEXES.registries).store,
    disks: disks.store,
    namespaces: namespaces.store,
    storageClasses: cacheOf(storageClasses).store,
  };
  const clock = fakeClock();
  const log = pino({ level: 'silent' });
  const refuse = (): Promise<never> => Promise.reject(refusal);
  let version = 1;
  const nextVersion = (): string => String((version += 1));
  const childrenOf: Record<string, Cache<KubeObject>> = {
    Pod: pods,
    PersistentVolumeClaim: disks,
  };
  /** What the API server has and the cache does not show. */
  const unseen: GpuInstance[] = [];
  /** Pods that the API server has and the cache does not show, by key. */
  const api = { pods: new Map<string, Pod>() };
  /** What was created, in order. */
  const created: { kind: string; object: KubeObject }[] = [];
  /** What was created as a try alone. */
  const tried: typeof created = [];
  const writes: { verb: 'patch' | 'delete'; kind: string; name: string; uid?: string; body?: unknown }[] = [];
  /** An instance as the API server has it. */
  const storedAt = (key: string): GpuInstance | undefined => {
    const seen = instances.store.get(key);
    return seen && storedOf(seen);
  };
  const storeOf: Record<string, { get(key: string): KubeObject | undefined }> = {
    GPUInstance: { get: storedAt },
    Pod: pods.store,
    PersistentVolumeClaim: disks.store,
  };
  const client: Pick<KubeClient, 'get' | 'list' | 'create' | 'patch' | 'delete'> = {
    list: (type) => {
      const records = created.filter(({ kind }) => kind === 'UsageRecord').map(({ object }) => object);
      const all = type.kind === 'UsageRecord' ? records : [...[...instances.store.values()].map(storedOf), ...unseen];
      return Promise.resolve({ items: all as never[], resourceVersion: '1' });
    },
    get(type: ResourceType, ref: ObjectRef) {
      const found = (type.kind === 'Pod' && api.pods.get(keyOf(ref))) || storeOf[type.kind]?.get(keyOf(ref));
      if (found !== undefined) return Promise.resolve(found as never);
      return Promise.reject(new NotFoundError({ message: 'gone', status: 404, reason: 'NotFound' }));
    },
    create(type, object, options) {
      if (options?.dryRun === true) {
        tried.push({ kind: type.kind, object });
        return tryCreate(type.kind).then(() => object);
      }
      created.push({ kind: type.kind, object });
      if (takesChanges && childrenOf[type.kind] !== undefined) {
        const { name } = object.metadata;
        const metadata = { ...object.metadata, uid: `made-${name}-${created.length}`, resourceVersion: nextVersion() };
        childrenOf[type.kind]?.upsert({ ...object, metadata });
        return Promise.resolve({ ...object, metadata } as never);
      }
      return type.kind === 'Pod' ? (createPod(object) as Promise<never>) : Promise.resolve(object);
    },
    patch(type, ref, body) {
      writes.push({ verb: 'patch', kind: type.kind, name: ref.name, body });
      const before = type.kind !== 'GPUInstance' ? undefined : storedAt(keyOf(ref));
      const child = childrenOf[type.kind]?.store.get(keyOf(ref));
      if (takesChanges && child !== undefined) {
        const after = patched(child, body as MetadataPatch, nextVersion());
        childrenOf[type.kind]?.upsert(after);
        return Promise.resolve(after as never);
      }
      if (before === undefined) return refuse();
      if (!Array.isArray(body)) {
        instances.upsert(patched(before, body as MetadataPatch, nextVersion()));
        return Promise.resolve(storedAt(keyOf(ref)) as never);
      }
      const operations = body as { op: string; path: string; value?: unknown }[];
      // The last that adds says what is written; a move keeps what is there.
      const { path = '', value } = operations.findLast(({ op }) => op === 'add') ?? {};
      const keeps = operations.some(({ op }) => op === 'move');
      return beforePatch(path).then(() => {
        const { metadata, ...rest } = storedAt(keyOf(ref)) ?? before;
        const finalizers = path === '/metadata/finalizers' && { finalizers: value as string[] };
        const kept = keeps && rest.status?.template && { template: rest.status.template };
        const status = path === '/status' && { status: { ...(value as GpuInstanceStatus), ...kept } };
        const resourceVersion = nextVersion();
        instances.upsert({ ...rest, ...status, metadata: { ...metadata, ...finalizers, resourceVersion } });
        return storedAt(keyOf(ref)) as never;
      });
    },
    delete(type, ref, options) {
      const uid = options?.uid;
      writes.push({ verb: 'delete', kind: type.kind, name: ref.name, ...(uid !== undefined && { uid }) });
      const child = childrenOf[type.kind]?.store.get(keyOf(ref));
      if (!takesChanges || child === undefined) return refuse();
      childrenOf[type.kind]?.remove(child);
      return Promise.resolve();
    },
  };
  const inventory = new Inventory(stores, clock);
  const ceilingsOf = limitReader(policies.store, namespaces.store);
  const line = new WaitingLine(inventory, clock);
  const tenantLine = new TenantLine({ inventory, line, stores, ceilingsOf });
  /** What usage records say; undefined while they are being read. */
  const recorded: { now: Recorded | undefined } = {
    now: { spending: new RecordedSpending(monthOf(clock.now())), isRecorded: () => false, revisionOf: () => 0 },
  };
  const budgets = new Budgets({
    stores,
    ceilingsOf,
    clock,
    assumedClaim: (key) => inventory.unseen(key)?.status?.claim,
    recordedAt: () => recorded.now,
  });
  const woken: string[] = [];
  tenantLine.source.start((key) => woken.push(key));
  const stopping: string[] = [];
  budgets.source(tenantLine, line).start((key) => stopping.push(key));
  const stageTimes: StageTime[] = [];
  const endings: string[] = [];
  const unbilled = new UnbilledPlaces({ ...stores, clock });
  stores.instances.onChange((change) => unbilled.noteChange(change));
  const deps: InstanceDeps = {
    client: client as KubeClient,
    stores,
    inventory,
    line,
    ceilingsOf,
    tenantLine,
    claimReads: new ClaimReads({ client, inventory, stores, config: { claimOnPod } }),
    budgets,
    fence: new Fence(clock, log),
    made: new Lru(10),
    unkept: new Lru(10),
    unrecorded: new UnrecordedInstances(log, clock),
    unbilled,
    troubles: { last: () => undefined },
    events: { record: () => undefined },
    noteStages: (times) => void stageTimes.push(...times),
    noteEnding: (reason) => void endings.push(reason),
    clock,
    recordTimes: clock,
    config: {
      namespace: 'berth-system',
      defaultImage: 'debian:12',
      toolsImage: 'tools',
      imagePullSecrets: [],
      imagePullPolicy: 'Always',
      ssh: { host: '', port: 22 },
      claimOnPod,
    },
  };
  return {
    instances,
    nodes: nodeCache,
    pools: poolCache,
    pods,
    disks,
    namespaces,
    templates,
    policies,
    limits,
    inventory,
    unseen,
    api,
    /** What the tenant line woke. */
    woken,
    recorded,
    budgets,
    /** What the budgets woke to stop it, in order. */
    stopping,
    apiKeys,
    clock,
    quotas,
    deps,
    writes,
    /** What the histogram of starts got. */
    stageTimes,
    /** What the counter of endings got. */
    endings,
    /** Kinds of what was created. */
    creations: () => created.map(({ kind }) => kind),
    line: deps.line,
    /** Kinds of what was tried. */
    tries: () => tried.map(({ kind }) => kind),
    /** The pods that were created, in order. */
    createdPods: () => created.filter(({ kind }) => kind === 'Pod').map(({ object }) => object as Pod),
    reconcile: (name: string, namespace = 'default') =>
      reconcileInstance({ deps, key: `${namespace}/${name}`, context: { signal: new AbortController().signal, log } }),
  };
}
