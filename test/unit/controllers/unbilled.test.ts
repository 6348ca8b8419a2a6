import { describe, expect, test } from 'vitest';
import {
  type UnbilledPlace,
  unbilledPlaceOf,
  unbilledPlaceOfGone,
  unbilledRefusal,
} from '../../../src/controllers/gpu-instance/decide/unbilled.ts';
import { UnbilledPlaces } from '../../../src/controllers/gpu-instance/unbilled-places.ts';
import type { GpuInstance, GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { cacheOf, controllerWorld, held } from '../../support/controller-world.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import {
  type TenantLimit,
  tenantLimitSpecSchema,
  tenantLimitStatusSchema,
} from '../../../src/resources/tenants/tenant-limit.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';
import { INDEXES } from '../../../src/caches/indexes.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const START = Date.UTC(2026, 0, 1);
const iso = (ms: number): string => new Date(ms).toISOString();

/** A start that held GPUs and ended for this reason. */
function ended(from: number, to: number, { reason = 'Stopped', gpus = 8 } = {}): GpuInstanceStatus {
  return {
    incarnation: 1,
    lastProduct: { product: 'H100', gpuCount: gpus },
    stages: { claimed: iso(from), stopped: iso(to) },
    ending: { reason, message: '', at: iso(to) },
  };
}

function place(from: number, to: number, gpus: number): UnbilledPlace {
  return { from, to, gpus, image: '', isFaultOfCluster: false };
}

describe('what counts as held for nothing', () => {
  test.each(['Stopped', 'ImagePullFailed', 'InvalidImage', 'ContainerInvalid', 'PodDeleted'])('%s does', (reason) => {
    const place = { from: START, to: START + HOUR, gpus: 8, image: '', isFaultOfCluster: false };
    expect(unbilledPlaceOf(ended(START, START + HOUR, { reason }))).toEqual(place);
  });

  test.each(['NodeLost', 'Preempted', 'GPUUnhealthy'])('%s does not: it is no fault of the tenant', (reason) =>
    expect(unbilledPlaceOf(ended(START, START + HOUR, { reason }))).toBeUndefined(),
  );

  test.each(['ContainerNotCreated', 'AdmissionRejected', 'PlaceLost', 'PodFailed'])(
    '%s does, for a quarter: a disk that is never bound may be the doing of the tenant',
    (reason) => {
      const held = (minutes: number) =>
        unbilledPlaceOf(ended(START, START + minutes * MINUTE, { reason })) ?? expect.fail();
      const at = (minutes: number) =>
        unbilledRefusal({ past: [held(minutes)], billed: 0, unbilled: 0 }, 1, START + minutes * MINUTE);
      expect([at(29), at(31) === undefined]).toEqual([undefined, false]);
    },
  );

  test.each([
    [undefined, false],
    ['Stopped', false],
    ['ContainerNotCreated', true],
    ['Preempted', undefined],
    ['NodeLost', undefined],
  ] as const)('so does a place that went with its instance while %s ended it', (reason, isFaultOfCluster) => {
    const status = ended(START, START + HOUR, { reason: reason ?? '' });
    const held = { ...status, claim: claimOn('n', { grantedAt: iso(START) }) };
    const gone = unbilledPlaceOfGone({ status: reason ? held : { ...held, ending: undefined } }, START + MINUTE);
    expect(gone?.isFaultOfCluster).toBe(isFaultOfCluster);
  });

  test('nor does a start whose container ran, or one that still holds its place', () => {
    const status = ended(START, START + HOUR);
    expect(unbilledPlaceOf({ ...status, stages: { ...status.stages, started: iso(START) } })).toBeUndefined();
    expect(unbilledPlaceOf({ ...status, claim: claimOn('n') })).toBeUndefined();
  });
});

/**
 * GPU hours without a bill in so many hours, of a tenant that asks each minute for starts of 8 GPUs out of 64, none of
 * which ever runs, and gives each back after `holdMs`.
 */
