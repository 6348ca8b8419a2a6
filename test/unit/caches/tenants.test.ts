import { expect, it, vi } from 'vitest';
import { INDEXES } from '../../../src/caches/indexes.ts';
import { isTenant, onTenants } from '../../../src/caches/tenants.ts';
import type { Namespace } from '../../../src/kube/types.ts';
import { Cache } from '../../../src/kube/watch/cache.ts';
import type { ApiKey } from '../../../src/resources/api-key.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';

function setup() {
  const onListenerError = (): void => undefined;
  const namespaces = new Cache<Namespace>({ onListenerError });
  const instances = new Cache<GpuInstance>({ indexers: INDEXES.instances, onListenerError });
  const apiKeys = new Cache<ApiKey>({ indexers: INDEXES.apiKeys, onListenerError });
  const sources = { namespaces: namespaces.store, instances: instances.store, apiKeys: apiKeys.store };
  const changed = vi.fn<() => void>();
  const end = onTenants(sources, changed);
  return { namespaces, instances, apiKeys, sources, changed, end };
}

function named(namespace: string, name: string): never {
  return { metadata: { namespace, name, uid: `${namespace}/${name}` }, spec: {} } as never;
}

it('a namespace is a tenant with the label, with an instance or with a key, and says so when that changes', () => {
  const { namespaces, instances, apiKeys, sources, changed, end } = setup();
  expect(isTenant(sources, 'a')).toBe(false);
  namespaces.replace(
    [{ metadata: { name: 'a', labels: { 'berth.dev/tenant': 'true' } } }, { metadata: { name: 'b' } }],
    '1',
  );
  expect([isTenant(sources, 'a'), isTenant(sources, 'b')]).toEqual([true, false]);
  expect(changed).toHaveBeenCalledTimes(1);
  apiKeys.replace([named('b', 'one')], '1');
  expect(isTenant(sources, 'b')).toBe(true);
  expect(changed).toHaveBeenCalledTimes(2);
  apiKeys.replace([], '2');
  expect(isTenant(sources, 'b')).toBe(false);
  expect(changed).toHaveBeenCalledTimes(3);
  instances.replace([named('b', 'lab')], '1');
  expect(isTenant(sources, 'b')).toBe(true);
  expect(changed).toHaveBeenCalledTimes(4);
  // Its second instance changes nothing.
  instances.replace([named('b', 'lab'), named('b', 'other')], '2');
  expect(changed).toHaveBeenCalledTimes(4);
  end();
  instances.replace([], '3');
  expect(changed).toHaveBeenCalledTimes(4);
});
