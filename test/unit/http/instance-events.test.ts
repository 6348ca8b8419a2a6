import { expect, test } from 'vitest';
import { tenantIds } from '../../../src/access/tenants.ts';
import { INDEXES } from '../../../src/caches/indexes.ts';
import { InstanceEvents } from '../../../src/http/features/instances/instance-events.ts';
import type { StreamEvent } from '../../../src/http/interface/events/event-stream.ts';
import type { Namespace } from '../../../src/kube/types.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { cacheOf } from '../../support/controller-world.ts';
import { gpuInstance } from '../../support/inventory-world.ts';
import { presenterOf } from '../../support/instance-presenter.ts';

function world() {
  const instances = cacheOf<GpuInstance>([], INDEXES.instances);
  const namespaces = cacheOf<Namespace>([{ metadata: { name: 'default', uid: 'first', resourceVersion: '1' } }]);
  const presenter = presenterOf(instances.store);
  const events = new InstanceEvents(instances.store, presenter, tenantIds(namespaces.store));
  const follow = (lastId?: string): StreamEvent[] => {
    const sent: StreamEvent[] = [];
    events.follow({ namespace: 'default' }, lastId, (event) => sent.push(event));
    return sent;
  };
  const made = (name: string, version: number): GpuInstance => {
    const one = gpuInstance(name);
    return { ...one, metadata: { ...one.metadata, resourceVersion: String(version) } };
  };
  return { instances, namespaces, follow, made };
}

const named = (sent: readonly StreamEvent[]): string[] =>
  sent.map(({ type, data }) => `${type} ${/i-[a-z]+/.exec(data)?.[0] ?? ''}`);

test('a client goes on with what it has not seen', () => {
  const { instances, follow, made } = world();
  instances.upsert(made('i-one', 5));
  const id = follow()[0]?.id;
  instances.upsert(made('i-two', 6));
  expect(named(follow(id))).toEqual(['instance i-two']);
});

test('who has a namespace that was made anew sees nothing of the tenant before, whatever id it goes on from', () => {
  const { instances, namespaces, follow, made } = world();
  instances.upsert(made('i-one', 5));
  const id = follow()[0]?.id;
  instances.upsert(made('i-secret', 6));
  instances.remove(made('i-secret', 7));
  instances.remove(made('i-one', 8));
  namespaces.upsert({ metadata: { name: 'default', uid: 'second', resourceVersion: '9' } });
  instances.upsert(made('i-own', 10));
  expect(named(follow(id))).toEqual(['resync i-own']);
  // Later ones it may go on from.
  const own = follow()[0]?.id;
  instances.upsert(made('i-next', 11));
  expect(named(follow(own))).toEqual(['instance i-next']);
});