function attack(hoursLong: number, holdMs: number): number {
  const past: UnbilledPlace[] = [];
  let held: UnbilledPlace[] = [];
  let gpuMs = 0;
  for (let now = START; now < START + hoursLong * HOUR; now += MINUTE) {
    past.push(...held.filter(({ to }) => to <= now));
    held = held.filter(({ to }) => to > now);
    for (;;) {
      const unbilled = held.length * 8;
      if (unbilled === 64 || unbilledRefusal({ past, billed: 0, unbilled }, 8, now) !== undefined) break;
      held.push(place(now, now + holdMs, 8));
      gpuMs += 8 * holdMs;
    }
  }
  return gpuMs / HOUR;
}

test('whoever holds places for nothing gets all of them once, and then few', () => {
  const [first, day] = [attack(1 / 60, 20 * MINUTE), attack(24, 20 * MINUTE)];
  expect(first).toBeCloseTo(64 / 3);
  // Of the 1,536 GPU hours of the day.
  expect(day - first).toBeLessThan(100);
  // Shorter holds, given back before any limit, gain nothing.
  for (const minutes of [1, 4, 10]) expect(attack(24, minutes * MINUTE)).toBeLessThan(130);
});

describe('an honest tenant', () => {
  const big = (count: number, minutes: number): UnbilledPlace[] =>
    Array.from({ length: count }, () => place(START, START + minutes * MINUTE, 1));

  test('rents a hundred GPUs at once whose image is slow', () => {
    expect(unbilledRefusal({ past: [], billed: 0, unbilled: 99 }, 1, START)).toBeUndefined();
  });

  test('may be wrong about an image, give up and try again', () => {
    const past = [place(START, START + 5_000, 8), place(START + MINUTE, START + 5 * MINUTE, 8)];
    expect(unbilledRefusal({ past, billed: 0, unbilled: 0 }, 8, START + 5 * MINUTE)).toBeUndefined();
  });

  test('whose hundred starts all failed waits five minutes, tries one, and doubles from there', () => {
    const past = big(100, 20);
    const at = (minute: number, billed: number, unbilled: number, wanted = 1) =>
      unbilledRefusal({ past, billed, unbilled }, wanted, START + minute * MINUTE);
    expect(at(24, 0, 0)?.until).toBe(START + 25 * MINUTE);
    expect(at(24, 0, 0)?.message).toContain('The next start is due at 2026-01-01T00:25:00.000Z.');
    expect(at(25, 0, 0, 8)).toBeUndefined();
    expect(at(25, 0, 1)?.message).toContain('waits until the containers of the others run');
    expect([at(26, 8, 0, 8), at(26, 8, 7), at(26, 8, 8)?.until === undefined]).toEqual([undefined, undefined, false]);
    // Six hours later nobody remembers.
    expect(at(20 + 360, 0, 99)).toBeUndefined();
  });

  test('that pays for more than it tries is never held up', () => {
    expect(unbilledRefusal({ past: big(100, 20), billed: 92, unbilled: 80 }, 8, START)).toBeUndefined();
  });
});

