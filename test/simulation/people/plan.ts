import type { Chance } from '../clock/chance.ts';
import type { Illness } from '../nodes/driver.ts';
import { type Act, FIELDS } from './acts.ts';

export interface Plan {
  tenants: number;
  nodes: number;
  /** In a day. */
  rentals: number;
  /** Rentals of a day come within so many milliseconds. */
  spanMs: number;
  days: number;
  /** Days between the first of January and the first one. */
  firstDay: number;
  /** Faults of nodes, of the API server and of leaders, for each hundred rentals. */
  faults: number;
  /** Times that acts come together on purpose, */
  scenes: number;
  /** and in a day of a world whose operators divide GPUs and pools otherwise. */
  divisions: number;
  /** Times in a day that operators limit a namespace by a quota, in a world where they do. */
  quotas: number;
  /** Whether it may have keys, budgets and corrections of bills. */
  hasMoney: boolean;
}

/** Longer than any world. */
export const FOR_EVER_MS = 1e12;
/** Acts of one who is in a hurry come within so many milliseconds. */
const HURRY_MS = 5_000;
/** Starts of one who is restless: one fewer than an hour has. */
const MANY = 10;
/** What its owner leaves there is deleted within so many days. */
const LONGEST_DAYS = 14;
/** Longer than any pause after failures. */
const REST_MS = 11 * 60_000;
export const LAST_LOOK_MS = 60_000;

/** Milliseconds of a day that are simulated: after the last act everybody rests. */
export function dayMs({ spanMs }: Plan): number {
  return spanMs + REST_MS + LAST_LOOK_MS;
}

/** How much of each kind of act a world has: a mix of everything finds less than worlds that differ. */
export class Mood {
  readonly #chance: Chance;
  readonly #shares = new Map<string, number>();

  constructor(chance: Chance) {
    this.#chance = chance;
  }

  /** One of several by weight, times what this world has of each. */
  of<T>(what: string, items: readonly (readonly [weight: number, item: T])[]): T {
    return this.#chance.weighted(
      items.map(([weight, item], index) => [weight * this.#share(`${what} ${index}`), item] as const),
    );
  }

  #share(name: string): number {
    const share = this.#shares.get(name) ?? this.#chance.of([0.1, 1, 1, 3]) ?? 1;
    this.#shares.set(name, share);
    return share;
  }
}

export type NewAct = Act extends infer T ? (T extends Act ? Omit<T, 'id'> : never) : never;

function rental(chance: Chance, mood: Mood, { tenants }: Plan, at: number): NewAct {
  const runs = chance.is(0.15);
  return {
    at,
    do: 'rent',
    tenant: chance.int(0, tenants - 1),
    way: chance.is(0.7) ? 'http' : 'kubectl',
    // Where all want the same, lines are long.
    gpus: mood.of('gpus', [
      [6, 1],
      [3, 2],
      [2, 4],
      [1, 8],
    ]),
    product: mood.of('product', [
      [1, 0],
      [1, 1],
    ]),
    interruptible: mood.of('type', [
      [2, false],
      [1, true],
    ]),
    queue: mood.of('queue', [
      [2, true],
      [1, false],
    ]),
    hasKey: chance.is(0.4),
    runSeconds: runs ? chance.int(1, chance.is(0.5) ? 30 : 400) : 0,
    maxDuration: chance.is(0.2) ? `${chance.int(1, 8)}m` : undefined,
    idleTimeout: chance.is(0.15) ? `${chance.int(1, 4)}m` : undefined,
    onExpiry: chance.is(0.5) ? 'Delete' : 'Stop',
    image: chance.is(0.03) ? 'absent:1' : `image-${chance.int(0, 5)}:1`,
    byOffer: chance.is(0.3),
    leavesAfterMs: chance.is(0.08) ? chance.between(1, 1_500) : undefined,
    diskPolicy: chance.is(0.1) ? 'Retain' : 'Delete',
    onGPUFailure: chance.is(0.3) ? 'Restart' : 'Keep',
  };
}

