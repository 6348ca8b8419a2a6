import type { Chance } from '../clock/chance.ts';
import type { Act } from './acts.ts';
import { FOR_EVER_MS, Mood, type NewAct, type Plan } from './plan.ts';

/** Who is there, from when to when. */
interface Life {
  of: number;
  from: number;
  to: number;
}

type Rent = Extract<Act, { do: 'rent' }>;

/** Longer than the lease of the controllers, so that another replica leads meanwhile. */
const BEYOND_LEASE_MS: readonly [number, number] = [9_000, 13_000];
/** Sizes that no product has room for all of. */
const CROWD = [8, 4, 4, 2, 2, 1, 1, 1];
/** More than an instance may start within an hour. */
const TOO_MANY = 16;
const SECOND_MS = 1_000;

/** Where scenes are made: acts that come together on purpose. */
export class Stage {
  readonly chance: Chance;
  readonly plan: Plan;
  readonly acts: Act[] = [];
  readonly #lives: readonly Life[];
  #id: number;

  constructor(chance: Chance, plan: Plan, { lives, firstId }: { lives: readonly Life[]; firstId: number }) {
    this.chance = chance;
    this.plan = plan;
    this.#lives = lives;
    this.#id = firstId;
  }

  add(act: NewAct): number {
    const id = this.#id;
    this.#id += 1;
    this.acts.push({ ...act, id });
    return id;
  }

  /** One of those that are there for some time before and after. */
  living(at: number): number | undefined {
    const near = this.#lives.filter(({ from, to }) => from + 5 * SECOND_MS < at && to > at + 20 * SECOND_MS);
    return this.chance.of(near)?.of;
  }

  tenant(): number {
    return this.chance.int(0, this.plan.tenants - 1);
  }

  /** A tenant without ceilings from now on. */
  freeTenant(at: number, tenant = this.tenant()): number {
    this.add({ at, do: 'ceil', tenant, gpus: undefined, diskGb: undefined });
    return tenant;
  }

  /** Somebody rents. What is not said of it is as most want it. */
  rent(at: number, wanted: Partial<Omit<Rent, 'id' | 'at' | 'do'>> = {}): number {
    const { chance } = this;
    return this.add({
      at,
      do: 'rent',
      tenant: this.tenant(),
      way: chance.is(0.5) ? 'http' : 'kubectl',
      gpus: chance.of([1, 1, 2, 4]) ?? 1,
      product: chance.int(0, 1),
      interruptible: chance.is(0.2),
      queue: true,
      hasKey: false,
      runSeconds: 0,
      maxDuration: undefined,
      idleTimeout: undefined,
      onExpiry: 'Stop',
      image: `image-${chance.int(0, 5)}:1`,
      byOffer: false,
      leavesAfterMs: undefined,
      diskPolicy: 'Delete',
      onGPUFailure: 'Keep',
      ...wanted,
    });
  }

  /** Many want the same within a moment. Most of them go soon, unless all stay. */
  crowd(at: number, wanted: Parameters<Stage['rent']>[1] = {}, allStay = false): number[] {
    const { chance } = this;
    return CROWD.map((gpus) => {
      const from = at + chance.between(0, 2 * SECOND_MS);
      const of = this.rent(from, { gpus, ...wanted });
      const to = from + chance.between(30 * SECOND_MS, 200 * SECOND_MS);
      if (!allStay && chance.is(0.8)) this.add({ at: to, do: 'delete', of, how: 'Background' });
      return of;
    });
  }
}

type Scene = (stage: Stage, at: number) => void;

