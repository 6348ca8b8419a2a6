import { pino } from 'pino';
import { expect, it } from 'vitest';
import { INDEXES } from '../../../src/caches/indexes.ts';
import { reconcileTenant, UncountedQuotas } from '../../../src/controllers/tenants/reconcile.ts';
import { tenantSources } from '../../../src/controllers/tenants/controller.ts';
import { limitReader } from '../../../src/controllers/tenants/tenant-ceilings.ts';
import { tenantPolicyStatus } from '../../../src/controllers/status/tenant-policy.ts';
import type { CommonDeps } from '../../../src/controllers/common-deps.ts';
import type { ControllerStores } from '../../../src/controllers/stores.ts';
import { findCondition } from '../../../src/kube/conditions.ts';
import { Cache } from '../../../src/kube/watch/cache.ts';
import type { IndexFunctions } from '../../../src/kube/watch/store.ts';
import {
  keyOf,
  type KubeObject,
  type Namespace,
  type PersistentVolumeClaim,
  type ResourceQuota,
  type ResourceType,
} from '../../../src/kube/types.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import type { SshKey } from '../../../src/resources/ssh-key.ts';
import type { Held, TenantLimit } from '../../../src/resources/tenants/tenant-limit.ts';
import { type TenantPolicy, tenantPolicySpecSchema } from '../../../src/resources/tenants/tenant-policy.ts';
import { Fence } from '../../../src/runtime/fence.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { gpuInstance } from '../../support/inventory-world.ts';
import { patched } from '../../support/patched.ts';

function cacheOf<T extends KubeObject>(indexers?: IndexFunctions<T>): Cache<T> {
  const cache = new Cache<T>({
    indexers,
    onListenerError: (error) => {
      throw error;
    },
  });
  cache.replace([], '1');
  return cache;
}

/** The tenant controller over caches in which its own writes appear at once. */
function world() {
  const clock = fakeClock();
  const caches = {
    namespaces: cacheOf<Namespace>(),
    policies: cacheOf<TenantPolicy>(),
    limits: cacheOf<TenantLimit>(INDEXES.tenantLimits),
    quotas: cacheOf<ResourceQuota>(INDEXES.quotas),
    keys: cacheOf<SshKey>(INDEXES.sshKeys),
    instances: cacheOf<GpuInstance>(INDEXES.instances),
    disks: cacheOf<PersistentVolumeClaim>(INDEXES.disks),
  };
  const none = cacheOf<never>({ namespace: () => [] }).store;
  const stores = {
    namespaces: caches.namespaces.store,
    tenantPolicies: caches.policies.store,
    tenantLimits: caches.limits.store,
    quotas: caches.quotas.store,
    sshKeys: caches.keys.store,
    instances: caches.instances.store,
    disks: caches.disks.store,
    apiKeys: none,
    templates: none,
  } as unknown as ControllerStores;
  const writes: string[] = [];
  let version = 10;
  const next = (): string => String((version += 1));
  const cacheFor = (type: ResourceType) =>
    (type.kind === 'TenantLimit' ? caches.limits : caches.quotas) as unknown as Cache<never>;
  const put = (type: ResourceType, object: object): unknown => {
    const { metadata, ...rest } = object as KubeObject;
    const creationTimestamp = metadata.creationTimestamp ?? new Date(clock.now()).toISOString();
    const stored = { ...rest, metadata: { uid: 'u', ...metadata, creationTimestamp, resourceVersion: next() } };
    cacheFor(type).upsert(stored as never);
    return stored;
  };
  const client = {
    create(type: ResourceType, object: KubeObject) {
      writes.push(`create ${type.kind} ${keyOf(object)}`);
      return Promise.resolve(put(type, object));
    },
    patch(type: ResourceType, ref: KubeObject['metadata'], body: { spec?: object } | unknown[]) {
      writes.push(`patch ${type.kind} ${keyOf(ref)}`);
      const before = cacheFor(type).store.get(keyOf(ref)) as unknown as KubeObject;
      return Promise.resolve(put(type, Array.isArray(body) ? patched(before, body) : { ...before, spec: body.spec }));
    },
    delete(type: ResourceType, ref: KubeObject['metadata']) {
      writes.push(`delete ${type.kind} ${keyOf(ref)}`);
      cacheFor(type).remove(cacheFor(type).store.get(keyOf(ref)) as never);
      return Promise.resolve();
    },
  };
  /** What the tenants held for nothing. */
  const held: { now: Held | undefined } = { now: undefined };
  const log = pino({ level: 'silent' });
  const deps = {
    client: client as never,
    stores,
    clock,
    fence: new Fence(clock, log),
    uncounted: new UncountedQuotas(clock),
    ceilingsOf: limitReader(stores.tenantPolicies, stores.namespaces),
    config: { namespace: 'berth-system' },
    unbilled: { held: () => held.now },
    pullSecrets: { isNeeded: false, keep: () => Promise.reject(new Error('no Secret is needed')) },
  };
  return {
    ...caches,
    held,
    stores,
    clock,
    writes,
    reconcile: (name: string) => reconcileTenant(deps, name, new AbortController().signal),
    namespace: (name: string, labels: Record<string, string> = { 'berth.dev/tenant': 'true' }, more: object = {}) =>
      caches.namespaces.upsert({ metadata: { name, labels, resourceVersion: next(), ...more } }),
    policy: (name: string, spec: object, generation = 1) =>
      caches.policies.upsert({
        metadata: { name, uid: name, generation, resourceVersion: next() },
        spec: tenantPolicySpecSchema.parse(spec),
      }),
    key: (namespace: string): SshKey => ({
      metadata: { name: 'k', namespace, uid: 'k', resourceVersion: next() },
      spec: { publicKey: 'ssh-ed25519 A', displayName: '' },
    }),
    status: (name: string) => {
      const kind = tenantPolicyStatus({ stores, clock } as unknown as CommonDeps);
      const object = caches.policies.store.get(name);
      if (object === undefined) throw new Error('no such policy');
      const status = kind.statusOf(object, clock.now());
      return { tenants: status.tenants, ready: findCondition(status.conditions, 'Ready') };
    },
  };
}

