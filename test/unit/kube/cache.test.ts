import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Cache } from '../../../src/kube/watch/cache.ts';
import type { StoreChange } from '../../../src/kube/watch/store.ts';
import { keyOf, type Pod } from '../../../src/kube/types.ts';

function pod(name: string, version: number, node = 'n1'): Pod {
  return {
    metadata: { name, namespace: 'ns', resourceVersion: String(version) },
    spec: { nodeName: node, containers: [] },
  };
}

const byNode = { node: (object: Pod) => (object.spec?.nodeName ? [object.spec.nodeName] : []) };

function emptyCache() {
  const errors: unknown[] = [];
  const cache = new Cache<Pod>({ indexers: byNode, onListenerError: (error) => errors.push(error) });
  const changes: StoreChange<Pod>[] = [];
  cache.store.onChange((change) => changes.push(change));
  return { cache, changes, errors };
}

test('is synced by the first complete list and not by events', async () => {
  const { cache } = emptyCache();
  cache.upsert(pod('a', 1));
  expect(cache.store.hasSynced).toBe(false);
  cache.replace([cache.prepare(pod('a', 1))], '5');
  await cache.store.synced;
  expect(cache.store.hasSynced).toBe(true);
  expect(cache.store.resourceVersion).toBe('5');
});

test('a list removes what it does not hold, and tells only what changed', () => {
  const { cache, changes } = emptyCache();
  cache.replace([pod('a', 1), pod('b', 2)], '2');
  changes.length = 0;
  cache.replace([cache.prepare(pod('b', 2)), cache.prepare(pod('c', 3))], '3');
  expect(changes.map(({ key, before, after }) => [key, before !== undefined, after !== undefined])).toEqual([
    ['ns/a', true, false],
    ['ns/c', false, true],
  ]);
});

test('objects are frozen, without managedFields, and pruned', () => {
  const cache = new Cache<Pod>({
    prune: ({ metadata }) => ({ metadata }),
    onListenerError: () => undefined,
  });
  const object = pod('a', 1);
  object.metadata.managedFields = [{ manager: 'kubectl' }];
  cache.upsert(object);
  const kept = cache.store.get('ns/a');
  expect(kept).toEqual({ metadata: { name: 'a', namespace: 'ns', resourceVersion: '1' } });
  expect(Object.isFrozen(kept?.metadata)).toBe(true);
});

test('a listener that throws does not keep the others from hearing', () => {
  const { cache, errors } = emptyCache();
  cache.store.onChange(() => {
    throw new Error('boom');
  });
  const heard: string[] = [];
  const stop = cache.store.onChange(({ key }) => heard.push(key));
  cache.upsert(pod('a', 1));
  stop();
  cache.upsert(pod('b', 2));
  expect(heard).toEqual(['ns/a']);
  expect(errors).toHaveLength(2);
});

test('an index that is not there is a mistake of the caller', () => {
  expect(() => emptyCache().cache.store.by('zone', 'a')).toThrow('no index named "zone"');
});

const change = fc.record({
  kind: fc.constantFrom('upsert' as const, 'remove' as const, 'replace' as const),
  names: fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1 }),
  node: fc.constantFrom('n1', 'n2', ''),
});

test('content, index and told changes agree with a plain map after any history', () => {
  fc.assert(
    fc.property(fc.array(change), (history) => {
      const { cache } = emptyCache();
      const model = new Map<string, Pod>();
      const mirror = new Map<string, Pod>();
      cache.store.onChange(({ key, before, after }) => {
        expect(before).toBe(mirror.get(key));
        if (after) mirror.set(key, after);
        else mirror.delete(key);
      });
      let version = 0;
      for (const { kind, names, node } of history) {
        version += 1;
        const objects = names.map((name) => pod(name, version, node));
        if (kind === 'replace') model.clear();
        for (const object of kind === 'replace' ? objects : objects.slice(0, 1)) {
          if (kind === 'remove') model.delete(keyOf(object));
          else model.set(keyOf(object), object);
        }
        const [first] = objects;
        if (kind === 'replace')
          cache.replace(
            objects.map((object) => cache.prepare(object)),
            String(version),
          );
        else if (first) cache[kind](first);
        expect(new Map([...cache.store.values()].map((object) => [keyOf(object), object]))).toEqual(model);
        expect(mirror).toEqual(model);
        expect(cache.store.size).toBe(model.size);
        for (const name of ['n1', 'n2']) {
          const want = [...model.values()].filter((object) => object.spec?.nodeName === name);
          expect(new Set(cache.store.by('node', name))).toEqual(new Set(want));
        }
      }
    }),
  );
});