/** Prices rise while some wait, and others stop and start again. */
const prices: Scene = (stage, at) => {
  const { chance } = stage;
  const pool = chance.int(0, 1);
  const [price, interruptible] = [String(chance.int(3, 6)), chance.of(['0.5', '0.7', '0.9']) ?? '0.5'];
  stage.add({ at, do: 'reprice', pool, price, interruptible });
  for (let count = chance.int(1, 3); count > 0; count -= 1) {
    const stops = at + chance.between(-10 * SECOND_MS, 30 * SECOND_MS);
    const of = stage.living(stops);
    if (of === undefined) continue;
    if (chance.is(0.3)) stage.add({ at: stops, do: 'deletePod', of, byForce: false });
    else {
      stage.add({ at: stops, do: 'stop', of });
      stage.add({ at: stops + chance.between(5 * SECOND_MS, 30 * SECOND_MS), do: 'start', of });
    }
  }
  const falls = { do: 'reprice', pool, price: String(pool + 1), interruptible: '0.5' } as const;
  if (chance.is(0.6)) stage.add({ at: at + chance.between(60 * SECOND_MS, 120 * SECOND_MS), ...falls });
};

/** Most of these stand still for a moment, and start again from `at` on, within so many milliseconds. */
function startAgain(stage: Stage, crowd: readonly number[], at: number, withinMs: number): void {
  const { chance } = stage;
  for (const of of crowd) {
    if (chance.is(0.2)) continue;
    stage.add({ at: at - chance.between(10 * SECOND_MS, 15 * SECOND_MS), do: 'stop', of });
    stage.add({ at: at + chance.between(0, withinMs), do: 'start', of });
  }
}

/** Answers of writes are lost while many start, and watches lag. */
const lostGrants: Scene = (stage, at) => {
  const { chance } = stage;
  const starts = at + 35 * SECOND_MS;
  const crowd = stage.crowd(at, { product: chance.int(0, 1), interruptible: false }, true);
  startAgain(stage, crowd, starts, 1_500);
  const forMs = chance.between(8 * SECOND_MS, 25 * SECOND_MS);
  stage.add({ at: starts + chance.between(-1_000, 500), do: 'storm', kinds: ['blind'], forMs });
};

/** Whoever leads next has heard that many want to start, and then of nothing: not of those that got a place. */
const staleSuccessor: Scene = (stage, at) => {
  const { chance } = stage;
  stage.add({ at, do: 'scale' });
  const tenant = stage.freeTenant(at - 2 * SECOND_MS);
  const crowd = stage.crowd(at, { tenant, product: chance.int(0, 1), interruptible: false }, true);
  for (const starts of [at + 35 * SECOND_MS, at + 90 * SECOND_MS]) {
    startAgain(stage, crowd, starts, 0);
    stage.add({ at: starts, do: 'stall', forMs: chance.between(12 * SECOND_MS, 30 * SECOND_MS) });
    const leaves = starts + chance.between(300, 3_000);
    stage.add({ at: leaves, do: chance.is(0.75) ? 'stopLeader' : 'kill' });
  }
};

/**
 * A leader is suspended when it grants a place, loses the lease, and leads again when what had that place is gone. It comes
 * early, while the place is free: a grant that waits would come after the end of what it is for.
 */
const secondTerm: Scene = (stage) => {
  const { chance } = stage;
  const at = chance.between(22 * SECOND_MS, 40 * SECOND_MS);
  const forMs = chance.between(...BEYOND_LEASE_MS);
  const product = chance.int(0, 1);
  stage.add({ at: at - 20 * SECOND_MS, do: 'scale' });
  const tenant = stage.freeTenant(at - 20 * SECOND_MS);
  const onDemand = { tenant, product, interruptible: false, way: 'kubectl' } as const;
  const of = stage.rent(at, { ...onDemand, gpus: 8 });
  stage.add({ at: at - 1, do: 'freeze', forMs, atWrite: true, grantOf: of, breaks: true });
  // Its cache has caught up by then: it looks at an instance once more that had a place when it last heard of it.
  const goes = at + forMs + chance.between(3 * SECOND_MS, 6 * SECOND_MS);
  stage.add({ at: goes, do: 'delete', of, how: 'Background' });
  const leaves = goes + chance.between(9 * SECOND_MS, 14 * SECOND_MS);
  stage.add({ at: leaves, do: chance.is(0.9) ? 'stopLeader' : 'kill' });
  stage.crowd(leaves + 2 * SECOND_MS, onDemand, true);
};

