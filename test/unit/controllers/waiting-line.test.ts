import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { WaitingLine } from '../../../src/controllers/gpu-instance/waiting-line.ts';
import type { GpuInstance, GpuInstanceSpec, GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { claimOn, gpuInstance, gpuNode, gpuPool, inventoryOf, placeRequest } from '../../support/inventory-world.ts';

/** A line in front of one node with eight GPUs, some of which are rented. */
function lineWith(...rented: { name: string; count: number; type?: GpuInstanceSpec['type'] }[]) {
  const instances = rented.map(({ name, count, type = 'OnDemand' }) =>
    gpuInstance(name, { type }, { claim: claimOn('n', { gpuCount: count }) }),
  );
  const { inventory, caches, clock } = inventoryOf({ nodes: [gpuNode('n')], instances });
  const line = new WaitingLine(inventory, clock);
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

// Nobody wakes it when those before it have theirs, so its status would say for ever that it waits for them.
test('one that no offer serves at its price has its turn at once', () => {
  const { line, wait, caches } = lineWith();
  const pool = gpuPool('default', { prices: [{ product: '*', onDemand: '2', interruptible: '1' }] });
  caches.pools.upsert({ ...pool, metadata: { ...pool.metadata, resourceVersion: '2' } });
  wait('a', 2);
  const request = placeRequest({ gpu: { count: 2 }, maxPrice: { perHour: '3', currency: undefined } });
  line.add('default/poor', gpuInstance('poor'), request);
  expect(line.before('default/poor', gpuInstance('poor'))).toBeUndefined();
  expect(line.grant('default/poor', request)).toMatchObject({ refusal: 'PriceTooHigh' });
});

test('an instance is ready to preempt when the preemptions would be enough', () => {
  const { line, wait, caches } = lineWith(
    { name: 'sure', count: 4 },
    { name: 'spot', count: 4, type: 'Interruptible' },
  );
  wait('large', 8);
  wait('late', 8, 'Interruptible');
  expect(line.preempting()).toEqual([]);
  caches.instances.remove(gpuInstance('sure'));
  expect(line.preempting()).toEqual(['default/large']);
  expect(line.ready()).toEqual([]);
});

test('a removed instance is not in line', () => {
  const { line, wait } = lineWith();
  wait('a', 1);
  line.remove('default/a');
  expect([line.size, line.ready(), line.preempting()]).toEqual([0, [], []]);
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
test('requests that differ in memory, offer, image, nodes to avoid or disk are tried together', () => {
  const { inventory, clock } = inventoryOf({ nodes: [gpuNode('n')] });
  let tries = 0;
  const counting: ConstructorParameters<typeof WaitingLine>[0] = {
    version: 1,
    classes: {},
    offerIdsFor: (request) => inventory.offerIdsFor(request),
    placesFor: () => 0,
    cheapest: () => undefined,
    preempt: () => undefined,
    grant: (request) => inventory.grant(request),
    hasPlace: (request) => {
      tries += 1;
      return inventory.hasPlace({ ...request, gpu: { count: 9 } });
    },
  };
  const line = new WaitingLine(counting, clock);
  for (let index = 0; index < 1_000; index += 1) {
    const request = placeRequest({
      image: `image-${index}`,
      avoid: new Set([`n-${index}`]),
      diskGb: 1 + index,
      offerDiskSpace: 1 + index,
      gpu: { count: 1, memoryMb: 1 + index },
    });
    line.add(`default/i-${index}`, gpuInstance(`i-${index}`), request);
  }
  expect(line.before('default/z', gpuInstance('z'))).toBeUndefined();
  expect(tries).toBe(1);
});

test('who has a disk that a free place cannot mount holds up nobody, and is held up by nobody without one', () => {
  const nodes = [gpuNode('kept', { labels: { disks: 'kept' } }), gpuNode('local', { labels: { disks: 'local' } })];
  const pools = ['kept', 'local'].map((name) =>
    gpuPool(name, {
      nodeSelector: { disks: name },
      ...(name === 'kept' && { disk: { maxGb: 1024, storageClassName: 'network' } }),
    }),
  );
  const full = gpuInstance('full', {}, { claim: claimOn('kept', { gpuCount: 8, pool: 'kept' }) });
  const { inventory, clock } = inventoryOf({
    nodes,
    pools,
    instances: [full],
    storageClasses: [{ metadata: { name: 'network' }, provisioner: 'disks' }],
  });
  for (const [first, second] of [
    [true, false],
    [false, true],
  ]) {
    const line = new WaitingLine(inventory, clock);
    line.add('default/a', gpuInstance('a'), placeRequest({ persistent: first }));
    line.add('default/b', gpuInstance('b'), placeRequest({ persistent: second }));
    const free = first ? 'b' : 'a';
    expect(line.ready()).toEqual([`default/${free}`]);
    expect(line.before('default/z', gpuInstance('z'))).toBe(`default/${free}`);
  }
});

test('a change of what nodes have for rent puts waiters together anew', () => {
  const { line, caches } = lineWith();
  const request = (memoryMb: number) => placeRequest({ gpu: { count: 1, memoryMb } });
  line.add('default/small', gpuInstance('small'), request(40_000));
  line.add('default/large', gpuInstance('large'), request(90_000));
  expect(line.ready()).toEqual(['default/small']);
  const { metadata, ...node } = gpuNode('n', { labels: { 'nvidia.com/gpu.memory': '97871' } });
  caches.nodes.upsert({ ...node, metadata: { ...metadata, resourceVersion: '2' } });
  expect(line.ready()).toEqual(['default/large', 'default/small']);
  line.remove('default/large');
  expect(line.ready()).toEqual(['default/small']);
});

test('who waits is told anew when a price puts the offers out of its reach, and not when nothing changes for it', () => {
  const { line, caches } = lineWith({ name: 'full', count: 8 });
  const request = placeRequest({ gpu: { count: 1 }, maxPrice: { perHour: '2', currency: undefined } });
  line.add('default/poor', gpuInstance('poor'), request);
  line.add('default/rich', gpuInstance('rich'), placeRequest({ gpu: { count: 1 } }));
  const price = (onDemand: string, resourceVersion: string) => {
    const pool = gpuPool('default', { prices: [{ product: '*', onDemand, interruptible: '0.5' }] });
    caches.pools.upsert({ ...pool, metadata: { ...pool.metadata, resourceVersion } });
  };
  price('2', '2');
  line.outdated();
  price('3', '3');
  expect(line.outdated()).toEqual(['default/poor']);
  expect(line.grant('default/poor', request)).toMatchObject({ refusal: 'PriceTooHigh' });
  expect(line.outdated()).toEqual([]);
  price('4', '4');
  expect(line.outdated()).toEqual(['default/poor']);
  price('1', '5');
  expect(line.outdated()).toEqual(['default/poor']);
  expect(line.grant('default/poor', request)).toMatchObject({ refusal: 'NoCapacity' });
});

test('a look for preemptions that takes long is cut, and the next goes on where it stopped', () => {
  const { inventory, clock } = inventoryOf({ nodes: [gpuNode('n')] });
  const tried: (number | undefined)[] = [];
  const slow: ConstructorParameters<typeof WaitingLine>[0] = {
    version: 1,
    classes: {},
    // Each is a group of its own.
    offerIdsFor: ({ gpu }) => [gpu?.memoryMb ?? 0],
    grant: (request) => inventory.grant(request),
    placesFor: () => 0,
    cheapest: () => undefined,
    hasPlace: () => false,
    preempt: ({ gpu }) => {
      tried.push(gpu?.memoryMb);
      clock.at += 20;
      return undefined;
    },
  };
  const line = new WaitingLine(slow, clock);
  for (let index = 1; index <= 8; index += 1) {
    const request = placeRequest({ gpu: { count: 1, memoryMb: index } });
    line.add(`default/w-${index}`, gpuInstance(`w-${index}`), request);
  }
  const looks: [number, boolean][] = [];
  for (let look = 0; look < 3; look += 1) {
    line.preempting();
    looks.push([tried.length, line.hasMore]);
  }
  expect(looks).toEqual([
    [3, true],
    [6, true],
    [8, false],
  ]);
  expect(tried).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
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
    const line = new WaitingLine(world.inventory, world.clock);
    const request = placeRequest({ gpu: { count: 1 } });
    const names = Array.from({ length: 8 }, (_, index) => `w-${index}`);
    for (const name of names) line.add(`default/${name}`, gpuInstance(name), request);
    /** As a run of the controller does, without its writes. */
    const ask = (name: string, now = NOW) => {
      const found = line.preempt(`default/${name}`, request);
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
    const { inventory, clock } = inventoryOf(
      { nodes: [gpuNode('a'), gpuNode('b')], instances: [...instances, ...spots] },
      NOW,
    );
    const line = new WaitingLine(inventory, clock);
    const request = placeRequest({ gpu: { count: 1 } });
    for (const name of ['x', 'y']) line.add(`default/${name}`, gpuInstance(name), request);
    expect(line.preempt('default/x', request)).toMatchObject({ place: { node: 'a' }, victims: [] });
    expect(line.preempt('default/y', request)).toMatchObject({ place: { node: 'b' }, victims: [{}] });
    expect(line.preempt('default/x', request)).toMatchObject({ place: { node: 'a' }, victims: [] });
    line.remove('default/x');
    expect(line.preempt('default/y', request)).toMatchObject({ place: { node: 'a' }, victims: [] });
  });

  // The line reserves such a place by itself a moment later: who says until then that there is none says two things in turns.
  test('one for which nobody may end finds the place that becomes free and that nobody before it waits for', () => {
    const request = placeRequest({ gpu: { count: 8 } });
    const lineOf = (going: GpuInstance) => {
      const { inventory, clock } = inventoryOf({ nodes: [gpuNode('a')], instances: [going] }, NOW);
      const line = new WaitingLine(inventory, clock);
      line.add('default/paused', gpuInstance('paused'), request);
      return line;
    };
    expect(lineOf(spot('stays', 'a', 8)).coming('default/paused', request)).toBeUndefined();
    const line = lineOf(spot('going', 'a', 8, leaving(NOW)));
    expect(line.coming('default/paused', request)).toMatchObject({ place: { node: 'a' }, victims: [] });
    expect(line.reserved('default/paused')).toMatchObject({ node: 'a' });
    line.add('default/first', gpuInstance('first'), request);
    expect(line.preempt('default/first', request)).toMatchObject({ place: { node: 'a' }, victims: [] });
    expect(line.coming('default/paused', request)).toBeUndefined();
  });

  test('a place that another instance took is not waited for', () => {
    const { line, caches, ask } = stuckWorld(0);
    expect(ask('w-0')).toMatchObject({ place: { node: 'a' }, victims: [] });
    expect(line.preempting()).toEqual([]);
    const taker = gpuInstance('taker', {}, { claim: claimOn('a', { gpuCount: 8 }) });
    caches.instances.remove(spot('stuck', 'a', 8));
    caches.instances.upsert(taker);
    expect(line.preempting()).toContain('default/w-0');
  });

  test('who waits for a place that another one got is told once', () => {
    const going = gpuInstance('going', {}, { claim: claimOn('n', { gpuCount: 8 }), ...leaving(NOW) });
    const { inventory, caches, clock } = inventoryOf({ nodes: [gpuNode('n')], instances: [going] }, NOW);
    const line = new WaitingLine(inventory, clock);
    line.add('default/behind', gpuInstance('behind'), placeRequest({ gpu: { count: 8 } }));
    expect(line.preempting()).toEqual([]);
    expect(line.reserved('default/behind')).toMatchObject({ node: 'n' });
    expect(line.outdated()).toEqual(['default/behind']);
    caches.instances.remove(going);
    caches.instances.upsert(gpuInstance('ahead', {}, { claim: claimOn('n', { gpuCount: 8 }) }));
    line.granted('default/ahead', 'n');
    line.preempting();
    expect(line.reserved('default/behind')).toBeUndefined();
    expect([line.outdated(), line.outdated()]).toEqual([['default/behind'], []]);
  });

  test('who takes the place of one behind leaves its own to that one, and not to those who ended for it', () => {
    const of = (node: string) => [0, 1].map((index) => spot(`${node}-${index}`, node, 4));
    const { inventory, caches, clock } = inventoryOf(
      { nodes: [gpuNode('x'), gpuNode('y')], instances: [...of('x'), ...of('y')] },
      NOW,
    );
    const line = new WaitingLine(inventory, clock);
    const request = placeRequest({ gpu: { count: 8 } });
    let version = 1;
    const put = (instance: GpuInstance): void => {
      version += 1;
      caches.instances.upsert({ ...instance, metadata: { ...instance.metadata, resourceVersion: String(version) } });
    };
    const nodes = ['a', 'b'].map((name) => {
      line.add(`default/${name}`, gpuInstance(name), request);
      const found = line.preempt(`default/${name}`, request);
      const node = found?.place.node ?? '';
      for (const { key } of found?.victims ?? []) put(spot(key.split('/')[1] ?? '', node, 4, leaving(NOW)));
      return node;
    });
    const [ofA = '', ofB = ''] = nodes;
    expect(nodes.toSorted()).toEqual(['x', 'y']);
    // All have ended for the one behind, and one of two for the one ahead.
    for (const name of [`${ofB}-0`, `${ofB}-1`, `${ofA}-0`]) put(gpuInstance(name, { type: 'Interruptible' }));
    const granted = line.grant('default/a', request);
    expect(granted).toMatchObject({ place: { node: ofB } });
    put(gpuInstance('a', {}, { claim: claimOn(ofB, { gpuCount: 8 }) }));
    line.granted('default/a', ofB);
    const back = placeRequest({ type: 'Interruptible', gpu: { count: 4 } });
    expect(line.grant(`default/${ofA}-0`, back)).toHaveProperty('refusal');
    expect(line.preempt('default/b', request)).toMatchObject({ place: { node: ofA }, victims: [] });
  });

  test('whatever order gangs run and instances end in, whoever ended for a gang is not back before all gangs run', () => {
    const [NODES, GANGS] = [6, 4];
    const acts = fc.array(fc.record({ kind: fc.constantFrom('run', 'fail', 'end', 'show', 'lead'), of: fc.nat(23) }), {
      minLength: 40,
      maxLength: 160,
    });
    const life = fc.property(acts, (some) => {
      const names = Array.from({ length: NODES }, (_, node) => `n-${node}`);
      const spots = names.flatMap((node) => [0, 1, 2, 3].map((index) => spot(`${node}-${index}`, node, 2)));
      const { inventory, caches, clock } = inventoryOf(
        { nodes: names.map((name) => gpuNode(name)), instances: spots },
        NOW,
      );
      let line = new WaitingLine(inventory, clock);
      let version = 1;
      const put = (instance: GpuInstance): void => {
        version += 1;
        caches.instances.upsert({ ...instance, metadata: { ...instance.metadata, resourceVersion: String(version) } });
      };
      const request = placeRequest({ gpu: { count: 8 } });
      const back = placeRequest({ type: 'Interruptible', gpu: { count: 2 } });
      const gangs = Array.from({ length: GANGS }, (_, index) => `gang-${index}`);
      const told = new Map<string, string>();
      /** Gangs whose status says that their place is coming. */
      const coming = new Set<string>();
      const gone = new Set<string>();
      const running = new Set<string>();
      const show = (name: string): void => {
        const node = told.get(name);
        if (node === undefined || gone.has(name)) return;
        put(spot(name, node, 2, leaving(NOW)));
      };
      const run = (gang: string, fails: boolean): void => {
        const key = `default/${gang}`;
        if (running.has(gang)) return;
        line.add(key, gpuInstance(gang), request);
        if (line.before(key, gpuInstance(gang)) !== undefined) return;
        const granted = line.grant(key, request);
        if ('place' in granted) {
          running.add(gang);
          const { node } = granted.place;
          put(gpuInstance(gang, {}, { claim: claimOn(node, { gpuCount: 8 }) }));
          return line.granted(key, node);
        }
        const found = line.preempt(key, request);
        const victims = found?.victims ?? [];
        if (found !== undefined) coming.add(gang);
        if (victims.length > 0) line.telling(key);
        // The API server refuses one of these writes, or takes all.
        const reached = fails ? victims.slice(1) : victims;
        for (const victim of reached) told.set(victim.key.split('/')[1] ?? '', victim.claim.node);
        if (fails) line.pause(key);
      };
      const end = (name: string): void => {
        if (!told.has(name) || gone.has(name)) return;
        gone.add(name);
        const waits = gpuInstance(name, { type: 'Interruptible' });
        put(waits);
      };
      const backOf = (name: string): boolean => {
        const key = `default/${name}`;
        const waits = gpuInstance(name, { type: 'Interruptible' });
        return line.before(key, waits) === undefined && 'place' in line.grant(key, back);
      };
      /** Another leads, who knows what is stored. */
      const lead = (): void => {
        for (const name of told.keys()) show(name);
        line = new WaitingLine(inventory, clock);
        for (const gang of coming) if (!running.has(gang)) line.expect(`default/${gang}`, gpuInstance(gang));
      };
      const act = (kind: string, of: number): void => {
        const name = `n-${of % NODES}-${Math.floor(of / NODES) % 4}`;
        if (kind === 'end') end(name);
        else if (kind === 'show') show(name);
        else if (kind === 'lead') lead();
        else run(gangs[of % GANGS] ?? '', kind === 'fail');
        const early = running.size < GANGS ? [...gone].filter((one) => backOf(one)) : [];
        expect(early).toEqual([]);
      };
      for (const { kind, of } of some) act(kind, of);
      // All that is under way comes to its end.
      for (let round = 0; round < 4 * NODES && running.size < GANGS; round += 1) {
        for (const [index] of gangs.entries()) act('run', index);
        for (const name of told.keys()) show(name);
        for (const name of told.keys()) end(name);
      }
      expect(running.size).toBe(GANGS);
      expect(told.size).toBe(4 * GANGS);
    });
    fc.assert(life, { numRuns: 1000 });
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
    expect(line.preempting()).toEqual([]);
    expect(line.staleAt).toBe(NOW + 60_000);
    clock.at = NOW + 60_000;
    expect(line.preempting()).toContain('default/w-0');
    expect(ask('w-0', clock.at)).toMatchObject({ place: { node: 'b' }, victims: [{}] });
  });

  test('who has a place coming by now, and did not ask, is told once', () => {
    const { line } = stuckWorld(0);
    line.preempting();
    expect(line.outdated()).toEqual(Array.from({ length: 8 }, (_, index) => `default/w-${index}`));
    line.preempting();
    expect(line.outdated()).toEqual([]);
  });

  test('instances that could wait for the same place do not all wait for it', () => {
    const { line } = stuckWorld(0);
    // Node a is about to have eight places, one for each.
    expect(line.preempting()).toEqual([]);
    for (const name of ['x-1', 'x-2']) {
      line.add(`default/${name}`, gpuInstance(name), placeRequest({ gpu: { count: 1 } }));
    }
    expect(line.preempting()).toEqual(['default/x-1', 'default/x-2']);
  });

  test('who is ahead may take a place that is reserved for one behind, who then needs another', () => {
    const { line, ask } = stuckWorld(0);
    expect(line.preempting()).toEqual([]);
    line.add('default/early', gpuInstance('early'), placeRequest({ gpu: { count: 1 } }));
    expect(line.preempting()).toEqual(['default/w-7']);
    expect(ask('w-7')).toMatchObject({ place: { node: 'b' }, victims: [{}] });
  });

  /**
   * A node of eight interruptible instances of one GPU each, and a line that is served until nothing moves: as the
   * controller does it, with `leave` in place of the pods that end. Nobody who is preempted pauses here.
   */
  function fullWorld(...wanting: string[]) {
    const spots = Array.from({ length: 8 }, (_, index) => spot(`spot-${index}`, 'n', 1));
    const { inventory, caches, clock } = inventoryOf({ nodes: [gpuNode('n')], instances: spots }, NOW);
    const line = new WaitingLine(inventory, clock);
    const told = new Map<string, number>();
    let version = 1;
    const put = (instance: GpuInstance): void => {
      version += 1;
      caches.instances.upsert({ ...instance, metadata: { ...instance.metadata, resourceVersion: String(version) } });
    };
    const waiting = new Map<string, { instance: GpuInstance; request: ReturnType<typeof placeRequest> }>();
    const wait = (name: string, count: number, type: GpuInstanceSpec['type'] = 'OnDemand'): void => {
      const instance = gpuInstance(name, { type, gpu: { count } });
      waiting.set(name, { instance, request: placeRequest({ type, gpu: { count } }) });
      put(instance);
    };
    /** One run of an instance that waits. */
    const run = (name: string): void => {
      const { instance, request } = waiting.get(name) ?? {};
      if (instance === undefined || request === undefined) return;
      const key = `default/${name}`;
      const before = line.before(key, instance);
      line.add(key, instance, request);
      if (before !== undefined) return;
      const granted = line.grant(key, request);
      if ('place' in granted) {
        waiting.delete(name);
        const gpuCount = granted.place.offerClass.gpuCount;
        put({ ...instance, status: { claim: claimOn(granted.place.node, { gpuCount }), diskPersistent: true } });
        line.remove(key);
        return;
      }
      for (const { key: victim } of (request.type === 'OnDemand' && line.preempt(key, request)?.victims) || []) {
        told.set(victim, (told.get(victim) ?? 0) + 1);
        const one = caches.instances.store.get(victim);
        if (one !== undefined) put({ ...one, status: { ...one.status, ...leaving(clock.at) } });
      }
    };
    const holding = (): string[] =>
      [...caches.instances.store.values()]
        .filter(({ status }) => status?.claim !== undefined && status.ending === undefined)
        .map(({ metadata }) => metadata.name);
    /** One victim has ended, and asks for another place at once. */
    const leave = (name: string): void => {
      wait(name, 1, 'Interruptible');
      run(name);
      serve();
    };
    const serve = (): void => {
      for (let turn = 0; turn < 20; turn += 1) {
        for (const key of [...line.ready(), ...line.preempting()]) run(key.split('/')[1] ?? '');
      }
    };
    const going = (): string[] =>
      [...caches.instances.store.values()]
        .filter(({ status }) => status?.ending !== undefined)
        .map(({ metadata }) => metadata.name);
    for (const name of wanting) wait(name, 8);
    for (const name of wanting) run(name);
    return { line, told, wait, run, leave, serve, holding, going, clock, inventory };
  }

  test('eight that end one after the other are each ended once, and the gang gets the node', () => {
    const { told, leave, holding, going } = fullWorld('big');
    expect(going()).toHaveLength(8);
    for (const name of going()) {
      expect(holding()).toEqual([]);
      leave(name);
    }
    expect(holding()).toEqual(['big']);
    expect([...told.values()]).toEqual(Array.from({ length: 8 }, () => 1));
  });

  test('a stream of small newcomers does not take what a gang waits for', () => {
    const { wait, run, leave, holding, going } = fullWorld('big');
    for (const [index, name] of going().entries()) {
      leave(name);
      for (const type of ['OnDemand', 'Interruptible'] as const) {
        wait(`late-${type}-${index}`, 1, type);
        run(`late-${type}-${index}`);
      }
    }
    expect(holding()).toEqual(['big']);
  });

  test('who would be served by reserved places alone is not woken, and holds up nobody', () => {
    const { line, wait, run, leave, going, holding } = fullWorld('big');
    for (const name of going().slice(0, 4)) leave(name);
    wait('late-1', 2);
    run('late-1');
    expect(line.ready()).toEqual([]);
    expect(line.before('default/late-2', gpuInstance('late-2'))).toBeUndefined();
    for (const name of going()) leave(name);
    expect(holding()).toEqual(['big']);
  });

  test('of two gangs before one node the first gets it, and nobody is ended for the second', () => {
    const { told, leave, run, holding, going } = fullWorld('a', 'b');
    for (const name of going()) {
      run('b');
      leave(name);
    }
    expect(holding()).toEqual(['a']);
    expect([...told.values()]).toEqual(Array.from({ length: 8 }, () => 1));
  });

  test('a gang whose place was chosen twice before anybody was told still has all of them told', () => {
    const { line } = fullWorld();
    const request = placeRequest({ gpu: { count: 8 } });
    line.add('default/big', gpuInstance('big'), request);
    expect(line.preempt('default/big', request)?.victims).toHaveLength(8);
    expect(line.preempt('default/big', request)?.victims).toHaveLength(8);
  });

  test('who is chosen for one, and not told yet, is not chosen for another too', () => {
    const { line } = fullWorld();
    const request = placeRequest({ gpu: { count: 2 } });
    for (const name of ['a', 'b']) line.add(`default/${name}`, gpuInstance(name), request);
    const victims = ['a', 'b'].map((name) => line.preempt(`default/${name}`, request)?.victims.map(({ key }) => key));
    expect(victims.map((some) => some?.length)).toEqual([2, 2]);
    expect(new Set(victims.flat()).size).toBe(4);
  });

  test('an instance whose run fails keeps the place that is reserved for it', () => {
    const { line, going, leave, holding, run, wait } = fullWorld('big');
    line.pause('default/big');
    for (const name of going()) leave(name);
    wait('late', 1);
    run('late');
    expect(holding()).toEqual([]);
    run('big');
    expect(holding()).toEqual(['big']);
  });

  test('who had a place reserved before a change of leader comes first for a minute, also if its runs fail', () => {
    const { inventory, clock } = inventoryOf({ nodes: [gpuNode('n')] }, NOW);
    const line = new WaitingLine(inventory, clock);
    line.expect('default/big', gpuInstance('big'));
    line.add('default/big', gpuInstance('big'), placeRequest({ gpu: { count: 8 }, image: 'not looked at' }));
    line.pause('default/big');
    const late = gpuInstance('late');
    line.add('default/late', late, placeRequest({ gpu: { count: 1 } }));
    expect(line.before('default/late', late)).toBe('default/big');
    expect(line.staleAt).toBe(NOW + 60_000);
    clock.at = NOW + 60_000;
    expect(line.before('default/late', late)).toBeUndefined();
    expect(line.staleAt).toBe(Number.POSITIVE_INFINITY);
  });

  test('a place that is waited for longer than a minute is no longer taken', () => {
    const { line, going, leave, holding, serve, clock } = fullWorld('big');
    line.pause('default/big');
    const [first = ''] = going();
    leave(first);
    expect(holding()).toEqual([]);
    clock.at += 60_000;
    serve();
    expect(holding()).toEqual([first]);
  });

  test('nor after a minute in which somebody set the clock back by hours', () => {
    const { line, going, leave, holding, serve, clock } = fullWorld('big');
    line.expect('default/gone', gpuInstance('gone'));
    line.pause('default/big');
    const [first = ''] = going();
    leave(first);
    clock.now = () => clock.at - 3 * 3_600_000;
    clock.at += 60_000;
    serve();
    expect(holding()).toEqual([first]);
  });
});
