import { describe, expect, test } from 'vitest';
import { WaitingLine } from '../../../src/controllers/gpu-instance/waiting-line.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { bareNode, resourceClaim } from '../../support/device-world.ts';
import { claimOn, gpuInstance, gpuPod, gpuPool, inventoryOf } from '../../support/inventory-world.ts';
import { claimedAs, classNameOf, Fleet, PRICES, requestFor, resourceOf } from '../../support/mig-fleet.ts';
import { KINDS, migClass, migNode } from '../../support/mig-node.ts';
import { Chance } from '../../simulation/clock/chance.ts';

// On-demand instances displace interruptible ones that have parts of the same GPUs.

test.each(Array.from({ length: 10 }, (_, index) => index + 1))(
  'in fleet %i as few end as the scheduler needs, and whoever they end for gets its place',
  (seed) => {
    const fleet = new Fleet(seed);
    const chance = new Chance(seed);
    for (let index = 0; index < 30; index += 1) {
      fleet.rent();
      fleet.bind();
    }
    let ended = 0;
    for (let index = 0; index < 40; index += 1) {
      fleet.step();
      if (chance.is(0.5)) ended += fleet.displace(chance.one(KINDS));
    }
    expect(ended).toBeGreaterThan(0);
  },
);

const TAINT = { key: 'gpu.nvidia.com/xid', value: '79', effect: 'NoSchedule' };

interface Holder {
  device: string;
  type?: GpuInstance['spec']['type'];
  /** The pod has no claim yet, or names another; undefined: it has its device. */
  stage?: 'granted' | 'unnamed';
}

function kindOf(device: string): string {
  return KINDS.find((kind) => device.includes(classNameOf(kind)) && kind !== 'gpu') ?? 'gpu';
}

/** A node with GPUs and their holders, the last the newest. Each has the name of its device. */
function node(gpus: number, holders: readonly Holder[], shape: { foreign?: string[]; tainted?: string[] } = {}) {
  const { foreign = [], tainted = [] } = shape;
  const [deviceClassName = '', ...partitionClassNames] = KINDS.map(classNameOf);
  const slices = migNode('n', gpus).map(({ metadata, spec }) => {
    const devices = spec.devices?.map((one) => (tainted.includes(one.name) ? { ...one, taints: [TAINT] } : one));
    return { metadata, spec: { ...spec, ...(devices && { devices }) } };
  });
  const world = inventoryOf({
    nodes: [bareNode('n')],
    pools: [gpuPool('p', { prices: PRICES, devices: { deviceClassName, partitionClassNames } })],
    resourceSlices: slices,
    deviceClasses: KINDS.map((kind) => migClass(classNameOf(kind), kind)),
  });
  const { instances, pods, resourceClaims } = world.caches;
  for (const [index, { device, type = 'Interruptible', stage }] of holders.entries()) {
    const kind = kindOf(device);
    const grantedAt = `2026-01-01T00:00:${10 + index}Z`;
    const claim = claimOn('n', { pool: 'p', grantedAt, ...claimedAs(kind) });
    instances.upsert(gpuInstance(device, { type }, { claim, diskPersistent: true }));
    const made = gpuPod(`${device}-1`, 'n', { resource: resourceOf(kind), instanceUid: `uid-${device}` });
    const named = { resourceClaimName: `${device}-1`, requestMappings: [] };
    const status = stage === undefined ? { ...made.status, extendedResourceClaimStatus: named } : made.status;
    const pod = { ...made, metadata: { ...made.metadata, uid: `uid-${device}-1` }, ...(status && { status }) };
    pods.upsert(pod);
    if (stage === 'granted') continue;
    resourceClaims.upsert(resourceClaim(`${device}-1`, 'n', [device], { pod, deviceClassName: classNameOf(kind) }));
  }
  for (const name of foreign) resourceClaims.upsert(resourceClaim(`foreign-${name}`, 'n', [name]));
  return world;
}

