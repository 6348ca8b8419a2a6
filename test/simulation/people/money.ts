import type { Chance } from '../clock/chance.ts';
import type { Act } from './acts.ts';
import { dayMs, Mood, type NewAct, type Plan } from './plan.ts';
import { Stage } from './scenes.ts';

const SECOND_MS = 1_000;
/** More starts than the status of an instance has room for. */
const MANY_STARTS = 10;
/** Acts with keys and bills for each fault. */
const OFTEN = 1.55;
/** What has room for some first hours, of GPUs for a dollar or two. */
const BUDGETS = ['2', '4', '8', '16', '40'] as const;
/** What is spent within minutes. */
const SMALL = ['0.02', '0.1', '0.5', '3'] as const;

interface Key {
  tenant: number;
  key: number;
}

type Part = (stage: Stage, at: number, key: Key) => void;

function budget(chance: Chance): string | undefined {
  return chance.is(0.3) ? undefined : chance.of(BUDGETS);
}

/** Somebody revokes a key or deletes it, or both, and often makes it again. */
const leak: Part = (stage, at, key) => {
  const { chance } = stage;
  if (chance.is(0.5)) stage.add({ at, do: 'revokeKey', ...key });
  const goes = at + chance.between(0, 10 * SECOND_MS);
  if (chance.is(0.8)) stage.add({ at: goes, do: 'deleteKey', ...key });
  const comes = goes + chance.between(0, chance.is(0.5) ? SECOND_MS : 60 * SECOND_MS);
  if (chance.is(0.6)) stage.add({ at: comes, do: 'makeKey', ...key, usd: budget(chance) });
};

/** A budget of a key or of a tenant is lowered, often below what is spent, and raised again. */
const lower: Part = (stage, at, key) => {
  const { chance } = stage;
  const isOfKey = chance.is(0.5);
  const set = (when: number, usd: string | undefined): void => {
    if (isOfKey) stage.add({ at: when, do: 'budgetKey', ...key, usd });
    else stage.add({ at: when, do: 'budget', tenant: key.tenant, usd });
  };
  set(at, chance.is(0.6) ? chance.of(SMALL) : budget(chance));
  if (chance.is(0.6)) set(at + chance.between(SECOND_MS, 120 * SECOND_MS), budget(chance));
};

/** A bill is corrected, and the correction is often taken back. */
const correct: Part = (stage, at) => {
  const { chance } = stage;
  const of = stage.living(at);
  if (of === undefined) return;
  const usd = chance.one(['0.01', '0.5', '3', '20']);
  const type = chance.is(0.5) ? 'Credit' : 'Charge';
  stage.add({ at, do: 'correct', of, type, usd });
  const back = type === 'Credit' ? 'Charge' : 'Credit';
  if (chance.is(0.5)) stage.add({ at: at + chance.between(0, 90 * SECOND_MS), do: 'correct', of, type: back, usd });
};

/** What is recorded of one who was there some time ago is deleted, once or more often. */
const tidy: Part = (stage, at) => {
  const { chance } = stage;
  const of = stage.living(at - chance.between(0, 120 * SECOND_MS));
  if (of === undefined) return;
  for (let count = chance.int(1, 3); count > 0; count -= 1)
    stage.add({ at: at + chance.between(0, 60 * SECOND_MS), do: 'deleteRecords', of });
};

/** Bills are copied, also twice at once, and some of these runs are killed. */
const copy: Part = (stage, at) => {
  const { chance } = stage;
  for (let count = chance.int(1, 2); count > 0; count -= 1) {
    const killedAfterMs = chance.is(0.2) ? chance.between(1, 60) : undefined;
    stage.add({ at: at + chance.between(0, 3 * SECOND_MS), do: 'export', all: chance.is(0.5), killedAfterMs });
  }
};

const upgrade: Part = (stage, at) => {
  stage.add({ at, do: 'upgrade', pauseMs: stage.chance.between(SECOND_MS, 15 * SECOND_MS) });
};