/** The API server starts anew and has forgotten what was, while much ends. */
const forgetfulServer: Scene = (stage, at) => {
  const { chance } = stage;
  const forMs = chance.between(5 * SECOND_MS, 25 * SECOND_MS);
  const tenant = stage.freeTenant(at - 39 * SECOND_MS);
  const onDemand = { tenant, product: chance.int(0, 1), interruptible: false } as const;
  for (const gpus of [4, 2, 2]) {
    const of = stage.rent(at - chance.between(30 * SECOND_MS, 38 * SECOND_MS), { ...onDemand, gpus });
    stage.add({ at: at + chance.between(0, forMs), do: 'clearAway', of, isHeld: false });
  }
  stage.add({ at, do: 'storm', kinds: ['away'], forMs, restarts: true });
  for (let count = chance.int(2, 5); count > 0; count -= 1) {
    const of = stage.living(at);
    if (of === undefined) continue;
    const goes = at + chance.between(0, forMs);
    const next = chance.of<NewAct>([
      { at: goes, do: 'clearAway', of, isHeld: false },
      { at: goes, do: 'deletePod', of, byForce: true },
      { at: goes, do: 'exit', of, code: 1 },
      { at: goes, do: 'delete', of, how: 'Background' },
    ]);
    if (next !== undefined) stage.add(next);
  }
  stage.crowd(at + forMs + chance.between(0, 5 * SECOND_MS), onDemand, true);
};

/** All pools are away for a moment, while some rent. */
const noPools: Scene = (stage, at) => {
  const { chance } = stage;
  const forMs = chance.between(5 * SECOND_MS, 30 * SECOND_MS);
  stage.add({ at, do: 'unpool', forMs });
  for (let count = chance.int(3, 6); count > 0; count -= 1) {
    const of = stage.rent(at + chance.between(0, forMs));
    stage.add({ at: at + forMs + chance.between(20 * SECOND_MS, 90 * SECOND_MS), do: 'delete', of, how: 'Background' });
  }
};

/**
 * Two tenants wait for room under their ceilings longer than others wait for a place, and what they give back serves both.
 * They ran before and have disks, for which their looks take longer than those of the others.
 */
const ceilingAndLine: Scene = (stage, at) => {
  const { chance, plan } = stage;
  // Disks of this product are on every node.
  const onDemand = { product: 0, interruptible: false } as const;
  const one = stage.tenant();
  const [crowd, two, some] = [1, 2, 3].map((count) => (one + count) % plan.tenants) as [number, number, number];
  for (const tenant of [one, two]) {
    const gpus = chance.of([1, 2, 4]) ?? 1;
    const old = stage.rent(at - 38 * SECOND_MS, { tenant, gpus, ...onDemand });
    stage.add({ at: at - 12 * SECOND_MS, do: 'stop', of: old });
    stage.add({ at: at - SECOND_MS, do: 'ceil', tenant, gpus, diskGb: undefined, isBeyond: true });
    const first = stage.rent(at, { tenant, gpus, ...onDemand });
    stage.add({ at: at + 8 * SECOND_MS, do: 'start', of: old });
    const ends = at + chance.between(32 * SECOND_MS, 50 * SECOND_MS);
    stage.add(
      chance.is(0.5)
        ? { at: ends, do: 'stop', of: first }
        : { at: ends, do: 'delete', of: first, how: 'Background' as const },
    );
    if (chance.is(0.5)) stage.freeTenant(ends + 60 * SECOND_MS, tenant);
  }
  for (const tenant of [crowd, some]) stage.freeTenant(at - 2 * SECOND_MS, tenant);
  stage.crowd(at + 20 * SECOND_MS, { tenant: crowd, ...onDemand }, true);
  for (let count = 0; count < 4; count += 1)
    stage.rent(at + 25 * SECOND_MS + count, { tenant: some, gpus: chance.of([1, 2, 4]) ?? 1, ...onDemand });
};