it('a tenant gets its TenantLimit and its quota, once', async () => {
  const { namespace, policy, reconcile, writes, limits, quotas } = world();
  policy('gold', { namespaceLabels: { tier: 'gold' }, objects: { sshKeys: 5 } });
  namespace('a', { tier: 'gold', 'berth.dev/tenant': 'true' });
  await reconcile('a');
  await reconcile('a');
  expect(writes).toEqual(['create TenantLimit a/berth', 'create ResourceQuota a/berth']);
  expect(limits.store.get('a/berth')?.spec).toMatchObject({ policies: ['gold'], objects: { sshKeys: 5 } });
  expect(quotas.store.get('a/berth')?.spec).toEqual({
    hard: {
      'count/gpuinstances.berth.dev': '1000',
      'count/registrycredentials.berth.dev': '100',
      'count/webhooks.berth.dev': '10',
      'count/sshkeys.berth.dev': '5',
      'count/instancetemplates.berth.dev': '1000',
      'count/apikeys.berth.dev': '1000',
    },
  });
});

it.each(['kube-system', 'kube-public', 'berth-system'])('%s is no tenant, whatever is in it', async (name) => {
  const { namespace, keys, key, reconcile, writes } = world();
  namespace(name);
  keys.upsert(key(name));
  await reconcile(name);
  expect(writes).toEqual([]);
});

it('a namespace without the label is a tenant as long as it holds something of Berth', async () => {
  const { namespace, keys, key, reconcile, writes, clock } = world();
  namespace('a', {});
  await reconcile('a');
  expect(writes).toEqual([]);
  const one = key('a');
  keys.upsert(one);
  await reconcile('a');
  expect(writes.splice(0)).toHaveLength(2);
  keys.remove(one);
  const { requeueAfterMs = 0 } = (await reconcile('a')) ?? {};
  expect([writes, requeueAfterMs]).toEqual([[], 60_000]);
  clock.stall(requeueAfterMs);
  await reconcile('a');
  expect(writes).toEqual(['delete TenantLimit a/berth', 'delete ResourceQuota a/berth']);
});