/** Something befalls whoever leads. */
const trouble: Part = (stage, at) => {
  const { chance } = stage;
  const forMs = chance.between(2 * SECOND_MS, 20 * SECOND_MS);
  stage.add(
    chance.one<NewAct>([
      { at, do: 'kill' },
      { at, do: 'stopLeader' },
      { at, do: 'upgrade', pauseMs: forMs / 4 },
      { at, do: 'killAtWrite', arrivesAfterMs: 0, skips: chance.int(0, 7) },
      { at, do: 'setClock', aheadMs: chance.between(60 * SECOND_MS, 3_600 * SECOND_MS), forMs },
      { at, do: 'storm', kinds: ['blind'], forMs },
      { at, do: 'storm', kinds: ['failed'], forMs },
    ]),
  );
};

/** The records of an instance that starts too often for one are deleted while it runs, and while its leader has trouble. */
const longBill: Part = (stage, at, key) => {
  const { chance } = stage;
  const of = stage.rent(at, { gpus: 1, interruptible: false, way: 'kubectl', tenant: key.tenant });
  const pauseMs = chance.between(12 * SECOND_MS, 17 * SECOND_MS);
  for (let count = 1; count <= MANY_STARTS; count += 1) {
    const ends = at + 20 * SECOND_MS + 2 * count * pauseMs;
    stage.add({ at: ends - pauseMs, do: 'stop', of });
    stage.add({ at: ends, do: 'start', of });
  }
  const full = at + 20 * SECOND_MS + 16 * pauseMs;
  for (let count = chance.int(2, 6); count > 0; count -= 1)
    stage.add({ at: full + chance.between(-2 * pauseMs, 6 * pauseMs), do: 'deleteRecords', of });
  if (chance.is(0.7)) trouble(stage, full + chance.between(-2 * SECOND_MS, 3 * SECOND_MS), key);
  copy(stage, full + chance.between(0, 60 * SECOND_MS), key);
  if (chance.is(0.5)) stage.add({ at: full + 7 * pauseMs, do: 'delete', of, how: 'Background' });
};

/** The record of one that goes is deleted at once, while the leader has trouble. */
const lastRecord: Part = (stage, at, key) => {
  const { chance } = stage;
  const of = stage.rent(at, { gpus: 1, interruptible: false });
  const goes = at + chance.between(35 * SECOND_MS, 60 * SECOND_MS);
  stage.add({ at: goes, do: 'delete', of, how: 'Background' });
  trouble(stage, goes + chance.between(-SECOND_MS, 3 * SECOND_MS), key);
  if (chance.is(0.3)) copy(stage, goes + chance.between(0, 10 * SECOND_MS), key);
  for (let count = chance.int(2, 8); count > 0; count -= 1)
    stage.add({ at: goes + chance.between(0, 30 * SECOND_MS), do: 'deleteRecords', of });
};

/** A key that rents ends while nobody leads, or while its budget is being set. */
const lostKey: Part = (stage, at, key) => {
  const { chance } = stage;
  const usd = chance.of(BUDGETS);
  const { tenant } = key;
  stage.add({ at: at - 5 * SECOND_MS, do: 'deleteKey', ...key });
  stage.add({ at: at - 4 * SECOND_MS, do: 'makeKey', ...key, usd });
  stage.freeTenant(at - 4 * SECOND_MS, tenant);
  const crowd = stage.crowd(
    at,
    { ...key, way: 'http', product: chance.int(0, 1), interruptible: chance.is(0.3) },
    true,
  );
  const ends = at + chance.between(5 * SECOND_MS, 50 * SECOND_MS);
  if (chance.is(0.4))
    stage.add({ at: ends - chance.between(0, 8 * SECOND_MS), do: 'budgetKey', ...key, usd: chance.of(SMALL) });
  trouble(stage, ends + chance.between(-3 * SECOND_MS, SECOND_MS), key);
  leak(stage, ends, key);
  for (const of of crowd) {
    if (chance.is(0.5)) continue;
    stage.add({ at: ends + chance.between(10 * SECOND_MS, 20 * SECOND_MS), do: 'stop', of });
    stage.add({ at: ends + chance.between(30 * SECOND_MS, 50 * SECOND_MS), do: 'start', of });
  }
};