/** What its owner does with an instance, in order; the last is that it goes. */
function life(
  chance: Chance,
  mood: Mood,
  { of, runs }: { of: number; runs: boolean },
  [from, until]: readonly [number, number],
): NewAct[] {
  const acts: NewAct[] = [];
  const end = Math.min(
    until,
    from +
      chance.weighted([
        [5, chance.between(20_000, 200_000)],
        // Before anything is written of it.
        [1, chance.between(1_000, 15_000)],
        [3, chance.between(200_000, 900_000)],
      ]),
  );
  const some = chance.weighted([
    [4, 0],
    [3, 1],
    [2, 2],
    [1, 5],
  ]);
  // Who is in a hurry does everything within seconds.
  const hurry = chance.is(0.4) ? chance.between(from, end) : undefined;
  for (let count = 0; count < some; count += 1) {
    const at = hurry === undefined ? chance.between(from, end) : Math.min(end, hurry + chance.between(0, HURRY_MS));
    const next = mood.of<() => NewAct>('life', [
      [4, () => ({ at, do: 'stop', of })],
      [4, () => ({ at, do: 'start', of })],
      [2, () => ({ at, do: 'ask', of, isOld: false })],
      [
        3,
        () => ({
          at,
          do: 'edit',
          of,
          field: chance.of(FIELDS) ?? 'displayName',
        }),
      ],
      [2, () => ({ at, do: 'deletePod', of, byForce: chance.is(0.5) })],
      [2, () => ({ at, do: 'strip', of, what: chance.is(0.5) ? 'labels' : 'owner' })],
      [2, () => ({ at, do: 'forge', of, what: chance.is(0.5) ? 'labels' : 'owner' })],
      [
        2,
        () => ({
          at,
          do: 'hold',
          of,
          what: chance.is(0.5) ? 'instance' : 'pod',
          forMs: chance.is(0.3) ? FOR_EVER_MS : chance.between(5_000, 200_000),
        }),
      ],
      [2, () => ({ at, do: 'exit', of, code: chance.int(0, 1) })],
      [1, () => ({ at, do: 'evict', of })],
      [1, () => ({ at, do: 'clearAway', of, isHeld: chance.is(0.5) })],
      [2, () => ({ at, do: 'session', of, forMs: chance.between(1_000, 300_000) })],
      [1, () => ({ at, do: 'repeat', of })],
    ]);
    acts.push(next());
  }
  // Who stops and starts again and again has more starts than one bill has room for.
  const pause = (end - from) / (2 * MANY);
  const times = chance.is(0.06) ? MANY : 0;
  for (let count = 0; count < times; count += 1) {
    const at = from + 2 * count * pause;
    acts.push({ at: at + pause, do: 'stop', of }, { at: at + 2 * pause, do: 'start', of });
  }
  // A tool that applies an older file puts back what was asked for before.
  const asks = runs && chance.is(0.4) ? [false, false, true, true] : [];
  for (const [index, isOld] of asks.entries())
    acts.push({ at: from + ((index + 1) * (end - from)) / 5, do: 'ask', of, isOld });
  const how = chance.weighted([
    [6, 'Background' as const],
    [2, 'Foreground' as const],
    [1, 'Orphan' as const],
  ]);
  // Some stay, and are looked at when everybody rests.
  if (chance.is(0.75)) acts.push({ at: end, do: 'delete', of, how });
  // Who is not sure repeats a request until there is an answer, also while its instance goes.
  const repeats = chance.is(end - from < 15_000 ? 0.7 : 0.2) ? chance.int(1, 8) : 0;
  for (let count = 0; count < repeats; count += 1)
    acts.push({ at: end + count * 1_500 + chance.between(10, 1_500), do: 'repeat', of });
  if (chance.is(0.1)) acts.push({ at: end + chance.between(10, 60_000), do: 'again', of });
  return acts;
}

const STORMS = ['refused', 'failed', 'lost', 'slow', 'lag', 'blind', 'away'] as const;

/** Far enough from the right time that nobody leads with it: seconds to hours, to either side. */
function awayMs(chance: Chance): number {
  const ms = chance.is(0.3) ? chance.between(10_000, 120_000) : chance.between(120_000, 7_200_000);
  return chance.is(0.6) ? ms : -ms;
}

