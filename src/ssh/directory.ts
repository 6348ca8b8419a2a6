import type { ExecTarget } from '../kube/streams/exec.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import { keyOf, type KubeObject, type Pod } from '../kube/types.ts';
import type { GpuInstance } from '../resources/gpu-instance.ts';
import { numericId } from '../resources/ids.ts';
import { instanceState } from '../resources/instance-state.ts';
import type { SshKey } from '../resources/ssh-key.ts';
import { hasTools, MAIN_CONTAINER } from '../resources/pod/tools-volume.ts';
import { parseAuthorizedKey, type AuthorizedKey } from './login/authorized-key.ts';
import type { InstanceUser } from './login/user-name.ts';

/** A pod that sessions run in. */
export interface PodTarget extends ExecTarget {
  uid: string;
  /** Whether the tools volume is mounted. */
  tools: boolean;
}

export interface InstanceView {
  namespace: string;
  name: string;
  uid: string;
  /** Where sessions run; undefined when no container of the instance runs. */
  target: PodTarget | undefined;
  /** Why there is no target, to be read after "instance i-... is". */
  condition: string;
}

/** What the gateway knows of instances and keys. Reads are live: an answer is never kept beyond one decision. */
export interface InstanceDirectory {
  /** Undefined when there is none, or the id alone names several. */
  find(user: InstanceUser): InstanceView | undefined;
  /** Every usable key of the instance's namespace. */
  tenantKeys(instance: InstanceView): Iterable<AuthorizedKey>;
  /** Whether one of those opens this instance. */
  opens(key: AuthorizedKey, instance: InstanceView): boolean;
  /** Called with a namespace whose keys or instances changed. Returns the unsubscribe function. */
  onChange(listener: (namespace: string) => void): () => void;
}

export interface DirectoryStores {
  instances: ReadStore<GpuInstance>;
  keys: ReadStore<SshKey>;
  pods: ReadStore<Pod>;
}

type Index<T> = Map<string, Map<string, T>>;

function addTo<T>(index: Index<T>, group: string, key: string, value: T): void {
  const members = index.get(group) ?? new Map<string, T>();
  index.set(group, members.set(key, value));
}

function removeFrom<T>(index: Index<T>, group: string, key: string): void {
  const members = index.get(group);
  members?.delete(key);
  if (members?.size === 0) index.delete(group);
}

function namespaceOf(object: KubeObject): string {
  return object.metadata.namespace ?? '';
}

function targetOf(instance: GpuInstance, pods: ReadStore<Pod>): PodTarget | undefined {
  const namespace = namespaceOf(instance);
  const podName = instance.status?.podName;
  if (podName === undefined || instance.metadata.deletionTimestamp !== undefined) return undefined;
  const pod = pods.get(`${namespace}/${podName}`);
  if (pod === undefined || pod.metadata.deletionTimestamp !== undefined) return undefined;
  const main = pod.status?.containerStatuses?.find(({ name }) => name === MAIN_CONTAINER);
  if (main?.state?.running === undefined) return undefined;
  return { namespace, pod: podName, container: MAIN_CONTAINER, uid: pod.metadata.uid ?? '', tools: hasTools(pod) };
}

function viewOf(instance: GpuInstance, pods: ReadStore<Pod>): InstanceView {
  const { state, message } = instanceState(instance);
  return {
    namespace: namespaceOf(instance),
    name: instance.metadata.name,
    uid: instance.metadata.uid ?? '',
    target: targetOf(instance, pods),
    condition: message === '' ? state : `${state}: ${message}`,
  };
}

/** The directory over watch caches. */
export function storeDirectory(stores: DirectoryStores): InstanceDirectory {
  const namesakes: Index<GpuInstance> = new Map();
  const keys: Index<AuthorizedKey> = new Map();
  const listeners = new Set<(namespace: string) => void>();
  const tell = (namespace: string): void => {
    for (const listener of listeners) listener(namespace);
  };
  const noteKey = (resource: string, after: SshKey | undefined): void => {
    const namespace = resource.slice(0, Math.max(0, resource.indexOf('/')));
    removeFrom(keys, namespace, resource);
    // A key that is being deleted is gone for us: finalizers of others must not keep it working.
    if (after === undefined || after.metadata.deletionTimestamp !== undefined) return;
    const parsed = parseAuthorizedKey(after.spec.publicKey, resource, numericId(after.metadata.uid ?? ''));
    if (parsed !== undefined) addTo(keys, namespace, resource, parsed);
  };
  for (const key of stores.keys.values()) noteKey(keyOf(key), key);
  for (const instance of stores.instances.values()) {
    addTo(namesakes, instance.metadata.name, namespaceOf(instance), instance);
  }
  stores.keys.onChange(({ key, before, after }) => {
    noteKey(key, after);
    const object = after ?? before;
    if (object !== undefined) tell(namespaceOf(object));
  });
  stores.instances.onChange(({ before, after }) => {
    if (before !== undefined) removeFrom(namesakes, before.metadata.name, namespaceOf(before));
    if (after !== undefined) addTo(namesakes, after.metadata.name, namespaceOf(after), after);
    const object = after ?? before;
    if (object !== undefined) tell(namespaceOf(object));
  });
  return {
    find: ({ instance, namespace }) => {
      const members = namesakes.get(instance);
      if (namespace === undefined && members?.size !== 1) return undefined;
      const found = namespace === undefined ? members?.values().next().value : members?.get(namespace);
      return found === undefined ? undefined : viewOf(found, stores.pods);
    },
    tenantKeys: ({ namespace }) => keys.get(namespace)?.values() ?? [],
    opens: (key, { namespace, name }) => {
      const instance = stores.instances.get(`${namespace}/${name}`);
      if (instance === undefined || keys.get(namespace)?.get(key.resource)?.fingerprint !== key.fingerprint)
        return false;
      const ids = instance.spec.sshKeyIds ?? [];
      return ids.length === 0 || ids.includes(key.id);
    },
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
