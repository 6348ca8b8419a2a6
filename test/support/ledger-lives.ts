import fc from 'fast-check';
import type { Claim } from '../../src/resources/instances/gpu-instance.ts';
import { type CrashPoint, LedgerWorld } from './ledger-world.ts';

/** How many times the usual number of lives to try. */
export const LIVES_SHARE = Number(process.env['BERTH_LIVES'] ?? 1);

const START = Date.UTC(2026, 0, 15);
const HOUR = 3_600_000;

const time = fc.oneof(fc.integer({ min: 1, max: 90_000 }), fc.integer({ min: 1, max: 40 * HOUR }));
/** Programs end at once, within their grace or, on a node that is slow, later. */
const graceMs = fc.constantFrom(0, 400, 12_345, 30_000, 45_000);
const crash: fc.Arbitrary<CrashPoint> = fc.option(
  fc.record({ write: fc.integer({ min: 1, max: 3 }), when: fc.constantFrom('before' as const, 'after' as const) }),
  { nil: undefined, freq: 3 },
);
const offer = fc.record({
  product: fc.constantFrom('A100', 'H100', 'A100-MIG-1g.10gb'),
  gpuCount: fc.integer({ min: 1, max: 8 }),
  gpuShare: fc.constantFrom('1', '1/7', '3/7', '1/4', '1/28'),
  pricePerHour: fc.constantFrom('2.49', '0.000001', '0.333333', '98.32', '0'),
  currency: fc.constantFrom('USD', 'USD', 'USD', 'EUR'),
  createdBy: fc.constantFrom('key/ci', 'person/ann'),
});

export type Op =
  | { do: 'wait' | 'clock'; ms: number }
  | { do: 'reconcile'; crash: CrashPoint; age: number }
  | { do: 'offer'; offer: Partial<Claim> }
  | { do: 'start'; ms: number; graceMs: number; crash: CrashPoint }
  | { do: 'silence'; ms: number; seen: boolean }
  | { do: 'podReady' | 'podGone' | 'silent' | 'answers' | 'stop' | 'delete' | 'vanish' | 'save' | 'restore' };

type Start = Extract<Op, { do: 'start' }>;

export const op: fc.Arbitrary<Op> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant('start' as const), ms: time, graceMs, crash }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('reconcile' as const), crash, age: fc.nat(6) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: time }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('offer' as const), offer }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('clock' as const),
      ms: fc.oneof(fc.integer({ min: -9 * HOUR, max: HOUR }), fc.integer({ min: -9_000, max: 9_000 })),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('silence' as const), ms: time, seen: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('silent' as const, 'answers' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom('podReady', 'podReady', 'podGone', 'stop', 'save', 'restore', 'delete', 'vanish'),
    }),
  },
) as fc.Arbitrary<Op>;

/** A start from the claim to its end, with a crash somewhere: at the same write of each of its steps. */
async function start(world: LedgerWorld, { ms, graceMs: takes, crash: at }: Start): Promise<void> {
  world.edit({ powerState: 'Running', startRequest: String(world.now) });
  for (let step = 0; step < 3; step += 1) await world.reconcile({ crash: step === 0 ? at : undefined });
  world.podReady();
  await world.reconcile();
  world.now += ms;
  world.edit({ powerState: 'Stopped' });
  world.graceMs = takes;
  for (let step = 0; step < 3; step += 1) await world.reconcile({ crash: at });
  world.now += takes;
  for (let step = 0; step < (takes === 0 ? 1 : 3); step += 1) {
    world.podEnds();
    await world.reconcile();
  }
  world.graceMs = 0;
}

/** The node falls silent for a time within a start. It may be back before a controller looks again. */
async function silence(world: LedgerWorld, { ms, seen }: { ms: number; seen: boolean }): Promise<void> {
  world.edit({ powerState: 'Running', startRequest: String(world.now) });
  for (let step = 0; step < 3; step += 1) await world.reconcile();
  world.podReady();
  await world.reconcile();
  world.now += ms;
  world.nodeAnswers(false);
  if (seen) await world.reconcile();
  world.now += ms;
  world.nodeAnswers(true);
  await world.reconcile();
}

/** A life in which these things happen one after the other. `after` is called after each. */
export async function live(
  ops: readonly Op[],
  { start: from = START, after }: { start?: number; after?: (world: LedgerWorld) => void } = {},
): Promise<LedgerWorld> {
  const world = new LedgerWorld(from);
  for (const one of ops) {
    if (one.do === 'wait') world.now += one.ms;
    else if (one.do === 'clock') world.setClock(one.ms);
    else if (one.do === 'offer') world.offer = one.offer;
    else if (one.do === 'start') await start(world, one);
    else if (one.do === 'reconcile') await world.reconcile(one);
    else if (one.do === 'silent' || one.do === 'answers') world.nodeAnswers(one.do === 'answers');
    else if (one.do === 'silence') await silence(world, one);
    else if (one.do === 'podReady') world.podReady();
    else if (one.do === 'podGone') world.podGone();
    else if (one.do === 'stop') world.edit({ powerState: 'Stopped' });
    else if (one.do === 'delete') world.edit({}, { deletionTimestamp: new Date(world.now).toISOString() });
    else if (one.do === 'vanish') await world.vanish();
    else if (one.do === 'save') world.save();
    else world.restore();
    after?.(world);
  }
  return world;
}
