import type {
  CoreV1Event,
  V1Condition,
  V1Container,
  V1CustomResourceDefinition,
  V1EndpointSlice,
  V1Lease,
  V1Namespace,
  V1Node,
  V1ObjectMeta,
  V1OwnerReference,
  V1PersistentVolume,
  V1PersistentVolumeClaim,
  V1Pod,
  V1PriorityClass,
  V1ResourceQuota,
  V1Secret,
  V1Service,
  V1StorageClass,
} from '@kubernetes/client-node';

/**
 * A client-node model as JSON has it (RFC 3339 dates, `default` for `_default`): Berth skips the deserialiser, which drops
 * newer fields.
 */
export type Wire<T> = T extends Date
  ? string
  : T extends readonly (infer U)[]
    ? Wire<U>[]
    : T extends object
      ? { [K in keyof T as K extends `_${infer Name}` ? Name : K]: Wire<T[K]> }
      : T;

export type ObjectMeta = Wire<V1ObjectMeta>;
export type OwnerReference = V1OwnerReference;

/** What every object read from the API server has. */
export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta & { name: string };
}

/** An object as the API server sends it. */
export type Served<T extends { metadata?: V1ObjectMeta }> = Omit<Wire<T>, 'metadata'> & KubeObject;

export type Pod = Served<V1Pod>;
export type Node = Served<V1Node>;
export type Namespace = Served<V1Namespace>;
export type Secret = Served<V1Secret>;
export type Service = Served<V1Service>;
export type EndpointSlice = Served<V1EndpointSlice>;
export type PersistentVolume = Served<V1PersistentVolume>;
export type PersistentVolumeClaim = Served<V1PersistentVolumeClaim>;
export type StorageClass = Served<V1StorageClass>;
export type PriorityClass = Served<V1PriorityClass>;
export type ResourceQuota = Served<V1ResourceQuota>;
export type Lease = Served<V1Lease>;
export type Event = Served<CoreV1Event>;
export type CustomResourceDefinition = Served<V1CustomResourceDefinition>;
export type Container = Wire<V1Container>;
export type Condition = Wire<V1Condition>;

/** One kind of resource as the API server routes it, with the type of its objects. */
export interface ResourceType<T extends KubeObject = KubeObject> {
  /** API group, the empty string for core. */
  group: string;
  version: string;
  kind: string;
  plural: string;
  namespaced: boolean;
  /** Never set: carries the object type for inference. */
  readonly _object?: T;
}

/** A kind whose version is v1. */
export function v1<T extends KubeObject>(
  group: string,
  kind: string,
  plural: string,
  namespaced = true,
): ResourceType<T> {
  return { group, version: 'v1', kind, plural, namespaced };
}

export const PODS = v1<Pod>('', 'Pod', 'pods');
export const NODES = v1<Node>('', 'Node', 'nodes', false);
export const NAMESPACES = v1<Namespace>('', 'Namespace', 'namespaces', false);
export const SECRETS = v1<Secret>('', 'Secret', 'secrets');
export const SERVICES = v1<Service>('', 'Service', 'services');
export const EVENTS = v1<Event>('', 'Event', 'events');
export const RESOURCE_QUOTAS = v1<ResourceQuota>('', 'ResourceQuota', 'resourcequotas');
export const PERSISTENT_VOLUME_CLAIMS = v1<PersistentVolumeClaim>(
  '',
  'PersistentVolumeClaim',
  'persistentvolumeclaims',
);
export const PERSISTENT_VOLUMES = v1<PersistentVolume>('', 'PersistentVolume', 'persistentvolumes', false);
export const STORAGE_CLASSES = v1<StorageClass>('storage.k8s.io', 'StorageClass', 'storageclasses', false);
export const PRIORITY_CLASSES = v1<PriorityClass>('scheduling.k8s.io', 'PriorityClass', 'priorityclasses', false);
export const ENDPOINT_SLICES = v1<EndpointSlice>('discovery.k8s.io', 'EndpointSlice', 'endpointslices');
export const LEASES = v1<Lease>('coordination.k8s.io', 'Lease', 'leases');
export const CUSTOM_RESOURCE_DEFINITIONS = v1<CustomResourceDefinition>(
  'apiextensions.k8s.io',
  'CustomResourceDefinition',
  'customresourcedefinitions',
  false,
);

/** Name and, for namespaced kinds, namespace of one object. */
export interface ObjectRef {
  namespace?: string | undefined;
  name: string;
}

/** `namespace/name`, or `name` for cluster-scoped objects: the key of stores and work queues. */
export function keyOf(object: KubeObject | ObjectRef): string {
  const { namespace, name } = 'metadata' in object ? object.metadata : object;
  return namespace === undefined ? name : `${namespace}/${name}`;
}

/** Inverse of {@link keyOf}. */
export function refOf(key: string): ObjectRef {
  const slash = key.indexOf('/');
  return slash < 0 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}