type World = ReturnType<typeof node>;

function victims({ inventory }: World, kind: string): string[] | undefined {
  return inventory.preempt(requestFor(kind))?.victims.map(({ key }) => key.replace('default/', ''));
}

function byPreemption({ inventory }: World, kind: string): number {
  const found = inventory.offers().find((one) => one.gpuCount === 1 && one.resourceName === resourceOf(kind));
  return found?.availableByPreemption ?? 0;
}

/** Tells an instance to end. */
function tell({ caches: { instances } }: World, name: string, at = '2026-01-01T00:00:00Z'): void {
  const one = instances.store.get(`default/${name}`);
  if (one === undefined) throw new Error(`There is no instance ${name}.`);
  const ending = { reason: 'Preempted' as const, message: '', at };
  const metadata = { ...one.metadata, resourceVersion: '2' };
  instances.upsert({ ...one, metadata, status: { ...one.status, ending } });
}

const SEVEN = Array.from({ length: 7 }, (_, index): Holder => ({ device: `gpu-0-1g-10gb-${index}` }));
const NAMES = SEVEN.map(({ device }) => device).toReversed();

describe('a whole GPU', () => {
  test('is taken from all who have slices of it, and from nobody else', () => {
    const others: Holder[] = [{ device: 'gpu-1-3g-40gb-0', type: 'OnDemand' }, { device: 'gpu-1-2g-20gb-4' }];
    const world = node(2, [...others, ...SEVEN]);
    expect(victims(world, 'gpu')).toEqual(NAMES);
    expect(byPreemption(world, 'gpu')).toBe(1);
  });

  test.each<[string, Holder[], Parameters<typeof node>[2]]>([
    ['an on-demand instance', SEVEN.with(3, { device: 'gpu-0-1g-10gb-3', type: 'OnDemand' }), {}],
    ['a claim that is not of Berth', SEVEN.toSpliced(3, 1), { foreign: ['gpu-0-1g-10gb-3'] }],
    ['a device that another claim has, too', SEVEN, { foreign: ['gpu-0-1g-10gb-3'] }],
    ['a device with a taint', SEVEN, { tainted: ['gpu-0-1g-10gb-3'] }],
    ['a GPU with a taint', SEVEN, { tainted: ['gpu-0'] }],
    ['an instance without a device', SEVEN.with(3, { device: 'gpu-0-1g-10gb-3', stage: 'granted' }), {}],
    ['a pod that names another claim', SEVEN.with(3, { device: 'gpu-0-1g-10gb-3', stage: 'unnamed' }), {}],
  ])('does not come from slices with %s among them', (_, holders, shape) => {
    const world = node(1, holders, shape);
    expect(victims(world, 'gpu')).toBeUndefined();
    expect(byPreemption(world, 'gpu')).toBe(0);
  });
});

test('two whole GPUs are taken from those who have slices of one and from who has the other', () => {
  const { inventory } = node(3, [{ device: 'gpu-2', type: 'OnDemand' }, { device: 'gpu-1' }, ...SEVEN]);
  const request = { ...requestFor('gpu'), gpu: { count: 2, isolation: 'whole' as const } };
  expect(inventory.preempt(request)?.victims).toHaveLength(8);
  const { inventory: smaller } = node(2, [{ device: 'gpu-1', type: 'OnDemand' }, ...SEVEN]);
  expect(smaller.preempt(request)).toBeUndefined();
});

