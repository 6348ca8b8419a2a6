import type { Chance } from '../clock/chance.ts';
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
}

/** Longer than any pause after failures. */
const REST_MS = 11 * 60_000;
export const LAST_LOOK_MS = 60_000;

/** Milliseconds of a day that are simulated: after the last act everybody rests. */
export function dayMs({ spanMs }: Plan): number {
  return spanMs + REST_MS + LAST_LOOK_MS;
}

/** How much of each kind of act a world has: a mix of everything finds less than worlds that differ. */
class Mood {
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

type NewAct = Act extends infer T ? (T extends Act ? Omit<T, 'id'> : never) : never;

function rental(chance: Chance, { tenants }: Plan, at: number): NewAct {
  const isInterruptible = chance.is(0.35);
  const runs = chance.is(0.15);
  return {
    at,
    do: 'rent',
    tenant: chance.int(0, tenants - 1),
    way: chance.is(0.7) ? 'http' : 'kubectl',
    gpus: chance.weighted([
      [6, 1],
      [3, 2],
      [2, 4],
      [1, 8],
    ]),
    product: chance.int(0, 1),
    interruptible: isInterruptible,
    queue: chance.is(0.5),
    hasKey: chance.is(0.4),
    runSeconds: runs ? chance.int(1, 400) : 0,
    maxDuration: chance.is(0.2) ? `${chance.int(1, 8)}m` : undefined,
    idleTimeout: chance.is(0.15) ? `${chance.int(1, 4)}m` : undefined,
    onExpiry: chance.is(0.5) ? 'Delete' : 'Stop',
    image: chance.is(0.03) ? 'absent:1' : `image-${chance.int(0, 5)}:1`,
    byOffer: chance.is(0.3),
    leavesAfterMs: chance.is(0.08) ? chance.between(1, 1_500) : undefined,
    diskPolicy: chance.is(0.1) ? 'Retain' : 'Delete',
  };
}

/** What its owner does with an instance, in order; the last is that it goes. */
function life(chance: Chance, mood: Mood, of: number, [from, until]: readonly [number, number]): NewAct[] {
  const acts: NewAct[] = [];
  const end = Math.min(
    until,
    from +
      chance.weighted([
        [5, chance.between(20_000, 200_000)],
        [3, chance.between(200_000, 900_000)],
      ]),
  );
  const some = chance.weighted([
    [4, 0],
    [3, 1],
    [2, 2],
    [1, 5],
  ]);
  for (let count = 0; count < some; count += 1) {
    const at = chance.between(from, end);
    const next = mood.of<() => NewAct>('life', [
      [4, () => ({ at, do: 'stop', of })],
      [4, () => ({ at, do: 'start', of })],
      [2, () => ({ at, do: 'ask', of })],
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
      [
        2,
        () => ({
          at,
          do: 'hold',
          of,
          what: chance.is(0.5) ? 'instance' : 'pod',
          forMs: chance.between(5_000, 200_000),
        }),
      ],
      [2, () => ({ at, do: 'exit', of, code: chance.int(0, 1) })],
      [1, () => ({ at, do: 'evict', of })],
      [2, () => ({ at, do: 'session', of, forMs: chance.between(1_000, 300_000) })],
      [1, () => ({ at, do: 'repeat', of })],
    ]);
    acts.push(next());
  }
  const how = chance.weighted([
    [6, 'Background' as const],
    [2, 'Foreground' as const],
    [1, 'Orphan' as const],
  ]);
  acts.push({ at: end, do: 'delete', of, how });
  if (chance.is(0.1)) acts.push({ at: end + chance.between(10, 20_000), do: 'repeat', of });
  if (chance.is(0.1)) acts.push({ at: end + chance.between(10, 60_000), do: 'again', of });
  return acts;
}

/** Far enough from the right time that nobody leads with it: seconds to hours, to either side. */
function awayMs(chance: Chance): number {
  const ms = chance.is(0.5) ? chance.between(10_000, 120_000) : chance.between(120_000, 7_200_000);
  return chance.is(0.5) ? ms : -ms;
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
    [1, () => ({ at, do: 'reprice', pool: chance.int(0, 1), price: String(chance.int(1, 3)) })],
    [4, () => ({ at, do: 'kill' })],
    [4, () => ({ at, do: 'killAtWrite' })],
    [2, () => ({ at, do: 'stopLeader' })],
    [2, () => ({ at, do: 'killFront' })],
    [1, () => ({ at, do: 'setClock', aheadMs: awayMs(chance), forMs: chance.between(2_000, 60_000) })],
    [3, () => ({ at, do: 'freeze', forMs: chance.between(500, 20_000), atWrite: chance.is(0.6) })],
    [
      5,
      () => ({
        at,
        do: 'storm',
        kind: chance.of(['refused', 'failed', 'lost', 'slow', 'lag', 'away'] as const) ?? 'lag',
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
  for (let day = 0; day < plan.days; day += 1) {
    const morning = day * dayMs(plan);
    for (let count = 0; count < plan.rentals; count += 1) {
      // Some come in crowds.
      const isCrowd = chance.is(0.2);
      const at =
        morning +
        (isCrowd ? (spanMs / 4) * chance.int(0, 2) + chance.between(0, 2_000) : chance.between(0, spanMs * 0.8));
      const id = add(rental(chance, plan, at));
      const staysOvernight = chance.is(0.2) && day + 1 < plan.days;
      for (const next of life(chance, mood, id, [at + 500, morning + spanMs])) {
        const isLast = next.do === 'delete' || next.do === 'repeat' || next.do === 'again';
        add(isLast && staysOvernight ? { ...next, at: next.at + dayMs(plan) } : next);
      }
    }
    for (let count = 0; count < faults; count += 1)
      add(fault(chance, mood, plan, morning + chance.between(0, spanMs * 0.9)));
  }
  return acts.toSorted((a, b) => a.at - b.at || a.id - b.id);
}
