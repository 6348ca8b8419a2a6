import type { TenantId } from '../../../access/tenants.ts';
import { compareVersions } from '../../../kube/watch/resource-version.ts';
import type { ReadStore, StoreChange } from '../../../kube/watch/store.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import type { StreamEvent } from '../../interface/events/event-stream.ts';
import { Ring } from '../../interface/events/ring.ts';
import { byAge } from '../../interface/objects.ts';
import { freeTextOf } from './free-text.ts';
import type { InstancePresenter } from './presenter.ts';

/** Changes that are remembered, of all tenants together. A client that missed more gets everything anew. */
const REMEMBERED = 4096;
/** Characters of free text in them. Each version of an instance has its own copy. */
const REMEMBERED_TEXT = 32 * 1024 * 1024;

/** What a stream follows: the instances of a namespace, or one of them. */
export interface Followed {
  namespace: string;
  name?: string;
}

interface Entry {
  /** The version of the cache after the change, and the id of the event: ordered, and the same on every replica. */
  version: string;
  namespace: string;
  /** What stood for the tenant then: another one may have the namespace later. */
  tenant: string;
  name: string;
  instance: GpuInstance | undefined;
}

interface Follower {
  followed: Followed;
  /** The last version that this follower has. */
  version: string;
  send: (event: StreamEvent) => void;
}

function isNewer(version: string, than: string): boolean {
  return (compareVersions(version, than) ?? 1) > 0;
}

/**
 * Changes of instances as events. Their ids are resource versions, which all replicas share: a client may resume at any
 * replica, and a replica that is behind sends nothing twice.
 */
export class InstanceEvents {
  readonly #store: ReadStore<GpuInstance>;
  readonly #presenter: InstancePresenter;
  readonly #tenantId: TenantId;
  readonly #ring = new Ring<Entry>(REMEMBERED, {
    weigh: ({ instance }) => (instance === undefined ? 0 : freeTextOf(instance.spec)),
    most: REMEMBERED_TEXT,
  });
  /** By namespace. */
  readonly #followers = new Map<string, Set<Follower>>();
  readonly #stop: () => void;
  /** The ring has no changes up to this version. */
  #floor: string | undefined;

  constructor(store: ReadStore<GpuInstance>, presenter: InstancePresenter, tenantId: TenantId) {
    this.#store = store;
    this.#presenter = presenter;
    this.#tenantId = tenantId;
    this.#floor = store.hasSynced ? store.resourceVersion : undefined;
    this.#stop = store.onChange((change) => this.#onChange(change));
  }

  /** Calls `send` with the changes since `lastId`, or with everything, then with every change. Returns what ends it. */
  follow(followed: Followed, lastId: string | undefined, send: (event: StreamEvent) => void): () => void {
    const { namespace } = followed;
    const follower: Follower = { followed, version: this.#store.resourceVersion, send };
    if (lastId !== undefined && this.#canResume(lastId, namespace)) {
      follower.version = lastId;
      for (const entry of this.#ring.entries()) this.#deliver(follower, entry);
    } else {
      const data = this.#snapshot(followed);
      const type = lastId === undefined ? 'snapshot' : 'resync';
      if (data !== undefined) send({ type, id: this.#store.resourceVersion, data });
    }
    const followers = this.#followers.get(namespace) ?? new Set();
    this.#followers.set(namespace, followers.add(follower));
    return () => {
      followers.delete(follower);
      if (followers.size === 0) this.#followers.delete(namespace);
    };
  }

  close(): void {
    this.#stop();
  }

  #onChange({ before, after }: StoreChange<GpuInstance>): void {
    const { namespace = '', name = '' } = (after ?? before)?.metadata ?? {};
    const tenant = this.#tenantId(namespace);
    const entry: Entry = { version: this.#store.resourceVersion, namespace, tenant, name, instance: after };
    if (!this.#store.hasSynced) return;
    this.#floor ??= this.#store.resourceVersion;
    if (after !== undefined && before?.metadata.resourceVersion === after.metadata.resourceVersion) {
      return this.#onClaim(entry);
    }
    this.#ring.push(entry);
    const followers = this.#followers.get(namespace);
    if (followers === undefined) return;
    // Some writes change nothing that the record shows.
    if (before && after && this.#presenter.json(before) === this.#presenter.json(after)) return;
    for (const follower of followers) this.#deliver(follower, entry);
  }

  /** A claim on a pod is no version of the instance. A client that misses this event gets the version that follows it. */
  #onClaim(entry: Entry): void {
    for (const { followed, send } of this.#followers.get(entry.namespace) ?? []) {
      if (followed.name === undefined || followed.name === entry.name) send(this.#eventOf(entry));
    }
  }

  #deliver({ followed, version, send }: Follower, entry: Entry): void {
    if (followed.namespace !== entry.namespace) return;
    if (followed.name !== undefined && followed.name !== entry.name) return;
    if (isNewer(entry.version, version)) send(this.#eventOf(entry));
  }

  #eventOf({ version, name, instance }: Entry): StreamEvent {
    if (instance !== undefined) return { type: 'instance', id: version, data: this.#presenter.json(instance) };
    const data = JSON.stringify({ id: name, object: 'instance', deleted: true });
    return { type: 'deleted', id: version, data };
  }

  /** Undefined for an instance that the cache does not have yet: its first event will come. */
  #snapshot({ namespace, name }: Followed): string | undefined {
    const all = this.#store.by('namespace', namespace);
    const followed = all.filter(({ metadata }) => name === undefined || metadata.name === name);
    const items = followed.toSorted(byAge).map((one) => this.#presenter.json(one));
    return name === undefined ? `{"object":"list","data":[${items.join(',')}]}` : items[0];
  }

  #canResume(lastId: string, namespace: string): boolean {
    const oldest = this.#ring.forgotten?.version ?? this.#floor;
    if (!/^[0-9]{1,20}$/.test(lastId) || oldest === undefined || isNewer(oldest, lastId)) return false;
    const tenant = this.#tenantId(namespace);
    return this.#ring
      .entries()
      .every((one) => one.namespace !== namespace || one.tenant === tenant || !isNewer(one.version, lastId));
  }
}