/** Some of these have no room for what is rented already, and some hold up nobody. */
function ceiling(chance: Chance, tenant: number, at: number): NewAct {
  return {
    at,
    do: 'ceil',
    tenant,
    gpus: chance.is(0.7) ? chance.int(0, chance.is(0.7) ? 6 : 16) : undefined,
    diskGb: chance.is(0.4) ? chance.int(1, 4) * 10 : undefined,
  };
}

function fault(chance: Chance, mood: Mood, { nodes, tenants }: Plan, at: number): NewAct {
  const node = chance.int(0, nodes - 1);
  const forMs = chance.weighted([
    [3, chance.between(2_000, 60_000)],
    [2, chance.between(60_000, 600_000)],
  ]);
  const short = chance.between(1_000, 30_000);
  const next = mood.of<() => NewAct>('fault', [
    [
      4,
      () => ({
        at,
        do: 'lose',
        node,
        how: chance.is(0.5) ? 'silent' : 'off',
        forMs,
        deletesNode: chance.is(0.2),
        forcesPods: chance.is(0.25),
      }),
    ],
    [2, () => ({ at, do: 'drain', node, forMs })],
    [1, () => ({ at, do: 'cordon', node, forMs })],
    [2, () => ({ at, do: 'sicken', node, gpu: chance.int(0, 7), forMs })],
    [1, () => ({ at, do: 'relabel', node, driver: `550.${chance.int(60, 99)}` })],
    [3, () => ceiling(chance, chance.int(0, tenants - 1), at)],
    [1, () => ({ at, do: 'unpool', forMs: short })],
    [1, () => ({ at, do: 'reprice', pool: chance.int(0, 1), price: String(chance.int(1, 3)) })],
    [4, () => ({ at, do: 'kill' })],
    [4, () => ({ at, do: 'killAtWrite', arrivesAfterMs: chance.is(0.5) ? chance.between(0, 40_000) : 0 })],
    [2, () => ({ at, do: 'stopLeader' })],
    [2, () => ({ at, do: 'killFront' })],
    [3.5, () => ({ at, do: 'setClock', aheadMs: awayMs(chance), forMs: chance.between(2_000, 60_000) })],
    [3, () => ({ at, do: 'freeze', forMs: chance.between(500, 20_000), atWrite: chance.is(0.6) })],
    [
      5,
      () => ({
        at,
        do: 'storm',
        kinds: [chance.of(STORMS) ?? 'lag', ...(chance.is(0.4) ? [chance.of(STORMS) ?? 'lag'] : [])],
        forMs: short,
      }),
    ],
    [
      3,
      () => ({
        at,
        do: 'watches',
        how: chance.of(['cut', 'end', 'expire'] as const) ?? 'cut',
        compacts: chance.is(0.3),
      }),
    ],
    [0.3, () => ({ at, do: 'deleteNamespace', tenant: chance.int(0, tenants - 1) })],
  ]);
  return next();
}

/** What comes of a fault: some show only if somebody does the one thing beside them. */
function sequel(
  chance: Chance,
  act: NewAct,
  lives: readonly { of: number; from: number; to: number }[],
): readonly NewAct[] {
  if (act.do === 'ceil' && chance.is(0.4)) {
    const after = act.at + chance.between(20_000, 120_000);
    return [{ ...act, at: after, gpus: chance.is(0.5) ? undefined : (act.gpus ?? 0) + chance.int(1, 8) }];
  }
  if (act.do !== 'setClock') return [];
  // Whoever set the clock clears away what looks old.
  const near = (): number => act.at + chance.between(0, act.forMs);
  return Array.from({ length: chance.int(0, 3) }, near).flatMap((at): NewAct[] => {
    const one = chance.of(lives.filter(({ from, to }) => from < at - 10_000 && to > at));
    return one === undefined ? [] : [{ at, do: 'clearAway', of: one.of, isHeld: false }];
  });
}