describe('what replicas remember', () => {
  function replica(instances: GpuInstance[], limits: TenantLimit[] = []) {
    const clock = fakeClock();
    clock.jumpWall(START + HOUR - clock.now());
    const cache = cacheOf<GpuInstance>(instances, INDEXES.instances);
    const places = new UnbilledPlaces({
      instances: cache.store,
      tenantLimits: cacheOf<TenantLimit>(limits).store,
      clock,
    });
    cache.store.onChange((change) => places.noteChange(change));
    return { cache, places, clock };
  }
  const claim = claimOn('n', { gpuCount: 8, grantedAt: iso(START) });

  test('is in the statuses that a new leader reads, in changes, and of instances that go', () => {
    const stopped = gpuInstance('one', {}, ended(START, START + HOUR - MINUTE));
    expect(replica([stopped]).places.refusal('default', 1, [])).toBeDefined();
    const { cache, places } = replica([
      gpuInstance('one', {}, { incarnation: 1, claim, stages: { claimed: iso(START) } }),
    ]);
    expect(places.refusal('default', 1, [])).toBeUndefined();
    cache.upsert({ ...stopped, metadata: { ...stopped.metadata, resourceVersion: '9' } });
    expect(places.refusal('default', 1, [])?.message).toContain('held 7.9 GPU hours');
    expect(places.refusal('other', 1, [])).toBeUndefined();
  });

  /** A TenantLimit as the controller keeps it after these replicas saw what they saw. */
  function kept({ held }: Pick<UnbilledPlaces, 'held'>, namespace = 'default'): TenantLimit {
    const status = tenantLimitStatusSchema.parse({ held: held(namespace) });
    return { metadata: { name: 'berth', namespace }, spec: tenantLimitSpecSchema.parse({}), status };
  }

  test('outlives the deletion of the instance and a restart of all replicas', () => {
    const stopped = gpuInstance('one', {}, ended(START, START + HOUR - MINUTE));
    const { cache, places } = replica([stopped]);
    cache.remove(stopped);
    const before = places.refusal('default', 1, []);
    expect(before?.message).toContain('held 7.9 GPU hours');
    const limit = kept({ held: (namespace) => places.held(namespace) });
    const next = replica([], [limit]).places;
    expect(next.refusal('default', 1, [])).toEqual(before);
    expect(next.refusal('other', 1, [])).toBeUndefined();
    // The same start in a status and in the TenantLimit counts once.
    expect(replica([stopped], [limit]).places.refusal('default', 1, [])).toEqual(before);
  });

  test('goes with its namespace, and is not held against who has the name later', () => {
    const stopped = gpuInstance('one', {}, ended(START, START + HOUR - MINUTE));
    const { cache, places } = replica([stopped]);
    const before = { metadata: { name: 'default', uid: 'first' } };
    const after = { metadata: { name: 'default', uid: 'second' } };
    places.noteNamespace({ key: 'default', before, after: { metadata: { ...before.metadata, resourceVersion: '2' } } });
    expect(places.held('default')).toBeDefined();
    places.noteNamespace({ key: 'default', before, after: undefined });
    // Its watch may be behind.
    cache.remove(stopped);
    places.noteNamespace({ key: 'default', before: undefined, after });
    expect([places.held('default'), places.refusal('default', 1, [])]).toEqual([undefined, undefined]);
  });

  test('is no longer than it was where the clock of the leader was ahead when a place was given back', async () => {
    const claimedAt = START + HOUR - MINUTE;
    const { cache, places, clock } = replica([
      gpuInstance('one', {}, { incarnation: 1, claim, stages: { claimed: iso(claimedAt) } }),
    ]);
    clock.jumpWall(2 * HOUR);
    const stopped = gpuInstance('one', {}, ended(claimedAt, clock.now()));
    cache.upsert({ ...stopped, metadata: { ...stopped.metadata, resourceVersion: '9' } });
    clock.jumpWall(-2 * HOUR);
    expect([places.refusal('default', 1, []), places.held('default')]).toEqual([undefined, undefined]);
    await clock.advance(3 * HOUR);
    expect([places.refusal('default', 1, []), places.held('default')]).toEqual([undefined, undefined]);
  });

  test('costs no write while it is little, and goes when it is old', async () => {
    const { places } = replica([gpuInstance('one', {}, ended(START + HOUR - 2 * MINUTE, START + HOUR - MINUTE))]);
    expect(places.held('default')).toBeUndefined();
    const much = replica([gpuInstance('one', {}, ended(START, START + HOUR - MINUTE))]);
    expect(much.places.held('default')?.places).toHaveLength(1);
    much.clock.jumpWall(6 * HOUR);
    expect(much.places.held('default')).toBeUndefined();
  });

  test('is bounded in the TenantLimit too', () => {
    const { places } = replica(
      Array.from({ length: 100 }, (_, index) => gpuInstance(`i-${index}`, {}, ended(START, START + HOUR - MINUTE))),
    );
    expect(kept({ held: (namespace) => places.held(namespace) }).status?.held?.places).toHaveLength(32);
  });

  test('is bounded, and counts each start once', () => {
    const { cache, places } = replica([]);
    const stopped = gpuInstance('one', {}, ended(START + HOUR / 2, START + HOUR - 1, { gpus: 1 }));
    for (let version = 1; version <= 1_000; version += 1) {
      const again = { ...stopped, metadata: { ...stopped.metadata, resourceVersion: String(version) } };
      cache.upsert({ ...again, status: { ...again.status, claim } });
      cache.upsert({ ...again, metadata: { ...again.metadata, resourceVersion: `${version}1` } });
    }
    expect(places.refusal('default', 1, [])).toBeUndefined();
  });
});

