import { describe, expect, test } from 'vitest';
import { WaitingLine } from '../../../src/controllers/gpu-instance/waiting-line.ts';
import type { GpuInstanceSpec, GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { claimOn, gpuInstance, gpuNode, inventoryOf, placeRequest } from '../../support/inventory-world.ts';

/** A line in front of one node with eight GPUs, some of which are rented. */
function lineWith(...rented: { name: string; count: number; type?: GpuInstanceSpec['type'] }[]) {
  const instances = rented.map(({ name, count, type = 'OnDemand' }) =>
    gpuInstance(name, { type }, { claim: claimOn('n', { gpuCount: count }) }),
  );
  const { inventory, caches } = inventoryOf({ nodes: [gpuNode('n')], instances });
  const line = new WaitingLine(inventory);
  const wait = (name: string, count: number, type: GpuInstanceSpec['type'] = 'OnDemand'): void =>
    line.add(`default/${name}`, gpuInstance(name, { type }), placeRequest({ type, gpu: { count } }));
  return { line, wait, caches };
}

test('on demand comes first, then the older one; one that needs more than is free does not count', () => {
  const { line, wait } = lineWith({ name: 'other', count: 4 });
  wait('spot', 1, 'Interruptible');
  wait('b', 2);
  wait('a', 2);
  wait('large', 8);
  expect(line.ready()).toEqual(['default/a', 'default/b', 'default/spot']);
  expect(line.before('default/b', gpuInstance('b'))).toBe('default/a');
  expect(line.before('default/a', gpuInstance('a'))).toBeUndefined();
});

test('an instance is ready to preempt when the preemptions would be enough', () => {
  const { line, wait, caches } = lineWith(
    { name: 'sure', count: 4 },
    { name: 'spot', count: 4, type: 'Interruptible' },
  );
  wait('large', 8);
  wait('late', 8, 'Interruptible');
  expect(line.preempting(0)).toEqual([]);
  caches.instances.remove(gpuInstance('sure'));
  expect(line.preempting(0)).toEqual(['default/large']);
  expect(line.ready()).toEqual([]);
});

test('a removed instance is not in line', () => {
  const { line, wait } = lineWith();
  wait('a', 1);
  line.remove('default/a');
  expect([line.size, line.ready(), line.preempting(0)]).toEqual([0, [], []]);
});

test('no more instances are woken than free places would serve, and the next are woken when the first has its place', () => {
  const { line, wait, caches } = lineWith({ name: 'other', count: 6 });
  for (const name of ['a', 'b', 'c', 'd']) wait(name, 1);
  expect(line.ready()).toEqual(['default/a', 'default/b']);
  caches.instances.upsert(gpuInstance('a', {}, { claim: claimOn('n') }));
  line.remove('default/a');
  expect(line.ready()).toEqual(['default/b']);
});

// Tenants choose these: they must not make every request one of its own kind.
test('requests that differ in image, nodes to avoid or disk are tried together', () => {
  const { inventory } = inventoryOf({ nodes: [gpuNode('n')] });
  let tries = 0;
  const counting: ConstructorParameters<typeof WaitingLine>[0] = {
    version: 1,
    placesFor: () => 0,
    preempt: () => undefined,
    hasPlace: (request) => {
      tries += 1;
      return inventory.hasPlace({ ...request, gpu: { count: 9 } });
    },
  };
  const line = new WaitingLine(counting);
  for (let index = 0; index < 1_000; index += 1) {
    const request = placeRequest({ image: `image-${index}`, avoid: new Set([`n-${index}`]), diskGb: 1 + index });
    line.add(`default/i-${index}`, gpuInstance(`i-${index}`), request);
  }
  expect(line.before('default/z', gpuInstance('z'))).toBeUndefined();
  expect(tries).toBe(1);
});

test('who leaves the line lets others have a look', () => {
  const { line, wait } = lineWith();
  let looks = 0;
  line.onChange(() => (looks += 1));
  wait('a', 1);
  line.remove('default/a');
  line.remove('default/a');
  expect(looks).toBe(1);
});

describe('preemption', () => {
  const NOW = Date.UTC(2026, 0, 1);
  const spot = (name: string, node: string, gpuCount: number, status: GpuInstanceStatus = {}) =>
    gpuInstance(
      name,
      { type: 'Interruptible' },
      { claim: claimOn(node, { gpuCount }), diskPersistent: true, ...status },
    );
  const leaving = (at: number) => ({ ending: { reason: 'Preempted', message: '', at: new Date(at).toISOString() } });

  /** A node `a` whose instance is leaving since a while, and a node `b` with eight interruptible instances. */
  function stuckWorld(forMs: number) {
    const spots = Array.from({ length: 8 }, (_, index) => spot(`spot-${index}`, 'b', 1));
    const instances = [spot('stuck', 'a', 8, leaving(NOW - forMs)), ...spots];
    const world = inventoryOf({ nodes: [gpuNode('a'), gpuNode('b')], instances }, NOW);
    const line = new WaitingLine(world.inventory);
    const request = placeRequest({ gpu: { count: 1 } });
    const names = Array.from({ length: 8 }, (_, index) => `w-${index}`);
    for (const name of names) line.add(`default/${name}`, gpuInstance(name), request);
    /** As a run of the controller does, without its writes. */
    const ask = (name: string, now = NOW) => {
      const found = line.preempt(`default/${name}`, request, now);
      for (const { key } of found?.victims ?? []) {
        const [, victim = ''] = key.split('/');
        const next = spot(victim, 'b', 1, leaving(now));
        world.caches.instances.upsert({ ...next, metadata: { ...next.metadata, resourceVersion: '2' } });
      }
      return found;
    };
    return { ...world, line, request, names, ask };
  }

  test('a place is not waited for behind an instance that does not end', () => {
    const { names, ask } = stuckWorld(61_000);
    const found = names.map((name) => ask(name));
    expect(found.map((one) => [one?.place.node, one?.victims.length])).toEqual(names.map(() => ['b', 1]));
    expect(new Set(found.flatMap((one) => one?.victims.map(({ key }) => key))).size).toBe(8);
  });

  test('each waits for a place of its own, and others preempt at once', () => {
    const spots = Array.from({ length: 8 }, (_, index) => spot(`spot-${index}`, 'b', 1));
    const instances = [
      spot('going', 'a', 1, leaving(NOW)),
      gpuInstance('sure', {}, { claim: claimOn('a', { gpuCount: 7 }) }),
    ];
    const { inventory } = inventoryOf(
      { nodes: [gpuNode('a'), gpuNode('b')], instances: [...instances, ...spots] },
      NOW,
    );
    const line = new WaitingLine(inventory);
    const request = placeRequest({ gpu: { count: 1 } });
    for (const name of ['x', 'y']) line.add(`default/${name}`, gpuInstance(name), request);
    expect(line.preempt('default/x', request, NOW)).toMatchObject({ place: { node: 'a' }, victims: [] });
    expect(line.preempt('default/y', request, NOW)).toMatchObject({ place: { node: 'b' }, victims: [{}] });
    expect(line.preempt('default/x', request, NOW)).toMatchObject({ place: { node: 'a' }, victims: [] });
    line.remove('default/x');
    expect(line.preempt('default/y', request, NOW)).toMatchObject({ place: { node: 'a' }, victims: [] });
  });

  test('a place that another instance took is not waited for', () => {
    const { line, caches, ask } = stuckWorld(0);
    expect(ask('w-0')).toMatchObject({ place: { node: 'a' }, victims: [] });
    expect(line.preempting(NOW)).toEqual([]);
    const taker = gpuInstance('taker', {}, { claim: claimOn('a', { gpuCount: 8 }) });
    caches.instances.remove(spot('stuck', 'a', 8));
    caches.instances.upsert(taker);
    expect(line.preempting(NOW)).toContain('default/w-0');
  });

  test('to ask again for the same place is no change', () => {
    const { line, ask } = stuckWorld(0);
    let looks = 0;
    line.onChange(() => (looks += 1));
    for (let turn = 0; turn < 3; turn += 1) ask('w-0');
    expect(looks).toBe(1);
  });

  test('the place of an instance that does not end is given up after a minute, without a change of any object', () => {
    const { line, clock, ask } = stuckWorld(0);
    expect(ask('w-0')).toMatchObject({ place: { node: 'a' }, victims: [] });
    expect(line.preempting(NOW)).toEqual([]);
    expect(line.staleAt).toBe(NOW + 60_000);
    clock.at = NOW + 60_000;
    expect(line.preempting(clock.at)).toContain('default/w-0');
    expect(ask('w-0', clock.at)).toMatchObject({ place: { node: 'b' }, victims: [{}] });
  });

  test('instances that could wait for the same place do not all wait for it', () => {
    const { line } = stuckWorld(0);
    // Node a is about to have eight places, one for each.
    expect(line.preempting(NOW)).toEqual([]);
    for (const name of ['late-1', 'late-2']) {
      line.add(`default/${name}`, gpuInstance(name), placeRequest({ gpu: { count: 1 } }));
    }
    expect(line.preempting(NOW)).toEqual(['default/late-1', 'default/late-2']);
  });
});