/** An API server fails at many writes, while much ends. */
const failingServer: Scene = (stage, at) => {
  const { chance } = stage;
  const all = stage.crowd(at - 35 * SECOND_MS, {}, true);
  const forMs = chance.between(8 * SECOND_MS, 20 * SECOND_MS);
  stage.add({ at, do: 'storm', kinds: ['failed'], forMs });
  for (const of of all) {
    const ends = at + chance.between(0, forMs);
    const next = chance.of<NewAct>([
      { at: ends, do: 'stop', of },
      { at: ends, do: 'delete', of, how: 'Background' },
      { at: ends, do: 'deletePod', of, byForce: false },
      { at: ends, do: 'evict', of },
    ]);
    if (next !== undefined && chance.is(0.7)) stage.add(next);
  }
};

/** A leader dies while an instance goes, and whoever rented it asks again. */
const lastWords: Scene = (stage, at) => {
  const { chance } = stage;
  const of = stage.rent(at, { way: 'http', hasKey: true, gpus: 1 });
  // Histories are written fifteen seconds after the first news.
  const goes = at + chance.between(2 * SECOND_MS, 14 * SECOND_MS);
  stage.add({ at: goes, do: 'delete', of, how: 'Background' });
  if (chance.is(0.5)) stage.add({ at: goes - 1, do: 'killAtWrite', arrivesAfterMs: 0, skips: chance.int(0, 7) });
  else stage.add({ at: goes + chance.between(0, 8 * SECOND_MS), do: 'kill' });
  for (let count = chance.int(3, 6); count > 0; count -= 1)
    stage.add({ at: goes + chance.between(SECOND_MS, 60 * SECOND_MS), do: 'repeat', of });
};

/** Something ends an instance again and again, soon after each of its starts. */
const again: Scene = (stage, at) => {
  const { chance } = stage;
  const of = stage.rent(at, { gpus: 1, interruptible: false, way: 'kubectl' });
  const [pauseMs, isEvicted] = [chance.between(8 * SECOND_MS, 14 * SECOND_MS), chance.is(0.6)];
  for (let count = 1; count <= TOO_MANY; count += 1) {
    const ends = at + 20 * SECOND_MS + count * pauseMs;
    stage.add(isEvicted ? { at: ends, do: 'evict', of } : { at: ends, do: 'deletePod', of, byForce: false });
  }
};

/** A kubelet says that its node is not ready, and its taint comes late, while places there become free for many. */
const notReady: Scene = (stage, at) => {
  const { chance, plan } = stage;
  const node = chance.int(0, plan.nodes - 1);
  const tenant = stage.freeTenant(at - SECOND_MS);
  // Nodes have two products in turn.
  const crowd = stage.crowd(at, { tenant, product: node % 2, interruptible: false }, true);
  const forMs = chance.between(60 * SECOND_MS, 120 * SECOND_MS);
  const taintedAfterMs = chance.is(0.3) ? chance.between(100, 5_000) : chance.between(50 * SECOND_MS, forMs);
  const unready = at + chance.between(25 * SECOND_MS, 45 * SECOND_MS);
  stage.add({ at: unready, do: 'unready', node, forMs, taintedAfterMs });
  for (const of of crowd) {
    if (chance.is(0.3)) continue;
    const goes = unready + chance.between(18 * SECOND_MS, 45 * SECOND_MS);
    stage.add({ at: goes, do: 'delete', of, how: 'Background' });
  }
};

/** Nodes answer again while watches lag, so that their pods are heard of before them, and a crowd starts. */
const lateReturn: Scene = (stage, at) => {
  const { chance, plan } = stage;
  const forMs = chance.between(55 * SECOND_MS, 120 * SECOND_MS);
  const first = chance.int(0, plan.nodes - 1);
  for (const node of [first, (first + 1) % plan.nodes])
    stage.add({ at, do: 'lose', node, how: 'silent', forMs, deletesNode: false, forcesPods: false });
  const noticed = at + chance.between(35 * SECOND_MS, 40 * SECOND_MS);
  if (chance.is(0.5)) stage.add({ at: noticed, do: 'storm', kinds: ['lag'], forMs: 12 * SECOND_MS });
  stage.add({ at: at + forMs - SECOND_MS, do: 'storm', kinds: ['lag'], forMs: chance.between(12_000, 30_000) });
  stage.crowd(at + forMs - 3 * SECOND_MS);
};