test('a tenant that held places for nothing waits, and takes nobody a place meanwhile', async () => {
  const world = controllerWorld();
  const now = world.clock.now();
  world.instances.upsert(gpuInstance('idler', { powerState: 'Stopped' }, ended(now - HOUR, now - 1_000)));
  world.instances.upsert(gpuInstance('one'));
  const result = await world.reconcile('one');
  const ready = world.instances.store.get('default/one')?.status?.conditions?.find(({ type }) => type === 'Ready');
  expect(ready?.reason).toBe('TenantLimit');
  expect(ready?.message).toContain('ended before their containers ran');
  // It looks again when the pause is over: a quarter of the hour.
  expect(result).toEqual({ requeueAfterMs: (HOUR - 1_000) / 4 - 1_000 });
  expect(world.line.size).toBe(0);
});

test('the one start of such a tenant gets the place that others leave for it', async () => {
  const { instances, reconcile, clock } = controllerWorld();
  instances.upsert(gpuInstance('idler', { powerState: 'Stopped' }, ended(clock.now() - HOUR, clock.now() - 1_000)));
  clock.jumpWall(HOUR);
  const ending = { reason: 'Stopped', message: '', at: iso(clock.now()) };
  const full = gpuInstance('full', {}, { claim: claimOn('n', { gpuCount: 8 }), incarnation: 1, ending });
  const leaving = { ...full, metadata: { ...full.metadata, namespace: 'other' } };
  instances.upsert(leaving);
  instances.upsert(held(gpuInstance('one')));
  const one = () => instances.store.get('default/one')?.status;
  await reconcile('one');
  expect(one()?.reserved).toMatchObject({ node: 'n' });
  instances.remove(leaving);
  await reconcile('one');
  expect(one()?.claim).toMatchObject({ node: 'n' });
});

test('others end for one start of such a tenant, also where two ask at once', async () => {
  const { instances, reconcile, clock } = controllerWorld();
  instances.upsert(gpuInstance('idler', { powerState: 'Stopped' }, ended(clock.now() - HOUR, clock.now() - 1_000)));
  clock.jumpWall(HOUR);
  const spots = Array.from({ length: 8 }, (_, index) => {
    const spot = gpuInstance(`spot-${index}`, { type: 'Interruptible' }, { claim: claimOn('n'), incarnation: 1 });
    return held({ ...spot, metadata: { ...spot.metadata, namespace: 'other' } });
  });
  for (const one of [...spots, held(gpuInstance('one')), held(gpuInstance('two'))]) instances.upsert(one);
  await Promise.all([reconcile('one'), reconcile('two')]);
  const told = spots.filter(({ metadata }) => instances.store.get(`other/${metadata.name}`)?.status?.ending);
  expect(told).toHaveLength(1);
});
