import type { IndexFunctions } from '../kube/watch/store.ts';
import { INFERENCE_POOLS } from '../kube/inference-pools.ts';
import {
  DEVICE_CLASSES,
  DEVICE_TAINT_RULES,
  EARLIER_TAINT_RULES,
  RESOURCE_CLAIMS,
  RESOURCE_SLICES,
} from '../kube/devices.ts';
import {
  ENDPOINT_SLICES,
  type KubeObject,
  LEASES,
  NAMESPACES,
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PODS,
  RESOURCE_QUOTAS,
  type ResourceType,
  SERVICES,
  STORAGE_CLASSES,
} from '../kube/types.ts';
import { NETWORK_POLICIES } from '../kube/network-policy.ts';
import { API_KEYS } from '../resources/api-key.ts';
import { GPU_INSTANCES, type GpuInstance } from '../resources/instances/gpu-instance.ts';
import { GPU_POOLS } from '../resources/gpu-pool.ts';
import { INSTANCE_HISTORIES } from '../resources/instance-history.ts';
import { INSTANCE_TEMPLATES } from '../resources/instance-template.ts';
import { MODEL_LEASE_LABEL } from '../resources/model-servers/lease.ts';
import { MODEL_SERVERS } from '../resources/model-servers/model-server.ts';
import { REGISTRY_CREDENTIALS } from '../resources/registry-credential.ts';
import { slimSpec } from '../resources/instances/slim-spec.ts';
import { SSH_KEYS } from '../resources/ssh-key.ts';
import { TENANT_LIMITS } from '../resources/tenants/tenant-limit.ts';
import { TENANT_POLICIES } from '../resources/tenants/tenant-policy.ts';
import { WEBHOOKS } from '../resources/webhook.ts';
import { INDEXES } from './indexes.ts';
import { SharedContents } from './shared-contents.ts';
import { pruneDisk, pruneNode, prunePod } from './prune.ts';

/** What the roles of a process read of the objects in its caches. */
export interface Reads {
  /** Long texts in the specs of instances. Without them a cache keeps their digests. */
  texts: boolean;
}

/** What one cache watches and keeps. */
export interface CacheDefinition<T extends KubeObject> {
  type: ResourceType<T>;
  labelSelector?: string;
  /** Empty where the API server does not serve the kind, or Berth may not read it. */
  isOptional?: boolean;
  /** Read where the API server does not serve the version of the type. */
  earlierVersion?: string;
  /** Only objects of Berth's own namespace. */
  isOwn?: boolean;
  indexers?: IndexFunctions<T>;
  /** Returns what the cache keeps of an object; without it, the whole object. */
  prune?: (object: T) => T;
  /** Makes the prune of one process: one that remembers what it has seen, and knows what the process reads. */
  createPrune?: (reads: Reads) => (object: T) => T;
}

function cache<T extends KubeObject>(definition: CacheDefinition<T>): CacheDefinition<T> {
  return definition;
}

function pruneInstances({ texts }: Reads): (instance: GpuInstance) => GpuInstance {
  const contents = new SharedContents();
  return (instance) => contents.share(texts ? instance : { ...instance, spec: slimSpec(instance.spec) });
}

const MODEL_SERVER = 'berth.dev/model-server=true';

/** Every cache. The roles of one process share them, so each cache has the indexes of all its readers. */
export const CACHES = {
  instances: cache({ type: GPU_INSTANCES, indexers: INDEXES.instances, createPrune: pruneInstances }),
  sshKeys: cache({ type: SSH_KEYS, indexers: INDEXES.sshKeys }),
  templates: cache({ type: INSTANCE_TEMPLATES, indexers: INDEXES.templates }),
  registries: cache({ type: REGISTRY_CREDENTIALS, indexers: INDEXES.registries }),
  webhooks: cache({ type: WEBHOOKS, indexers: INDEXES.webhooks }),
  histories: cache({ type: INSTANCE_HISTORIES, indexers: INDEXES.histories }),
  apiKeys: cache({ type: API_KEYS, indexers: INDEXES.apiKeys }),
  pools: cache({ type: GPU_POOLS }),
  tenantPolicies: cache({ type: TENANT_POLICIES }),
  tenantLimits: cache({ type: TENANT_LIMITS, indexers: INDEXES.tenantLimits }),
  nodes: cache({ type: NODES, prune: pruneNode }),
  pods: cache({ type: PODS, indexers: INDEXES.pods, prune: prunePod }),
  disks: cache({ type: PERSISTENT_VOLUME_CLAIMS, indexers: INDEXES.disks, prune: pruneDisk }),
  namespaces: cache({ type: NAMESPACES }),
  quotas: cache({ type: RESOURCE_QUOTAS, indexers: INDEXES.quotas }),
  storageClasses: cache({ type: STORAGE_CLASSES }),
  resourceSlices: cache({ type: RESOURCE_SLICES, isOptional: true }),
  deviceClasses: cache({ type: DEVICE_CLASSES, isOptional: true }),
  resourceClaims: cache({ type: RESOURCE_CLAIMS, isOptional: true }),
  deviceTaintRules: cache({ type: DEVICE_TAINT_RULES, isOptional: true, earlierVersion: EARLIER_TAINT_RULES }),
  networkPolicies: cache({ type: NETWORK_POLICIES, indexers: INDEXES.networkPolicies }),
  services: cache({ type: SERVICES, labelSelector: MODEL_SERVER }),
  slices: cache({ type: ENDPOINT_SLICES, labelSelector: MODEL_SERVER }),
  inferencePools: cache({ type: INFERENCE_POOLS, labelSelector: MODEL_SERVER, isOptional: true }),
  modelServers: cache({ type: MODEL_SERVERS, isOwn: true }),
  modelLeases: cache({ type: LEASES, labelSelector: `${MODEL_LEASE_LABEL}=true`, isOwn: true }),
};

/** What Dynamic Resource Allocation keeps of devices. */
export const DEVICE_CACHES = [
  'resourceSlices',
  'deviceClasses',
  'resourceClaims',
  'deviceTaintRules',
] as const satisfies CacheName[];

export type CacheName = keyof typeof CACHES;
export type CachedObject<N extends CacheName> = (typeof CACHES)[N] extends CacheDefinition<infer T> ? T : never;
