import { podTarget, runningPod, type PodTarget } from '../access/pod-target.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import { keyOf, type KubeObject, type Pod } from '../kube/types.ts';
import type { GpuInstance } from '../resources/gpu-instance.ts';
import { numericId } from '../resources/ids.ts';
import { instanceState } from '../resources/instance-state.ts';
import type { SshKey } from '../resources/ssh-key.ts';
import { parseAuthorizedKey, type AuthorizedKey } from './login/authorized-key.ts';
import type { InstanceUser } from './login/user-name.ts';

export interface InstanceView {
  namespace: string;
  name: string;
  uid: string;
  /** Where sessions run; undefined when no container of the instance runs. */
  target: PodTarget | undefined;
  /** Why there is no target, to be read after "instance i-... is". */
  condition: string;
}

/** What the gateway knows of instances and keys. Reads are live: use an answer for one decision and do not keep it. */
export interface InstanceDirectory {
  /** Undefined when there is no such instance, or several namespaces have one of this name and the user gave none. */
  find(user: InstanceUser): InstanceView | undefined;
  /** Every usable key of the instance's namespace. */
  tenantKeys(instance: InstanceView): Iterable<AuthorizedKey>;
  /** Whether one of those opens this instance. */
  opens(key: AuthorizedKey, instance: InstanceView): boolean;
  /** Calls back with a namespace whose keys or instances changed. Returns the unsubscribe function. */
  onChange(listener: (namespace: string) => void): () => void;
}

export interface DirectoryStores {
  instances: ReadStore<GpuInstance>;
  keys: ReadStore<SshKey>;
  pods: ReadStore<Pod>;
}

/** Values by two keys. */
class Index<T> {
  readonly #groups = new Map<string, Map<string, T>>();

  group(name: string): ReadonlyMap<string, T> {
    return this.#groups.get(name) ?? new Map<string, T>();
  }

  set(group: string, key: string, value: T): void {
    const members = this.#groups.get(group) ?? new Map<string, T>();
    this.#groups.set(group, members.set(key, value));
  }

  delete(group: string, key: string): void {
    const members = this.#groups.get(group);
    members?.delete(key);
    if (members?.size === 0) this.#groups.delete(group);
  }
}

function namespaceOf(object: KubeObject): string {
  return object.metadata.namespace ?? '';
}

function targetOf(instance: GpuInstance, pods: ReadStore<Pod>): PodTarget | undefined {
  const pod = runningPod(instance, pods);
  return pod === undefined || pod.metadata.deletionTimestamp !== undefined ? undefined : podTarget(pod);
}

/** The directory over watch caches. */
export class StoreDirectory implements InstanceDirectory {
  readonly #stores: DirectoryStores;
  /** By name and namespace. */
  readonly #instances = new Index<GpuInstance>();
  /** By namespace and key in the store. */
  readonly #keys = new Index<AuthorizedKey>();
  readonly #listeners = new Set<(namespace: string) => void>();

  constructor(stores: DirectoryStores) {
    this.#stores = stores;
    for (const key of stores.keys.values()) this.#noteKey(keyOf(key), key);
    for (const instance of stores.instances.values()) this.#noteInstance(undefined, instance);
    stores.keys.onChange(({ key, before, after }) => {
      this.#noteKey(key, after);
      this.#announce(after ?? before);
    });
    stores.instances.onChange(({ before, after }) => {
      this.#noteInstance(before, after);
      this.#announce(after ?? before);
    });
  }

  find({ instance: name, namespace }: InstanceUser): InstanceView | undefined {
    const members = this.#instances.group(name);
    if (namespace === undefined && members.size !== 1) return undefined;
    const instance = namespace === undefined ? members.values().next().value : members.get(namespace);
    if (instance === undefined) return undefined;
    const { state, message } = instanceState(instance);
    return {
      namespace: namespaceOf(instance),
      name,
      uid: instance.metadata.uid ?? '',
      target: targetOf(instance, this.#stores.pods),
      condition: message === '' ? state : `${state}: ${message}`,
    };
  }

  tenantKeys({ namespace }: InstanceView): Iterable<AuthorizedKey> {
    return this.#keys.group(namespace).values();
  }

  opens(key: AuthorizedKey, { namespace, name }: InstanceView): boolean {
    const instance = this.#stores.instances.get(`${namespace}/${name}`);
    const known = this.#keys.group(namespace).get(key.resource);
    if (instance === undefined || known?.fingerprint !== key.fingerprint) return false;
    const ids = instance.spec.sshKeyIds ?? [];
    return ids.length === 0 || ids.includes(key.id);
  }

  onChange(listener: (namespace: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #noteKey(resource: string, after: SshKey | undefined): void {
    const namespace = resource.slice(0, Math.max(0, resource.indexOf('/')));
    this.#keys.delete(namespace, resource);
    // A key that is being deleted opens nothing more: a finalizer must not keep it working.
    if (after === undefined || after.metadata.deletionTimestamp !== undefined) return;
    const parsed = parseAuthorizedKey(after.spec.publicKey, resource, numericId(after.metadata.uid ?? ''));
    if (parsed !== undefined) this.#keys.set(namespace, resource, parsed);
  }

  #noteInstance(before: GpuInstance | undefined, after: GpuInstance | undefined): void {
    if (before !== undefined) this.#instances.delete(before.metadata.name, namespaceOf(before));
    if (after !== undefined) this.#instances.set(after.metadata.name, namespaceOf(after), after);
  }

  #announce(object: KubeObject | undefined): void {
    if (object === undefined) return;
    for (const listener of this.#listeners) listener(namespaceOf(object));
  }
}
