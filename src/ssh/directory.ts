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
  /** Indexed by name. */
  instances: ReadStore<GpuInstance>;
  /** Indexed by namespace. */
  keys: ReadStore<SshKey>;
  pods: ReadStore<Pod>;
}

function namespaceOf(object: KubeObject): string {
  return object.metadata.namespace ?? '';
}

function targetOf(instance: GpuInstance, pods: ReadStore<Pod>): PodTarget | undefined {
  const pod = runningPod(instance, pods);
  return pod === undefined || pod.metadata.deletionTimestamp !== undefined ? undefined : podTarget(pod);
}

export class StoreDirectory implements InstanceDirectory {
  readonly #stores: DirectoryStores;
  /** What was read from each SSHKey. A store replaces its objects and never changes them. */
  readonly #parsed = new WeakMap<SshKey, { key: AuthorizedKey | undefined }>();

  constructor(stores: DirectoryStores) {
    this.#stores = stores;
  }

  find({ instance: name, namespace }: InstanceUser): InstanceView | undefined {
    const found = this.#stores.instances.by('name', name);
    const matching = namespace === undefined ? found : found.filter((each) => namespaceOf(each) === namespace);
    const [instance] = matching;
    if (instance === undefined || matching.length > 1) return undefined;
    const { state, message } = instanceState(instance);
    return {
      namespace: namespaceOf(instance),
      name,
      uid: instance.metadata.uid ?? '',
      target: targetOf(instance, this.#stores.pods),
      condition: message === '' ? state : `${state}: ${message}`,
    };
  }

  tenantKeys({ namespace }: InstanceView): AuthorizedKey[] {
    return this.#stores.keys.by('namespace', namespace).flatMap((key) => this.#read(key) ?? []);
  }

  opens(key: AuthorizedKey, { namespace, name }: InstanceView): boolean {
    const instance = this.#stores.instances.get(`${namespace}/${name}`);
    const registered = this.#stores.keys.get(key.resource);
    if (instance === undefined || registered?.metadata.namespace !== namespace) return false;
    if (this.#read(registered)?.fingerprint !== key.fingerprint) return false;
    const ids = instance.spec.sshKeyIds ?? [];
    return ids.length === 0 || ids.includes(key.id);
  }

  onChange(listener: (namespace: string) => void): () => void {
    const onObject = ({ before, after }: { before: KubeObject | undefined; after: KubeObject | undefined }): void => {
      const object = after ?? before;
      if (object !== undefined) listener(namespaceOf(object));
    };
    const unsubscribe = [this.#stores.keys.onChange(onObject), this.#stores.instances.onChange(onObject)];
    return () => {
      for (const end of unsubscribe) end();
    };
  }

  #read(key: SshKey): AuthorizedKey | undefined {
    const { metadata, spec } = key;
    // A key that is being deleted opens nothing more: a finalizer must not keep it working.
    if (metadata.deletionTimestamp !== undefined) return undefined;
    const known = this.#parsed.get(key);
    if (known !== undefined) return known.key;
    const parsed = parseAuthorizedKey(spec.publicKey, keyOf(key), numericId(metadata.uid ?? ''));
    this.#parsed.set(key, { key: parsed });
    return parsed;
  }
}
