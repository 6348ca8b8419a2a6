import {
  DAEMON_SETS,
  DEPLOYMENTS,
  MUTATING_WEBHOOKS,
  POD_MONITORS,
  RUNTIME_CLASSES,
  SERVICE_CIDRS,
  SERVICE_MONITORS,
  VALIDATING_BINDINGS,
  VALIDATING_POLICIES,
  VALIDATING_WEBHOOKS,
} from '../kube/installation-types.ts';
import {
  ADMIN_POLICIES,
  ANTREA_CLUSTER_POLICIES,
  ANTREA_POLICIES,
  CALICO_CLUSTER_POLICIES,
  CALICO_POLICIES,
  CILIUM_CLUSTER_POLICIES,
  CILIUM_POLICIES,
  CLUSTER_POLICIES,
  NETWORK_POLICIES,
} from '../kube/network-policy.ts';
import type { ListOptions } from '../kube/client/client.ts';
import { DEVICE_CLASSES, RESOURCE_SLICES } from '../kube/devices.ts';
import {
  CUSTOM_RESOURCE_DEFINITIONS,
  ENDPOINT_SLICES,
  type KubeObject,
  LEASES,
  NAMESPACES,
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  type PersistentVolumeClaim,
  type Pod,
  PODS,
  RESOURCE_QUOTAS,
  type ResourceType,
  SERVICES,
  STORAGE_CLASSES,
} from '../kube/types.ts';
import { pick } from '../lib/json.ts';
import { activityLeaseOf } from '../resources/activity-lease.ts';
import { API_KEYS } from '../resources/api-key.ts';
import { GPU_POOLS } from '../resources/gpu-pool.ts';
import { CUSTOM_RESOURCES } from '../resources/index.ts';
import { GPU_INSTANCES, type GpuInstance } from '../resources/instances/gpu-instance.ts';
import { RETAINED_LABEL } from '../resources/pod/disk.ts';
import { GROUP } from '../resources/schema.ts';
import { TENANT_LIMIT_NAME, type TenantLimit, TENANT_LIMITS } from '../resources/tenants/tenant-limit.ts';
import { TENANT_POLICIES } from '../resources/tenants/tenant-policy.ts';
import { CONTROLLER_LEASE, NOTIFIER_LEASE } from '../runtime/lease-record.ts';

/** What is read of one kind. */
export interface Source<T extends KubeObject = KubeObject> {
  type: ResourceType<T>;
  options: ListOptions;
  /** Only the objects of these names, each by a call of its own: of kinds whose lists are long. */
  names?: readonly string[];
  /** What is kept of an object of which there may be tens of thousands. */
  keep?: (object: T) => T;
}

function source<T extends KubeObject>(
  type: ResourceType<T>,
  options: ListOptions = {},
  more: Pick<Source<T>, 'names' | 'keep'> = {},
): Source<T> {
  return { type, options, ...more };
}

const OURS = { labelSelector: 'app.kubernetes.io/part-of=berth' };
const IN_TENANTS = { fieldSelector: `metadata.name=${TENANT_LIMIT_NAME}` };

/** Disks that were kept have the label, and so have those that a backup brings back while their instances are not there. */
const KEPT = { labelSelector: RETAINED_LABEL };

function keepDisk({ metadata, spec }: PersistentVolumeClaim): PersistentVolumeClaim {
  const requests = spec?.resources?.requests;
  return {
    metadata: pick(metadata, ['name', 'namespace', 'labels', 'annotations', 'deletionTimestamp']),
    ...(requests !== undefined && { spec: { resources: { requests } } }),
  };
}

/** The one ceiling that a check compares. */
function keepCeiling({ metadata, spec }: TenantLimit): TenantLimit {
  return { metadata: pick(metadata, ['name', 'namespace']), spec: pick(spec ?? {}, ['diskGb']) as TenantLimit['spec'] };
}

/** A quarantine follows from the failures in the statuses, and from who wants GPUs. A network of pods has the address. */
function keepInstance({ metadata, spec, status }: GpuInstance): GpuInstance {
  return {
    metadata: pick(metadata, ['name', 'namespace', 'uid', 'resourceVersion']),
    spec: pick(spec, ['powerState', 'startRequest']) as GpuInstance['spec'],
    ...(status !== undefined && {
      status: pick(status, ['failures', 'ending', 'startRequests', 'podIP']) as NonNullable<GpuInstance['status']>,
    }),
  };
}