it('a quota of this name that Berth did not make stays where there is no tenant', async () => {
  const { namespace, quotas, reconcile, writes } = world();
  namespace('a', {});
  quotas.upsert({ metadata: { name: 'berth', namespace: 'a', resourceVersion: '2' }, spec: { hard: { pods: '1' } } });
  await reconcile('a');
  expect(writes).toEqual([]);
});

it('a namespace that is being deleted is left alone', async () => {
  const { namespace, reconcile, writes } = world();
  namespace('a', { 'berth.dev/tenant': 'true' }, { deletionTimestamp: '2026-01-01T00:00:00Z' });
  await reconcile('a');
  expect(writes).toEqual([]);
});

it('what another client changes or deletes is put back', async () => {
  const { namespace, limits, quotas, reconcile, writes } = world();
  namespace('a');
  await reconcile('a');
  writes.length = 0;
  const limit = limits.store.get('a/berth');
  const quota = quotas.store.get('a/berth');
  if (limit === undefined || quota === undefined) throw new Error('nothing was made');
  const version = { resourceVersion: '90' };
  limits.upsert({
    metadata: { ...limit.metadata, ...version },
    spec: { ...limit.spec, models: { ...limit.spec.models, callsPerMinute: 1 } },
  });
  quotas.upsert({ metadata: { ...quota.metadata, ...version }, spec: { hard: { ...quota.spec?.hard, pods: '0' } } });
  await reconcile('a');
  expect(writes.splice(0)).toEqual(['patch TenantLimit a/berth', 'patch ResourceQuota a/berth']);
  expect(limits.store.get('a/berth')?.spec).toEqual(limit.spec);
  // The API server writes numbers in its own way, which is no change.
  const hard = { ...quota.spec?.hard, 'count/sshkeys.berth.dev': '1k' };
  quotas.upsert({ metadata: { ...quota.metadata, resourceVersion: '95' }, spec: { hard } });
  await reconcile('a');
  expect(writes).toEqual([]);
  limits.remove(limit);
  await reconcile('a');
  expect(writes).toEqual(['create TenantLimit a/berth']);
});

it('a quota that Kubernetes cannot count yet gives way, because it would refuse every object', async () => {
  const { namespace, quotas, reconcile, writes, clock } = world();
  namespace('a');
  await reconcile('a');
  const count = (used?: Record<string, string>): void => {
    const quota = quotas.store.get('a/berth');
    if (quota === undefined) throw new Error('there is no quota');
    const hard = quota.spec?.hard ?? {};
    const metadata = { ...quota.metadata, resourceVersion: `${Number(quota.metadata.resourceVersion) + 1000}` };
    quotas.upsert({ ...quota, metadata, status: { hard, used: used ?? hard } });
  };
  writes.length = 0;
  count({});
  await reconcile('a');
  expect(writes.splice(0)).toEqual(['delete ResourceQuota a/berth']);
  const { requeueAfterMs = 0 } = (await reconcile('a')) ?? {};
  expect([writes, requeueAfterMs]).toEqual([[], 10_000]);
  clock.stall(requeueAfterMs);
  await reconcile('a');
  expect(writes.splice(0)).toEqual(['create ResourceQuota a/berth']);
  count();
  await reconcile('a');
  expect(writes).toEqual([]);
});

it('a policy wakes the namespaces that it covers or covered, and its status wakes none', () => {
  const { namespace, policy, policies, stores } = world();
  namespace('a', { tier: 'gold' });
  namespace('b', { tier: 'silver' });
  namespace('c', {});
  const woken: string[] = [];
  for (const source of tenantSources(stores)) source.start((key) => woken.push(key));
  expect(woken.splice(0).toSorted()).toEqual(['a', 'b', 'c']);
  policy('p', { namespaceLabels: { tier: 'gold' } });
  expect(woken.splice(0)).toEqual(['a']);
  policy('p', { namespaceLabels: { tier: 'silver' } }, 2);
  expect(woken.splice(0).toSorted()).toEqual(['a', 'b']);
  const written = policies.store.get('p');
  if (written === undefined) throw new Error('no policy');
  policies.upsert({ ...written, metadata: { ...written.metadata, resourceVersion: '99' }, status: { tenants: 1 } });
  expect(woken).toEqual([]);
});

