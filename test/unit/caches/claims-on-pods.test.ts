import fc from 'fast-check';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { Caches } from '../../../src/caches/caches.ts';
import { INDEXES } from '../../../src/caches/indexes.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { toKubeError } from '../../../src/kube/errors.ts';
import type { Pod, ResourceType } from '../../../src/kube/types.ts';
import type { StoreChange } from '../../../src/kube/watch/store.ts';
import type { GpuInstance, GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { storedOf, withClaimOf } from '../../../src/resources/pod/claim-on-pod.ts';
import { claimingCache } from '../../support/claiming-cache.ts';
import { cacheOf } from '../../support/controller-world.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { claimedPod, claimOn, gpuInstance } from '../../support/inventory-world.ts';
import { waitFor } from '../../support/wait-for.ts';

const CLAIM = claimOn('n');
const WAITING: GpuInstanceStatus = {
  conditions: ['Claimed', 'Ready'].map((type) => ({
    type,
    status: 'False',
    reason: 'WaitingForCapacity',
    message: '',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  })),
};
const ONE = gpuInstance('one', {}, WAITING);
const POD = claimedPod(ONE, CLAIM);

function world(instances: GpuInstance[] = [], onPods: Pod[] = []) {
  const pods = cacheOf<Pod>(onPods, INDEXES.pods);
  const cache = claimingCache(pods, instances);
  const changes: StoreChange<GpuInstance>[] = [];
  cache.store.onChange((change) => changes.push(change));
  return {
    pods,
    cache,
    changes,
    nodes: () => changes.map(({ before, after }) => [before?.status?.claim?.node, after?.status?.claim?.node]),
    names: (index: string, value: string) => cache.store.by(index, value).map(({ metadata }) => metadata.name),
  };
}

function version<T extends GpuInstance | Pod>(object: T, resourceVersion: string): T {
  return { ...object, metadata: { ...object.metadata, resourceVersion } };
}

test.each<[string, (w: ReturnType<typeof world>) => void]>([
  ['the pod comes after its instance', ({ cache, pods }) => (cache.upsert(ONE), pods.upsert(POD))],
  ['the instance comes after its pod', ({ cache, pods }) => (pods.upsert(POD), cache.upsert(ONE))],
  ['both are in the first lists', ({ cache, pods }) => (pods.replace([POD], '2'), cache.replace([ONE], '2'))],
])('an instance has the claim of its pod when %s', (_when, come) => {
  const w = world();
  come(w);
  expect(w.cache.store.get('default/one')?.status).toMatchObject({ claim: CLAIM, incarnation: 1, podName: 'one-1' });
  expect([...w.cache.store.values()].map(({ status }) => status?.claim)).toEqual([CLAIM]);
  expect([w.names('node', 'n'), w.names('waiting', 'true'), w.names('reason', 'WaitingForCapacity')]).toEqual([
    ['one'],
    [],
    [],
  ]);
});

test('a claim that comes to its pod is a change, and so is one that goes with it before the status has it', () => {
  const { cache, pods, nodes, names } = world([ONE]);
  pods.upsert(POD);
  pods.remove(POD);
  expect(nodes()).toEqual([
    [undefined, 'n'],
    ['n', undefined],
  ]);
  expect([names('node', 'n'), names('waiting', 'true')]).toEqual([[], ['one']]);
  expect(cache.store.get('default/one')).toBe(ONE);
});

test('what else happens to the pod is no change: readers get the same object', () => {
  const { cache, pods, changes } = world([ONE], [POD]);
  const seen = cache.store.get('default/one');
  pods.upsert({ ...version(POD, '2'), status: { phase: 'Running' } });
  expect(changes).toEqual([]);
  expect(cache.store.get('default/one')).toBe(seen);
});

test('a claim that the pod no longer agrees with is none', () => {
  const { pods, nodes } = world([ONE], [POD]);
  pods.upsert({ ...version(POD, '2'), spec: { containers: [], ...POD.spec, nodeName: 'm' } });
  expect(nodes()).toEqual([['n', undefined]]);
});

test('the status that the controller writes is one more version, with or without its pod', () => {
  const { cache, pods, changes, nodes } = world([ONE], [POD]);
  const written = version({ ...ONE, status: { claim: CLAIM, incarnation: 1, podName: 'one-1' } }, '7');
  cache.upsert(written);
  pods.remove(POD);
  expect(nodes()).toEqual([['n', 'n']]);
  expect(changes[0]?.after).toEqual(written);
});

test('versions are those of the instances alone', () => {
  const { cache, pods } = world([ONE]);
  pods.upsert(version(POD, '900'));
  expect([cache.store.resourceVersion, cache.store.get('default/one')?.metadata.resourceVersion]).toEqual(['1', '1']);
});

test('another list with the same version of an instance changes nothing', () => {
  const { cache, changes } = world([ONE], [POD]);
  cache.replace([cache.prepare(structuredClone(ONE))], '5');
  expect(changes).toEqual([]);
});

test('readers cannot change what they get, and the controller gets what the API server has', () => {
  const { cache } = world([ONE], [POD]);
  const seen = cache.store.get('default/one') as GpuInstance;
  expect(Object.isFrozen(seen.status?.claim)).toBe(true);
  expect(storedOf(seen)).toBe(ONE);
});

test('an answer of the API server is completed as the cache does it', () => {
  const { cache } = world([], [POD]);
  expect(cache.store.complete(version(ONE, '9')).status?.claim).toEqual(CLAIM);
});

test.each([true, false])(
  'the caches of a process show claims on pods where that is guarded: %s',
  async (claimOnPod) => {
    const listed: string[] = [];
    const client = {
      // A server that streams nothing.
      stream: () => Promise.reject(toKubeError('watch', { status: 422, body: {} })),
      list: ({ kind }: ResourceType) => {
        listed.push(kind);
        return Promise.resolve({ items: kind === 'Pod' ? [POD] : [ONE], resourceVersion: '1' });
      },
    } as unknown as KubeClient;
    const over = new AbortController();
    const log = pino({ level: 'silent' });
    const deps = { client, namespace: 'berth-system', clock: fakeClock(), random: () => 0, log, claimOnPod };
    const caches = new Caches(deps, over.signal);
    const instances = caches.get('instances');
    await waitFor('the first lists', () => caches.synced || undefined);
    expect(instances.get('default/one')?.status?.claim?.node).toBe(claimOnPod ? 'n' : undefined);
    expect(listed.toSorted()).toEqual(claimOnPod ? ['GPUInstance', 'Pod'] : ['GPUInstance']);
    over.abort();
    await caches.ended();
  },
);

// Whatever happens in whatever order, readers see each instance with the claim that its pod bears at that time, and who
// follows the changes knows the same.
test('the cache is at each moment what its instances and their pods say', () => {
  const name = fc.constantFrom('a', 'b', 'c');
  const event = fc.record({
    name,
    of: fc.constantFrom('instance', 'pod'),
    what: fc.constantFrom('new', 'waiting', 'claimed', 'gone', 'listed'),
    node: fc.constantFrom('n', 'm'),
  });
  fc.assert(
    fc.property(fc.array(event, { maxLength: 30 }), (events) => {
      const w = world();
      const known = new Map<string, GpuInstance>();
      w.cache.store.onChange(({ key, before, after }) => {
        expect(known.get(key)).toBe(before);
        if (after === undefined) known.delete(key);
        else known.set(key, after);
      });
      const stored = new Map<string, GpuInstance>();
      const pods = new Map<string, Pod>();
      for (const [index, { name: one, of, what, node }] of events.entries()) {
        const at = String(index + 10);
        if (of === 'instance') {
          const status = { new: undefined, waiting: WAITING, claimed: { claim: claimOn(node), incarnation: 1 } };
          const next = what in status ? gpuInstance(one, {}, status[what as keyof typeof status]) : undefined;
          if (what !== 'listed') {
            const before = stored.get(one);
            if (next === undefined) stored.delete(one);
            else stored.set(one, version(next, at));
            if (next !== undefined) w.cache.upsert(version(next, at));
            else if (before !== undefined) w.cache.remove(version(before, at));
          } else
            w.cache.replace(
              [...stored.values()].map((each) => w.cache.prepare(each)),
              at,
            );
        } else if (what === 'listed') w.pods.replace([...pods.values()], at);
        else {
          const pod = version(claimedPod(gpuInstance(one), claimOn(node)), at);
          if (what === 'gone') pods.delete(one);
          else pods.set(one, pod);
          if (what === 'gone') w.pods.remove(pod);
          else w.pods.upsert(pod);
        }
        const wanted = [...stored].map(([key, instance]) => withClaimOf(instance, pods.get(key)));
        const byName = (a: GpuInstance, b: GpuInstance): number => (a.metadata.name < b.metadata.name ? -1 : 1);
        expect([...w.cache.store.values()].toSorted(byName)).toEqual(wanted.toSorted(byName));
        expect([...known.values()].toSorted(byName)).toEqual(wanted.toSorted(byName));
        for (const on of ['n', 'm']) {
          const there = wanted.filter(({ status }) => status?.claim?.node === on);
          expect(w.names('node', on).toSorted()).toEqual(there.map(({ metadata }) => metadata.name).toSorted());
        }
      }
    }),
  );
});
