import { compareVersions } from '../../kube/watch/resource-version.ts';
import type { ReadStore } from '../../kube/watch/store.ts';
import type { GpuInstance } from '../../resources/gpu-instance.ts';
import type { InstancePresenter } from '../records/instance-presenter.ts';
import { byAge } from '../tenant.ts';
import type { StreamEvent } from './event-stream.ts';
import { createRing } from './ring.ts';

/** Changes that are remembered, of all tenants together; a client that missed more gets everything anew. */
const REMEMBERED = 4096;

/** What a stream follows: the instances of a namespace, or one of them. */
export interface Scope {
  namespace: string;
  name?: string;
}

interface Entry {
  /** The version of the cache after the change; the id of the event. Ordered, and the same on every replica. */
  version: string;
  namespace: string;
  name: string;
  instance: GpuInstance | undefined;
}

export interface InstanceEvents {
  /** Calls `send` with what happened since `lastId`, or with everything, and then with every change. */
  follow(scope: Scope, lastId: string | undefined, send: (event: StreamEvent) => void): () => void;
  close(): void;
}

interface Follower {
  scope: Scope;
  /** The version this follower knows. */
  version: string;
  send: (event: StreamEvent) => void;
}

function isNewer(version: string, than: string): boolean {
  return (compareVersions(version, than) ?? 1) > 0;
}

/**
 * Changes of instances as events. Their ids are resource versions, which all replicas share: a client may resume at any
 * replica, and one that is behind sends nothing twice.
 */
export function createInstanceEvents(store: ReadStore<GpuInstance>, presenter: InstancePresenter): InstanceEvents {
  const ring = createRing<Entry>(REMEMBERED);
  const followers = new Map<string, Set<Follower>>();
  /** What happened up to here was never in the ring. */
  let floor: string | undefined = store.hasSynced ? store.resourceVersion : undefined;

  function eventOf({ version, name, instance }: Entry): StreamEvent {
    if (instance !== undefined) return { type: 'instance', id: version, data: presenter.json(instance) };
    const data = JSON.stringify({ id: name, object: 'instance', deleted: true });
    return { type: 'deleted', id: version, data };
  }

  function deliver(follower: Follower, entry: Entry): void {
    const { scope } = follower;
    if (scope.namespace !== entry.namespace || (scope.name !== undefined && scope.name !== entry.name)) return;
    if (!isNewer(entry.version, follower.version)) return;
    follower.send(eventOf(entry));
  }

  /** Undefined for an instance that the cache does not have yet: its first event will come. */
  function snapshot({ namespace, name }: Scope): string | undefined {
    const all = store.by('namespace', namespace).filter(({ metadata }) => name === undefined || metadata.name === name);
    const items = all.toSorted(byAge).map((one) => presenter.json(one));
    return name === undefined ? `{"object":"list","data":[${items.join(',')}]}` : items[0];
  }

  function canResume(lastId: string): boolean {
    const oldest = ring.forgotten?.version ?? floor;
    return /^[0-9]{1,20}$/.test(lastId) && oldest !== undefined && !isNewer(oldest, lastId);
  }

  const unsubscribe = store.onChange(({ before, after }) => {
    const { namespace = '', name = '' } = (after ?? before)?.metadata ?? {};
    const entry: Entry = { version: store.resourceVersion, namespace, name, instance: after };
    if (!store.hasSynced) return;
    floor ??= store.resourceVersion;
    ring.push(entry);
    const listeners = followers.get(namespace);
    if (listeners === undefined) return;
    // Not every write to the object changes what is shown of it.
    if (before && after && presenter.json(before) === presenter.json(after)) return;
    for (const follower of listeners) deliver(follower, entry);
  });

  return {
    follow(scope, lastId, send) {
      const follower: Follower = { scope, version: store.resourceVersion, send };
      if (lastId !== undefined && canResume(lastId)) {
        follower.version = lastId;
        for (const entry of ring.entries()) deliver(follower, entry);
      } else {
        const data = snapshot(scope);
        const type = lastId === undefined ? 'snapshot' : 'resync';
        if (data !== undefined) send({ type, id: store.resourceVersion, data });
      }
      const set = followers.get(scope.namespace) ?? new Set();
      followers.set(scope.namespace, set.add(follower));
      return () => {
        set.delete(follower);
        if (set.size === 0) followers.delete(scope.namespace);
      };
    },
    close: unsubscribe,
  };
}