it('the status of a policy counts its tenants and names what overlaps', async () => {
  const { namespace, policy, policies, reconcile, status } = world();
  policy('one', { namespaceLabels: { tier: 'gold' } });
  policy('two', { namespaceLabels: { team: 'a' } });
  namespace('x', { 'berth.dev/tenant': 'true', tier: 'gold', team: 'a' });
  namespace('y', { 'berth.dev/tenant': 'true', tier: 'gold' });
  await reconcile('x');
  await reconcile('y');
  expect(status('one')).toMatchObject({ tenants: 2, ready: { status: 'True', reason: 'Overlaps' } });
  expect(status('one').ready?.message).toContain('TenantPolicies one, two cover namespace x');
  expect(status('two')).toMatchObject({ tenants: 1, ready: { reason: 'Overlaps' } });
  policy('one', { namespaceLabels: { tier: 'gold', 'berth.dev/tenant': 'true' } }, 2);
  await reconcile('x');
  await reconcile('y');
  expect(status('one')).toMatchObject({ tenants: 2, ready: { status: 'True', reason: 'Accepted' } });
  expect(status('two').tenants).toBe(0);
  policies.upsert({ metadata: { name: 'two', resourceVersion: '80' }, spec: { images: ['*x'] } as never });
  expect(status('two').ready).toMatchObject({ status: 'False', reason: 'Unreadable' });
  expect(status('two').ready?.message).toContain('images.0: write an image');
});

it('what a tenant held for nothing is in the status of its TenantLimit, once, and goes from there', async () => {
  const { namespace, reconcile, limits, held, writes } = world();
  namespace('alice');
  await reconcile('alice');
  const time = '2026-01-01T00:00:00.000Z';
  const place = { start: 'u/1', from: time, to: time, gpus: 8, image: 'debian:12', isFaultOfCluster: false };
  held.now = { places: [place], withdrawn: [time] };
  await reconcile('alice');
  expect(limits.store.get('alice/berth')?.status).toEqual({ held: held.now });
  const before = writes.length;
  await reconcile('alice');
  expect(writes).toHaveLength(before);
  held.now = undefined;
  await reconcile('alice');
  expect(limits.store.get('alice/berth')?.status).toEqual({});
});

it('the disks that a tenant keeps are in the status of its TenantLimit, from the end of their instance on', async () => {
  const { namespace, reconcile, limits, stores, instances, disks, writes } = world();
  namespace('default');
  const one = gpuInstance('one');
  instances.upsert(one);
  const disk = {
    metadata: {
      name: 'one-disk',
      namespace: 'default',
      resourceVersion: '1',
      annotations: { 'berth.dev/claim': 'one' },
      labels: { 'berth.dev/disk-policy': 'Retain' },
    },
    spec: { resources: { requests: { storage: '40Gi' } } },
  };
  const labels = { 'berth.dev/retained-from': 'one' };
  const kept = { ...disk, metadata: { ...disk.metadata, labels, resourceVersion: '2' } };
  const woken: string[] = [];
  for (const source of tenantSources(stores)) source.start((key) => woken.push(key));
  await reconcile('default');
  woken.length = 0;
  disks.upsert(disk);
  await reconcile('default');
  expect([woken, limits.store.get('default/berth')?.status]).toEqual([[], undefined]);
  disks.upsert(kept);
  instances.remove(one);
  expect(woken.splice(0)).toContain('default');
  await reconcile('default');
  expect(limits.store.get('default/berth')?.status).toEqual({ keptDisks: { count: 1, gb: 40 } });
  const before = writes.length;
  await reconcile('default');
  expect(writes).toHaveLength(before);
  // What the owner deletes counts no more as kept, although it may take a while to go.
  woken.length = 0;
  const deletionTimestamp = '2026-01-01T00:00:00Z';
  disks.upsert({ ...kept, metadata: { ...kept.metadata, deletionTimestamp, resourceVersion: '3' } });
  expect(woken).toEqual(['default']);
  await reconcile('default');
  expect(limits.store.get('default/berth')?.status).toEqual({});
});