/** What befalls the devices of these nodes, from numbers of its own. Its ids come after those of all other acts. */
export function planDeviceActs(chance: Chance, plan: Plan, nodes: readonly number[], firstId: number): Act[] {
  const { spanMs, days } = plan;
  const mood = new Mood(chance);
  const count = nodes.length === 0 ? 0 : Math.round((plan.rentals * plan.faults) / 100);
  return Array.from({ length: count * days }, (_, index): Act => {
    const at = Math.floor(index / count) * dayMs(plan) + chance.between(0, spanMs * 0.9);
    const node = chance.one(nodes);
    const forMs = chance.between(2_000, chance.is(0.5) ? 30_000 : 300_000);
    const gpu = chance.int(0, 7);
    const next = mood.of<() => NewAct>('device', [
      [
        4,
        () => ({
          at,
          do: 'sickenDevice',
          node,
          gpu,
          illness: chance.one<Illness>(['taint', 'evict', 'gone']),
          forMs,
        }),
      ],
      [2, () => ({ at, do: 'taintDevice', node, gpu, forMs })],
      [3, () => ({ at, do: 'restartDriver', node })],
      [2, () => ({ at, do: 'hideSlices', node, forMs })],
    ]);
    return { ...next(), id: firstId + index };
  });
}

/** What everybody does, in the order of time. */
export function planActs(chance: Chance, plan: Plan): Act[] {
  const acts: Act[] = [];
  const { spanMs } = plan;
  const mood = new Mood(chance);
  let ids = 0;
  const add = (act: NewAct): number => {
    ids += 1;
    acts.push({ ...act, id: ids });
    return ids;
  };
  const faults = Math.round((plan.rentals * plan.faults) / 100);
  // Where tenants have ceilings, they have them before anybody rents.
  const share = chance.weighted([
    [2, 0],
    [1, 0.5],
    [1, 1],
  ]);
  for (let day = 0; day < plan.days; day += 1) {
    const morning = day * dayMs(plan);
    for (let tenant = 0; tenant < plan.tenants; tenant += 1)
      if (chance.is(share)) add(ceiling(chance, tenant, morning));
    /** Instances, and when each of them is there. */
    const lives: { of: number; from: number; to: number }[] = [];
    for (let count = 0; count < plan.rentals; count += 1) {
      // Some come in crowds.
      const isCrowd = chance.is(0.2);
      const at =
        morning +
        (isCrowd ? (spanMs / 4) * chance.int(0, 2) + chance.between(0, 2_000) : chance.between(0, spanMs * 0.8));
      const rent = rental(chance, mood, plan, at);
      const id = add(rent);
      const runs = rent.do === 'rent' && rent.runSeconds > 0;
      const staysOvernight = chance.is(0.2) && day + 1 < plan.days;
      const acted = life(chance, mood, { of: id, runs }, [at + 500, morning + spanMs]);
      lives.push({ of: id, from: at, to: acted.find((one) => one.do === 'delete')?.at ?? morning + spanMs });
      for (const next of acted) {
        const isLast = next.do === 'delete' || next.do === 'repeat' || next.do === 'again';
        add(isLast && staysOvernight ? { ...next, at: next.at + dayMs(plan) } : next);
      }
      // A fleet that is full for good would have few starts.
      const days = plan.days > 1 && !acted.some((one) => one.do === 'delete') ? chance.int(1, LONGEST_DAYS) : 0;
      if (days > 0) add({ at: at + days * dayMs(plan), do: 'delete', of: id, how: 'Background' });
    }
    const busy = acts.filter(({ at }) => at >= morning && at < morning + spanMs * 0.9);
    let last = morning;
    for (let count = 0; count < faults; count += 1) {
      // Faults that come while somebody does something show more, and those that come together.
      const near = chance.is(0.5) ? chance.of(busy) : undefined;
      const alone =
        near === undefined ? morning + chance.between(0, spanMs * 0.9) : near.at + chance.between(-500, 2_500);
      const at = chance.is(0.25) ? last + chance.between(0, 5_000) : alone;
      last = Math.max(morning, at);
      const next = fault(chance, mood, plan, last);
      add(next);
      for (const follows of sequel(chance, next, lives)) add(follows);
    }
  }
  return acts.toSorted((a, b) => a.at - b.at || a.id - b.id);
}