function keepAddresses({ metadata, spec, status }: Pod): Pod {
  return {
    metadata: pick(metadata, ['name', 'namespace']),
    ...(spec !== undefined && { spec: pick(spec, ['hostNetwork']) as NonNullable<Pod['spec']> }),
    ...(status !== undefined && { status: pick(status, ['podIPs']) as NonNullable<Pod['status']> }),
  };
}

/** Everything that is read. No Secret is. */
export const SOURCES = {
  nodes: source(NODES),
  resourceSlices: source(RESOURCE_SLICES),
  deviceClasses: source(DEVICE_CLASSES),
  pools: source(GPU_POOLS),
  instances: source(GPU_INSTANCES, {}, { keep: keepInstance }),
  keptDisks: source(PERSISTENT_VOLUME_CLAIMS, KEPT, { keep: keepDisk }),
  tenantPolicies: source(TENANT_POLICIES),
  tenantLimits: source(TENANT_LIMITS, IN_TENANTS, { keep: keepCeiling }),
  quotas: source(RESOURCE_QUOTAS, { ...IN_TENANTS, metadataOnly: true }),
  namespaces: source(NAMESPACES, { metadataOnly: true }),
  storageClasses: source(STORAGE_CLASSES),
  runtimeClasses: source(RUNTIME_CLASSES),
  definitions: source(
    CUSTOM_RESOURCE_DEFINITIONS,
    {},
    { names: CUSTOM_RESOURCES.map(({ plural }) => `${plural}.${GROUP}`) },
  ),
  deployments: source(DEPLOYMENTS, OURS),
  daemonSets: source(DAEMON_SETS),
  exporters: source(PODS, { labelSelector: 'app=nvidia-dcgm-exporter' }),
  leases: source(LEASES, { fieldSelector: `metadata.name=${CONTROLLER_LEASE}` }),
  notifierLeases: source(LEASES, { fieldSelector: `metadata.name=${NOTIFIER_LEASE}` }),
  sshReports: source(LEASES, { fieldSelector: `metadata.name=${activityLeaseOf('ssh')}` }),
  apiReports: source(LEASES, { fieldSelector: `metadata.name=${activityLeaseOf('api')}` }),
  nodeLeases: source(LEASES, { namespace: 'kube-node-lease' }),
  ownServices: source(SERVICES, OURS),
  serviceMonitors: source(SERVICE_MONITORS),
  podMonitors: source(POD_MONITORS),
  validatingWebhooks: source(VALIDATING_WEBHOOKS),
  mutatingWebhooks: source(MUTATING_WEBHOOKS),
  policies: source(VALIDATING_POLICIES, OURS),
  bindings: source(VALIDATING_BINDINGS, OURS),
  networkPolicies: source(NETWORK_POLICIES),
  ciliumPolicies: source(CILIUM_POLICIES),
  ciliumClusterPolicies: source(CILIUM_CLUSTER_POLICIES),
  calicoPolicies: source(CALICO_POLICIES),
  calicoClusterPolicies: source(CALICO_CLUSTER_POLICIES),
  antreaPolicies: source(ANTREA_POLICIES),
  antreaClusterPolicies: source(ANTREA_CLUSTER_POLICIES),
  adminPolicies: source(ADMIN_POLICIES),
  clusterPolicies: source(CLUSTER_POLICIES),
  ownPods: source(PODS, OURS, { keep: keepAddresses }),
  serviceNetworks: source(SERVICE_CIDRS),
  apiServerService: source(SERVICES, { namespace: 'default', fieldSelector: 'metadata.name=kubernetes' }),
  apiServers: source(ENDPOINT_SLICES, { namespace: 'default', labelSelector: 'kubernetes.io/service-name=kubernetes' }),
  apiKeys: source(API_KEYS, { metadataOnly: true }),
};

export type SourceName = keyof typeof SOURCES;
type ObjectOf<S> = S extends Source<infer T> ? T : never;

/** The objects of each kind. */
export type Objects = { readonly [N in SourceName]: readonly ObjectOf<(typeof SOURCES)[N]>[] };

/** Why a kind could not be read. */
export interface Unread {
  message: string;
  /** The right that is missing, as `kubectl auth can-i` takes it; undefined when it is not for lack of a right. */
  right: string | undefined;
}

/** What was read of the cluster. */
export interface Snapshot {
  objects: Objects;
  /** Kinds that could not be read; their lists are empty. */
  unread: ReadonlyMap<SourceName, Unread>;
  /** Kinds that the API server does not know; their lists are empty. */
  absent: ReadonlySet<SourceName>;
}
