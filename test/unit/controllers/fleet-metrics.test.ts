import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { createEndingMetric } from '../../../src/controllers/gpu-instance/start-metric.ts';
import { createFleetMetrics } from '../../../src/controllers/fleet-metrics.ts';
import type { Node } from '../../../src/kube/types.ts';
import type { GpuInstance, GpuInstanceSpec, GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import type { TenantLimit } from '../../../src/resources/tenants/tenant-limit.ts';
import { controllerWorld, held } from '../../support/controller-world.ts';
import type { FakeClock } from '../../support/fake-clock.ts';
import { claimOn, gpuInstance, gpuNode, gpuPod } from '../../support/inventory-world.ts';

const CLOSED = 'NVIDIA-T4';

/** A node on which the device plugin has taken GPUs out of service. */
function sick(name: string, healthy: number, has: number): Node {
  const node = gpuNode(name, { allocatable: { 'nvidia.com/gpu': String(healthy) } });
  return { ...node, status: { ...node.status, capacity: { 'nvidia.com/gpu': String(has) } } };
}

function waiting(name: string, spec: Partial<GpuInstanceSpec>, status: GpuInstanceStatus = {}): GpuInstance {
  const condition = { type: 'Claimed', status: 'False', reason: 'WaitingForCapacity', message: 'Full.' } as const;
  const conditions = [{ ...condition, lastTransitionTime: '2026-01-01T00:00:00Z' }];
  return gpuInstance(name, spec, { ...status, conditions });
}

/** A world with its metrics shown; `values` reads the series of one, without its name. */
function shown(nodes?: Node[], namesTenants = true) {
  const world = controllerWorld(undefined, undefined, nodes && { nodes });
  const registry = new Registry();
  const show = createFleetMetrics(registry, { ...world.deps, ...world.deps.stores, namesTenants });
  const values = async (name: string): Promise<string[]> => {
    const text = await registry.getSingleMetricAsString(name);
    const lines = text.split('\n').filter((line) => line.startsWith(name));
    return lines.map((line) => line.slice(name.length).trim()).toSorted();
  };
  return { ...world, values, show, clock: world.deps.clock as FakeClock };
}

it('GPUs count by product: free, rented, of others, out of service, and free where nothing new is placed', async () => {
  const closed = { labels: { 'nvidia.com/gpu.product': CLOSED }, cordoned: true };
  const world = shown([gpuNode('a'), sick('b', 6, 8), gpuNode('c', closed)]);
  world.instances.upsert(gpuInstance('mine', {}, { claim: claimOn('a', { gpuCount: 3 }), incarnation: 1 }));
  world.pods.upsert(gpuPod('foreign', 'b', { gpus: 2 }));
  world.show();
  const product = 'NVIDIA-A100-SXM4-80GB';
  expect(await world.values('berth_gpus')).toEqual(
    [
      `{product="${product}",state="closed"} 0`,
      `{product="${product}",state="free"} 9`,
      `{product="${product}",state="others"} 2`,
      `{product="${product}",state="rented"} 3`,
      `{product="${product}",state="unhealthy"} 2`,
      `{product="${CLOSED}",state="closed"} 8`,
      `{product="${CLOSED}",state="free"} 0`,
      `{product="${CLOSED}",state="others"} 0`,
      `{product="${CLOSED}",state="rented"} 0`,
      `{product="${CLOSED}",state="unhealthy"} 0`,
    ].toSorted(),
  );
});

it('the GPUs out of service are shown by node, and no node whose GPUs are all well', async () => {
  const product = 'NVIDIA-A100-SXM4-80GB';
  const other = gpuNode('d', { labels: { 'nvidia.com/gpu.product': CLOSED } });
  const world = shown([gpuNode('a'), sick('b', 6, 8), sick('c', 0, 4), other]);
  world.show();
  const labels = (node: string): string => `{node="${node}",product="${product}"}`;
  expect(await world.values('berth_unhealthy_gpus')).toEqual([`${labels('b')} 2`, `${labels('c')} 4`]);
});

it('instances count by state and reason', async () => {
  const world = shown();
  const ready = { type: 'Ready', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' };
  const is = (reason: string): GpuInstanceStatus => ({ conditions: [{ ...ready, status: 'False', reason }] });
  for (const name of ['one', 'two']) world.instances.upsert(gpuInstance(name, {}, is('Running')));
  world.instances.upsert(gpuInstance('three', {}, is('NodeLost')));
  world.instances.upsert(gpuInstance('four', {}, is('of a newer release')));
  world.show();
  expect(await world.values('berth_instances')).toEqual([
    '{state="interrupted",reason="NodeLost"} 1',
    '{state="pending",reason="Pending"} 1',
    '{state="running",reason="Running"} 2',
  ]);
});

it('the line counts by product, and no text of a tenant becomes a label', async () => {
  const world = shown();
  const product = 'NVIDIA-A100-SXM4-80GB';
  const [offer] = world.inventory.offers();
  world.instances.upsert(waiting('one', { gpu: { product, count: 8 } }));
  world.instances.upsert(waiting('two', { offerId: offer?.id ?? 0 }));
  world.instances.upsert(waiting('three', { gpu: { product: 'evil"} 1', count: 1 } }));
  world.instances.upsert(waiting('four', { offerId: 7 }));
  world.instances.upsert(waiting('five', { type: 'Interruptible' }));
  world.show();
  expect(await world.values('berth_waiting_instances')).toEqual([
    `{product="${product}",type="on_demand"} 2`,
    '{product="any",type="interruptible"} 1',
    '{product="other",type="on_demand"} 2',
  ]);
});

it('the oldest wait is that of who really waits: the time that an instance was switched off does not count', async () => {
  const world = shown();
  const { clock } = world.deps;
  const at = (ms: number): string => new Date(clock.now() + ms).toISOString();
  const ending = { reason: 'Preempted', message: '', at: at(-600_000) };
  const ages = async (...waiters: GpuInstance[]): Promise<string | undefined> => {
    for (const instance of waiters) world.instances.upsert(instance);
    const [line] = await world.values('berth_waiting_oldest_seconds');
    for (const instance of waiters) world.instances.remove(instance);
    return line?.split(' ')[1];
  };
  world.show();
  const first = waiting('first', {});
  const created = { ...first, metadata: { ...first.metadata, creationTimestamp: at(-90_000) } };
  expect(await ages(created)).toBe('90');
  // Its owner edited it, so it may have been off until now.
  expect(await ages({ ...created, metadata: { ...created.metadata, generation: 2 } })).toBe('0');
  const preempted = { incarnation: 1, ending, stages: { stopped: at(-300_000) } };
  expect(await ages(waiting('second', {}, preempted))).toBe('300');
  const back = waiting('third', {}, { ...preempted, ending: { ...ending, reason: 'Stopped' } });
  expect(await ages(back)).toBe('0');
});

it('a wait of which nothing was written down is as old as this replica has seen it', async () => {
  const world = shown();
  const instance = waiting('back', {}, { incarnation: 3 });
  world.instances.upsert(instance);
  world.show();
  const age = async (): Promise<string | undefined> =>
    (await world.values('berth_waiting_oldest_seconds'))[0]?.split(' ')[1];
  expect(await age()).toBe('0');
  world.clock.stall(45_000);
  expect(await age()).toBe('45');
  world.instances.remove(instance);
  expect(await age()).toBeUndefined();
  world.instances.upsert(instance);
  expect(await age()).toBe('0');
});

it('the ledger is behind from the deletion of an instance that had a start until its record is written', async () => {
  const world = shown();
  world.show();
  const deletionTimestamp = new Date(world.clock.now() - 120_000).toISOString();
  const going = held(gpuInstance('going', {}, { incarnation: 1 }));
  const deleted = { ...going, metadata: { ...going.metadata, deletionTimestamp } };
  const put = (instance: GpuInstance, resourceVersion: string): void =>
    world.instances.upsert({ ...instance, metadata: { ...instance.metadata, resourceVersion } });
  expect(await world.values('berth_ledger_lag_seconds')).toEqual(['0']);
  put(deleted, '2');
  expect(await world.values('berth_ledger_lag_seconds')).toEqual(['120']);
  // The controller takes its finalizer when the record is there.
  put({ ...deleted, metadata: { ...deleted.metadata, finalizers: ['of another'] } }, '3');
  expect(await world.values('berth_ledger_lag_seconds')).toEqual(['0']);
  put({ ...deleted, status: {} }, '4');
  expect(await world.values('berth_ledger_lag_seconds')).toEqual(['0']);
  // Another client took the finalizer, and the object is gone.
  world.deps.unrecorded.noteChange({ key: 'default/lost', before: claimed('lost'), after: undefined });
  expect(await world.values('berth_ledger_lag_seconds')).toEqual(['0']);
  world.clock.stall(30_000);
  expect(await world.values('berth_ledger_lag_seconds')).toEqual(['30']);
});

it('disks count that were to go with their instance and have none', async () => {
  const world = shown();
  world.show();
  const disk = (name: string, policy: string) => ({
    metadata: { name, namespace: 'default', labels: { 'berth.dev/disk-policy': policy }, resourceVersion: '1' },
  });
  world.instances.upsert(gpuInstance('there'));
  for (const one of [disk('there-disk', 'Delete'), disk('kept-disk', 'Retain'), disk('other', 'Delete')]) {
    world.disks.upsert(one);
  }
  expect(await world.values('berth_orphaned_disks')).toEqual(['0']);
  world.disks.upsert(disk('lost-disk', 'Delete'));
  expect(await world.values('berth_orphaned_disks')).toEqual(['1']);
});

describe('disks that are kept although their instances are gone', () => {
  const kept = (name: string, gb: number, namespace: string, labels: Record<string, string>) => ({
    metadata: { name, namespace, labels, resourceVersion: '1' },
    spec: { resources: { requests: { storage: `${gb}Gi` } } },
  });
  const of = (name: string) => ({ 'berth.dev/retained-from': name });

  function keeping(namesTenants: boolean) {
    const world = shown(undefined, namesTenants);
    world.show();
    world.instances.upsert(gpuInstance('there'));
    for (const disk of [
      kept('there-disk', 700, 'default', { 'berth.dev/disk-policy': 'Retain' }),
      kept('one-disk', 10, 'default', of('one')),
      kept('two-disk', 20, 'default', { ...of('two'), 'berth.dev/disk-policy': 'Delete' }),
      kept('one-disk', 40, 'acme', of('one')),
      kept('database', 900, 'acme', {}),
    ]) {
      world.disks.upsert(disk);
    }
    return world;
  }

  it('count by tenant, with their size', async () => {
    const world = keeping(true);
    expect(await world.values('berth_kept_disks')).toEqual(['{tenant="acme"} 1', '{tenant="default"} 2']);
    expect(await world.values('berth_kept_disk_bytes')).toEqual([
      `{tenant="acme"} ${40 * 2 ** 30}`,
      `{tenant="default"} ${30 * 2 ** 30}`,
    ]);
  });

  it('name no tenant unless the operator asks for it', async () => {
    const world = keeping(false);
    expect(await world.values('berth_kept_disks')).toEqual(['{tenant="other"} 3']);
    expect(await world.values('berth_kept_disk_bytes')).toEqual([`{tenant="other"} ${70 * 2 ** 30}`]);
  });

  it('name the thousand tenants that keep most, and sum the rest', async () => {
    const world = shown();
    world.show();
    for (let index = 0; index < 1_002; index += 1) {
      world.disks.upsert(kept('one-disk', index < 2 ? 1 : 5, `t${index}`, of('one')));
    }
    const series = await world.values('berth_kept_disk_bytes');
    expect([series.length, series.find((line) => line.includes('other'))]).toEqual([
      1_001,
      `{tenant="other"} ${2 * 2 ** 30}`,
    ]);
  });
});

function claimed(name: string): GpuInstance {
  return gpuInstance(name, {}, { claim: claimOn('n'), incarnation: 1 });
}

/** A TenantLimit of which so many per cent are spent. */
function spent(tenant: string, policies: string[], percent: number, month = '2026-01'): TenantLimit {
  const times = { renewsAt: '2026-02-01T00:00:00Z', at: '2026-01-01T00:00:00Z' };
  return {
    metadata: { namespace: tenant, name: 'berth', creationTimestamp: '2026-01-01T00:00:00Z', resourceVersion: '1' },
    spec: { policies } as unknown as TenantLimit['spec'],
    status: { budget: { month, percent, lines: [], ...times } },
  };
}

it('budgets show by tenant and policy how much of them is spent in this month', async () => {
  const world = shown();
  world.show();
  world.limits.upsert(spent('acme', ['gold', 'asia'], 83));
  world.limits.upsert(spent('over', ['gold'], 104));
  world.limits.upsert(spent('late', ['gold'], 90, '2025-12'));
  world.limits.upsert({ ...spent('free', ['gold'], 0), status: {} });
  expect(await world.values('berth_budget_used_ratio')).toEqual([
    '{tenant="acme",policy="asia,gold"} 0.83',
    '{tenant="over",policy="gold"} 1.04',
  ]);
});

it('budgets name no tenant and no policy unless the operator asks for it', async () => {
  const world = shown(undefined, false);
  world.show();
  world.limits.upsert(spent('acme', ['acme-policy'], 83));
  world.limits.upsert(spent('over', ['gold'], 104));
  expect(await world.values('berth_budget_used_ratio')).toEqual(['{tenant="other",policy="other"} 1.04']);
});

it('a thousand tenants are named in the use of budgets, and the one that spent most stands for the others', async () => {
  const world = shown();
  world.show();
  for (let index = 0; index < 1_000; index += 1) {
    world.limits.upsert(spent(`a${String(index).padStart(4, '0')}`, ['gold'], 1));
  }
  for (const [name, percent] of [
    ['x', 40],
    ['y', 90],
    ['z', 10],
  ] as const) {
    world.limits.upsert(spent(name, ['gold'], percent));
  }
  const series = await world.values('berth_budget_used_ratio');
  expect([series.length, series.at(-1)]).toEqual([1_001, '{tenant="other",policy="gold"} 0.9']);
});

it('a replica shows the fleet only while it leads', async () => {
  const world = shown();
  world.instances.upsert(gpuInstance('one', {}, { claim: claimOn('n'), incarnation: 1 }));
  world.limits.upsert(spent('acme', ['gold'], 1));
  const all = async (): Promise<number[]> => {
    const names = ['berth_instances', 'berth_gpus', 'berth_ledger_lag_seconds', 'berth_budget_used_ratio'];
    return (await Promise.all(names.map((name) => world.values(name)))).map(({ length }) => length);
  };
  expect(await all()).toEqual([0, 0, 0, 0]);
  const hide = world.show();
  expect(await all()).toEqual([1, 5, 1, 1]);
  hide();
  expect(await all()).toEqual([0, 0, 0, 0]);
});

it('a start that ends counts once, with its reason', async () => {
  const world = controllerWorld();
  world.instances.upsert(held(gpuInstance('one', { powerState: 'Stopped' }, { claim: claimOn('n'), incarnation: 1 })));
  await world.reconcile('one').catch(() => undefined);
  await world.reconcile('one').catch(() => undefined);
  expect(world.endings).toEqual(['Stopped']);
  const registry = new Registry();
  createEndingMetric(registry)('Preempted');
  const text = await registry.metrics();
  expect(text).toContain('berth_instance_endings_total{reason="Preempted"} 1');
  expect(text).toContain('berth_instance_endings_total{reason="NodeLost"} 0');
});