/** A correction takes all that a tenant may spend while it rents, and another gives it back. */
const spentAtOnce: Part = (stage, at, { tenant }) => {
  const { chance } = stage;
  stage.freeTenant(at - SECOND_MS, tenant);
  stage.add({ at: at - SECOND_MS, do: 'budget', tenant, usd: chance.one(['8', '16', '20']) });
  const crowd = stage.crowd(at, { tenant, product: chance.int(0, 1) }, true);
  const comes = at + chance.between(10 * SECOND_MS, 70 * SECOND_MS);
  const of = chance.one(crowd);
  stage.add({ at: comes, do: 'correct', of, type: 'Charge', usd: '20' });
  if (chance.is(0.6)) trouble(stage, comes + chance.between(-SECOND_MS, 3 * SECOND_MS), { tenant, key: 0 });
  const back = comes + chance.between(SECOND_MS, 60 * SECOND_MS);
  if (chance.is(0.7)) stage.add({ at: back, do: 'correct', of, type: 'Credit', usd: '20' });
  for (const one of crowd) if (chance.is(0.4)) stage.add({ at: back + 5 * SECOND_MS, do: 'start', of: one });
};

/** A new version comes while a crowd rents and stops. */
const rollout: Part = (stage, at, key) => {
  const { chance } = stage;
  const all = stage.crowd(at, { tenant: key.tenant, interruptible: chance.is(0.3) }, true);
  for (const of of all) {
    if (chance.is(0.5)) stage.add({ at: at + chance.between(5 * SECOND_MS, 40 * SECOND_MS), do: 'repeat', of });
    if (chance.is(0.5))
      stage.add({ at: at + chance.between(20 * SECOND_MS, 60 * SECOND_MS), do: 'delete', of, how: 'Background' });
  }
  upgrade(stage, at + chance.between(-3 * SECOND_MS, 30 * SECOND_MS), key);
  if (chance.is(0.4)) upgrade(stage, at + chance.between(0, 60 * SECOND_MS), key);
};

const PARTS: readonly (readonly [number, Part])[] = [
  [3, leak],
  [3, lower],
  [3, correct],
  [3, tidy],
  [2, copy],
  [1, upgrade],
];

const SCENES: readonly (readonly [number, Part])[] = [
  [1, longBill],
  [2, lastRecord],
  [2, lostKey],
  [2, spentAtOnce],
  [1, rollout],
];

/**
 * What a world has of keys, budgets, corrections, copies of bills and upgrades: one of two has them. From numbers of its
 * own, with ids from `firstId` on. Some who rent do so by a key then.
 */
export function planMoney(chance: Chance, plan: Plan, acts: readonly Act[], firstId: number): Act[] {
  if (!plan.hasMoney || !chance.is(0.5)) return [...acts];
  const ends = new Map(acts.flatMap((act) => (act.do === 'delete' ? [[act.of, act.at] as const] : [])));
  const lives = acts
    .filter((act) => act.do === 'rent')
    .map(({ id, at }) => ({ of: id, from: at, to: ends.get(id) ?? Infinity }));
  const stage = new Stage(chance, plan, { lives, firstId });
  const mood = new Mood(chance);
  const keys: Key[] = [];
  for (let tenant = 0; tenant < plan.tenants; tenant += 1) {
    const count = chance.int(0, 2);
    for (let key = 0; key < count; key += 1) keys.push({ tenant, key });
    if (chance.is(0.4)) stage.add({ at: 0, do: 'budget', tenant, usd: chance.of(BUDGETS) });
  }
  for (const key of keys) stage.add({ at: 0, do: 'makeKey', ...key, usd: budget(chance) });
  const some = (): Key => chance.of(keys) ?? { tenant: stage.tenant(), key: 0 };
  const count = Math.round((plan.rentals * plan.faults * OFTEN) / 100);
  for (let day = 0; day < plan.days; day += 1) {
    const morning = day * dayMs(plan);
    const busy = acts.filter(({ at }) => at >= morning && at < morning + plan.spanMs * 0.9);
    for (let one = 0; one < count; one += 1) {
      const near = chance.is(0.5) ? chance.of(busy) : undefined;
      const at =
        near === undefined ? morning + chance.between(0, plan.spanMs * 0.9) : near.at + chance.between(0, 5_000);
      mood.of('money', PARTS)(stage, at, some());
    }
  }
  for (let one = 0; one < plan.scenes / 2; one += 1)
    mood.of('scene', SCENES)(stage, chance.between(40_000, plan.spanMs * 0.5), some());
  const rented = acts.map((act): Act => {
    if (act.do !== 'rent' || act.way !== 'http') return act;
    const own = chance.of(keys.filter(({ tenant }) => tenant === act.tenant));
    return own === undefined || chance.is(0.3) ? act : { ...act, key: own.key };
  });
  return [...rented, ...stage.acts];
}