describe('a slice', () => {
  test('is taken from the holder of a whole GPU, the newest', () => {
    const world = node(2, [{ device: 'gpu-1' }, { device: 'gpu-0' }]);
    expect(victims(world, '1g.10gb')).toEqual(['gpu-0']);
    expect(byPreemption(world, '1g.10gb')).toBe(14);
  });

  test('is rather taken from a slice than from a whole GPU', () => {
    const world = node(2, [...SEVEN, { device: 'gpu-1' }]);
    expect(victims(world, '1g.10gb')).toEqual(['gpu-0-1g-10gb-6']);
    expect(victims(world, '3g.40gb')).toEqual(['gpu-1']);
  });

  test('goes past those that give it no room', () => {
    const onDemand = { device: 'gpu-0-2g-20gb-4', type: 'OnDemand' as const };
    const world = node(1, [...SEVEN.slice(0, 4), onDemand, ...SEVEN.slice(6)]);
    expect(victims(world, '2g.20gb')).toEqual(['gpu-0-1g-10gb-3', 'gpu-0-1g-10gb-2']);
  });
});

/** A line in which on-demand instances wait for one of a kind, the first the oldest. */
function lineOf({ inventory, clock }: World, ...kinds: string[]) {
  const line = new WaitingLine(inventory, clock);
  return kinds.map((kind, index) => {
    const waitingSince = `2026-01-01T00:01:0${index}.000Z`;
    const waiting = gpuInstance(`w${index}`, {}, { waitingSince });
    line.add(`default/w${index}`, waiting, requestFor(kind));
    return line.preempt(`default/w${index}`, requestFor(kind))?.victims.map(({ key }) => key.replace('default/', ''));
  });
}

describe('several that wait for one GPU', () => {
  test('get it in turn: a whole one leaves no slice, and a slice no whole one', () => {
    expect(lineOf(node(1, SEVEN), 'gpu', '1g.10gb')).toEqual([NAMES, undefined]);
    expect(lineOf(node(1, SEVEN), '1g.10gb', 'gpu')).toEqual([['gpu-0-1g-10gb-6'], undefined]);
    expect(lineOf(node(1, [{ device: 'gpu-0' }]), '1g.10gb', 'gpu')).toEqual([['gpu-0'], undefined]);
  });

  test('share the slices of one that ends, and nobody else ends for the second', () => {
    const world = node(2, [{ device: 'gpu-1' }, { device: 'gpu-0' }]);
    // The scheduler might spread the two over both GPUs, if both were free.
    expect(lineOf(world, '1g.10gb', '3g.40gb', 'gpu')).toEqual([['gpu-0'], [], undefined]);
  });
});

test('who takes longer than a minute to end is waited for no more', () => {
  const world = node(2, [{ device: 'gpu-1' }, ...SEVEN]);
  for (const { device } of SEVEN) tell(world, device);
  expect(victims(world, 'gpu')).toEqual([]);
  world.clock.at += 60_000;
  expect(victims(world, 'gpu')).toEqual(['gpu-1']);
});

test('whoever leaves a device that another claim has, too, is not waited for', () => {
  const foreign = ['gpu-0-1g-10gb-3'];
  for (const [shape, found] of [[{}, []] as const, [{ foreign }, undefined] as const]) {
    const world = node(1, SEVEN, shape);
    for (const { device } of SEVEN) tell(world, device);
    expect(victims(world, 'gpu')).toEqual(found);
  }
});

test('a claim of a pod that has ended is waited for, and nobody ends meanwhile', () => {
  const world = node(2, [{ device: 'gpu-1' }, ...SEVEN]);
  const { pods, instances, resourceClaims } = world.caches;
  for (const { device } of SEVEN) {
    tell(world, device);
    const [pod, instance] = [pods.store.get(`default/${device}-1`), instances.store.get(`default/${device}`)];
    if (pod) pods.remove(pod);
    if (instance) instances.remove(instance);
  }
  expect('place' in world.inventory.grant(requestFor('gpu'))).toBe(false);
  expect(victims(world, 'gpu')).toEqual([]);
  for (const { device } of SEVEN) {
    const claim = resourceClaims.store.get(`default/${device}-1`);
    if (claim) resourceClaims.remove(claim);
  }
  expect('place' in world.inventory.grant(requestFor('gpu'))).toBe(true);
});
