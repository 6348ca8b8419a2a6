import { podTarget, runningPod, type PodTarget } from '../access/pod-target.ts';
import type { Tenants } from '../access/tenants.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import { keyOf, type KubeObject, type Pod } from '../kube/types.ts';
import type { GpuInstance } from '../resources/instances/gpu-instance.ts';
import { instanceState } from '../resources/instances/instance-state.ts';
import { fingerprintKey, type SshKey, sshKeyId } from '../resources/ssh-key.ts';
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
  /**
   * Undefined when there is no such instance. A name without a namespace is that of the instance whose record published
   * it so.
   */
  find(user: InstanceUser): InstanceView | undefined;
  /** The usable keys of the instance's namespace that have this fingerprint: first those that open the instance. */
  tenantKeys(instance: InstanceView, fingerprint: string): Iterable<AuthorizedKey>;
  /** Whether one of those opens this instance. */
  opens(key: AuthorizedKey, instance: InstanceView): boolean;
  /** Why nobody enters the instances of a namespace, whatever keys they have; undefined for a tenant's. */
  closed(namespace: string): string | undefined;
  /** Calls back with a namespace that changed, or whose keys or instances did. Returns the unsubscribe function. */
  onChange(listener: (namespace: string) => void): () => void;
}

export interface DirectoryStores {
  /** Indexed by bare logins. */
  instances: ReadStore<GpuInstance>;
  /** Indexed by fingerprint. */
  keys: ReadStore<SshKey>;
  pods: ReadStore<Pod>;
  tenants: Pick<Tenants, 'refusal' | 'onChange'>;
}

function namespaceOf(object: KubeObject): string {
  return object.metadata.namespace ?? '';
}

function createdAt({ metadata }: KubeObject): number {
  return Date.parse(metadata.creationTimestamp ?? '') || 0;
}

function conditionOf(instance: GpuInstance): string {
  if (instance.status?.claim?.simulated === true) {
    return 'on a simulated node: nothing runs there, so there is nothing to log in to.';
  }
  const { state, message } = instanceState(instance);
  return message === '' ? state : `${state}: ${message}`;
}

function targetOf(instance: GpuInstance, pods: ReadStore<Pod>): PodTarget | undefined {
  if (instance.status?.claim?.simulated === true) return undefined;
  const pod = runningPod(instance, pods);
  return pod === undefined || pod.metadata.deletionTimestamp !== undefined ? undefined : podTarget(pod);
}

/** Whether the key with this id opens the instance, as its spec says. */
function isNamed({ spec }: GpuInstance, id: number): boolean {
  const ids = spec.sshKeyIds ?? [];
  return ids.length === 0 || ids.includes(id);
}

export class StoreDirectory implements InstanceDirectory {
  readonly #stores: DirectoryStores;
  /** What was read from each SSHKey. A store replaces its objects and never changes them. */
  readonly #parsed = new WeakMap<SshKey, { key: AuthorizedKey | undefined }>();

  constructor(stores: DirectoryStores) {
    this.#stores = stores;
  }

  find({ instance: name, namespace }: InstanceUser): InstanceView | undefined {
    const instance =
      namespace === undefined ? this.#published(name) : this.#stores.instances.get(keyOf({ namespace, name }));
    if (instance === undefined) return undefined;
    return {
      namespace: namespaceOf(instance),
      name,
      uid: instance.metadata.uid ?? '',
      target: targetOf(instance, this.#stores.pods),
      condition: conditionOf(instance),
    };
  }

  /**
   * The instance whose record published its bare name as the login, as records once did for names that Berth had made.
   * The controller alone writes it, and never for a new instance. So an instance that another tenant gives the name
   * neither blocks the login nor gets its sessions, whatever keys it has. Of several from that time the oldest has it.
   */
  #published(name: string): GpuInstance | undefined {
    const [oldest, next] = this.#stores.instances.by('bareLogin', name).toSorted((a, b) => createdAt(a) - createdAt(b));
    return oldest !== undefined && next !== undefined && createdAt(oldest) === createdAt(next) ? undefined : oldest;
  }

  /** A tenant may store one key a thousand times: each is read when those before it were of no use. */
  *tenantKeys({ namespace, name }: InstanceView, fingerprint: string): Generator<AuthorizedKey> {
    const instance = this.#stores.instances.get(keyOf({ namespace, name }));
    const found = this.#stores.keys.by('fingerprint', fingerprintKey(namespace, fingerprint));
    const { opening = [], others = [] } = Object.groupBy(found, (key) =>
      instance !== undefined && isNamed(instance, sshKeyId(key)) ? 'opening' : 'others',
    );
    for (const key of [...opening, ...others]) {
      const read = this.#read(key);
      if (read !== undefined) yield read;
    }
  }

  opens(key: AuthorizedKey, { namespace, name }: InstanceView): boolean {
    const instance = this.#stores.instances.get(`${namespace}/${name}`);
    const registered = this.#stores.keys.get(key.resource);
    if (instance === undefined || registered?.metadata.namespace !== namespace) return false;
    if (this.#read(registered)?.fingerprint !== key.fingerprint) return false;
    return isNamed(instance, key.id);
  }

  closed(namespace: string): string | undefined {
    return this.#stores.tenants.refusal(namespace);
  }

  onChange(listener: (namespace: string) => void): () => void {
    const onObject = ({ before, after }: { before: KubeObject | undefined; after: KubeObject | undefined }): void => {
      const object = after ?? before;
      if (object !== undefined) listener(namespaceOf(object));
    };
    const { keys, instances, tenants } = this.#stores;
    const unsubscribe = [keys.onChange(onObject), instances.onChange(onObject), tenants.onChange(listener)];
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
    const parsed = parseAuthorizedKey(spec.publicKey, keyOf(key), sshKeyId(key));
    this.#parsed.set(key, { key: parsed });
    return parsed;
  }
}
