import type { ReadStore } from '../kube/watch/store.ts';
import type { Namespace, Node, PersistentVolumeClaim, Pod, ResourceQuota, StorageClass } from '../kube/types.ts';
import type { ApiKey } from '../resources/api-key.ts';
import type { GpuInstance } from '../resources/gpu-instance.ts';
import type { GpuPool } from '../resources/gpu-pool.ts';
import type { InstanceTemplate } from '../resources/instance-template.ts';
import type { SshKey } from '../resources/ssh-key.ts';

/** Every watch cache that the controllers read. */
export interface ControllerStores {
  instances: ReadStore<GpuInstance>;
  keys: ReadStore<SshKey>;
  templates: ReadStore<InstanceTemplate>;
  apiKeys: ReadStore<ApiKey>;
  pools: ReadStore<GpuPool>;
  nodes: ReadStore<Node>;
  pods: ReadStore<Pod>;
  disks: ReadStore<PersistentVolumeClaim>;
  namespaces: ReadStore<Namespace>;
  quotas: ReadStore<ResourceQuota>;
  storageClasses: ReadStore<StorageClass>;
}

/**
 * Names the instance that a pod belongs to. With the namespace: elsewhere its uid is only a word that anybody can write.
 */
export function instanceIndexKey(namespace = '', uid = ''): string {
  return `${namespace}/${uid}`;
}

/** Names of the indexes that the controllers look things up by. */
export const INDEX = {
  /** Pods by the key {@link instanceIndexKey} gives their instance. */
  instance: 'instance',
  /** Instances by the node of their claim; exporter pods by their node. */
  node: 'node',
  namespace: 'namespace',
  /** Instances by the reason of their Ready condition. */
  reason: 'reason',
} as const;