/** A node is gone with the disks on it, and comes back. */
const lostDisks: Scene = (stage, at) => {
  const { chance, plan } = stage;
  // Every second node has the product whose disks are tied to theirs.
  const node = 2 * chance.int(0, Math.floor(plan.nodes / 2) - 1) + 1;
  stage.crowd(at, { product: 1 }, chance.is(0.5));
  const forMs = chance.between(150 * SECOND_MS, 200 * SECOND_MS);
  const goes = at + chance.between(20 * SECOND_MS, 40 * SECOND_MS);
  stage.add({ at: goes, do: 'lose', node, how: 'off', forMs, deletesNode: true, forcesPods: chance.is(0.3) });
};

/** Interruptible instances have everything, and those on demand take it away, one after the other. */
const preemptions: Scene = (stage, at) => {
  const { chance } = stage;
  const product = chance.int(0, 1);
  stage.crowd(at, { product, interruptible: true });
  for (let count = chance.int(2, 4); count > 0; count -= 1) {
    const comes = at + chance.between(15 * SECOND_MS, 60 * SECOND_MS);
    const of = stage.rent(comes, { product, interruptible: false, gpus: chance.of([2, 4, 8]) ?? 4 });
    stage.add({ at: comes + chance.between(10_000, 90_000), do: 'delete', of, how: 'Background' });
  }
  if (chance.is(0.4))
    stage.add({ at: at + chance.between(15_000, 60_000), do: chance.is(0.5) ? 'kill' : 'stopLeader' });
};

/** A tenant goes, and a finalizer on one of its pods keeps all else of it, while others want what it had. */
const heldTenant: Scene = (stage, at) => {
  const { chance } = stage;
  const tenant = stage.freeTenant(at - 39 * SECOND_MS);
  const product = chance.int(0, 1);
  for (let count = chance.int(2, 5); count > 0; count -= 1) {
    const of = stage.rent(at - chance.between(10 * SECOND_MS, 38 * SECOND_MS), { tenant, product });
    if (chance.is(0.5))
      stage.add({ at: at - chance.between(0, 5 * SECOND_MS), do: 'hold', of, what: 'pod', forMs: FOR_EVER_MS });
    if (chance.is(0.3)) stage.add({ at: at + chance.between(SECOND_MS, 60 * SECOND_MS), do: 'start', of });
  }
  stage.add({ at, do: 'deleteNamespace', tenant });
  stage.crowd(at + chance.between(-10 * SECOND_MS, 20 * SECOND_MS), { product }, chance.is(0.5));
};

const SCENES: readonly Scene[] = [
  prices,
  lostGrants,
  staleSuccessor,
  secondTerm,
  forgetfulServer,
  noPools,
  ceilingAndLine,
  failingServer,
  lastWords,
  again,
  notReady,
  lateReturn,
  lostDisks,
  preemptions,
  heldTenant,
];

/** How much more than once those are drawn that show nothing where GPUs, terms or limits happen to be otherwise. */
const OFTEN: ReadonlyMap<Scene, number> = new Map([
  [staleSuccessor, 2],
  [secondTerm, 3],
  [ceilingAndLine, 2],
  [lastWords, 2],
]);

/** Acts that show a fault only together come together. From numbers of their own, with ids after those of `acts`. */
export function planScenes(chance: Chance, plan: Plan, acts: readonly Act[], firstId: number): Act[] {
  const ends = new Map(acts.flatMap((act) => (act.do === 'delete' ? [[act.of, act.at] as const] : [])));
  const lives = acts
    .filter((act) => act.do === 'rent')
    .map(({ id, at }): Life => ({ of: id, from: at, to: ends.get(id) ?? Infinity }));
  const stage = new Stage(chance, plan, { lives, firstId });
  const mood = new Mood(chance);
  const drawn = SCENES.map((scene) => [OFTEN.get(scene) ?? 1, scene] as const);
  for (let count = 0; count < plan.scenes; count += 1) {
    const scene = mood.of('scene', drawn);
    scene(stage, chance.between(40_000, plan.spanMs * 0.55));
  }
  return stage.acts;
}
