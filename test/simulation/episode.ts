import { GPU_INSTANCES, type GpuInstance } from '../../src/resources/instances/gpu-instance.ts';
import { EVENTS, PODS } from '../../src/kube/types.ts';
import { Chance } from './clock/chance.ts';
import { isKept, judgeAtRest, judgeLeftovers } from './judge/at-rest.ts';
import type { Violation } from './judge/judge.ts';
import type { Act } from './people/acts.ts';
import type { Holding } from './nodes/witness.ts';
import { slicedIn } from './nodes/sliced.ts';
import { planMoney } from './people/money.ts';
import { dayMs, LAST_LOOK_MS, type Plan, planActs, planDeviceActs } from './people/plan.ts';
import { planDivisions } from './people/divisions.ts';
import { planQuotas } from './people/quotas.ts';
import { planScenes } from './people/scenes.ts';
import { People } from './people/perform.ts';
import { World } from './world.ts';

/** A disk that is there may keep an instance for a moment. */
const END_MS = 3 * 60_000;
const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;

export interface Outcome {
  seed: number;
  violations: readonly Violation[];
  history: readonly { at: number; text: string }[];
  acts: number;
  starts: number;
  lives: number;
  /** Simulated milliseconds, */
  elapsed: number;
  /** and with the nights in which only wall clocks go on. */
  simulated: number;
  refusals: ReadonlyMap<string, number>;
}

function nextId(acts: readonly Act[]): number {
  return acts.reduce((most, { id }) => Math.max(most, id), 0) + 1;
}

export function actsOf(seed: number, plan: Plan): Act[] {
  const { nodes, firstDay } = plan;
  const acts = planActs(new Chance(seed ^ 0xac75 ^ (firstDay << 16)), plan);
  const sliced = [...slicedIn({ seed, nodes, firstDay }).nodes];
  const ofDevices = planDeviceActs(new Chance(seed ^ 0xde71ce ^ (firstDay << 16)), plan, sliced, acts.length + 1);
  const all = [...acts, ...ofDevices];
  const scenes = planScenes(new Chance(seed ^ 0x5ce9e ^ (firstDay << 16)), plan, acts, all.length + 1);
  const planned = [...all, ...scenes];
  const divided = planDivisions(
    new Chance(seed ^ 0xd1715 ^ (firstDay << 16)),
    plan,
    Array.from({ length: nodes }, (_, node) => node).filter((node) => !sliced.includes(node)),
    nextId(planned),
  );
  const withMoney = planMoney(
    new Chance(seed ^ 0x3a0e1 ^ (firstDay << 16)),
    plan,
    [...planned, ...divided],
    nextId([...planned, ...divided]),
  );
  const limits = planQuotas(new Chance(seed ^ 0x900a ^ (firstDay << 16)), plan, nextId(withMoney));
  return [...withMoney, ...limits].toSorted((a, b) => a.at - b.at || a.id - b.id);
}

/** One world, from the first rental until everything is deleted and billed. */
export async function runEpisode(seed: number, plan: Plan, acts: readonly Act[]): Promise<Outcome> {
  const world = new World({ seed, ...plan });
  const people = new People(world);
  const { time, judge } = world;
  try {
    for (let day = 0; day < plan.days && judge.violations.length === 0; day += 1) {
      if (day > 0) await night(world);
      const morning = day * dayMs(plan);
      const own = acts.filter(({ at }) => at >= morning && at < morning + dayMs(plan));
      // Few days are left of a year that is made short.
      if (own.length === 0 && day + 1 < plan.days) continue;
      await world.start();
      await live(world, people, { morning, plan, acts: own });
    }
    if (judge.violations.length === 0) await endAll(world);
    const { violations, history, starts, lives } = judge;
    return {
      seed,
      violations,
      history,
      acts: acts.length,
      starts,
      lives,
      elapsed: time.elapsed,
      simulated: time.passed,
      refusals: people.refusals,
    };
  } finally {
    world.end();
  }
}

/** One day: what everybody does, a rest without faults, and a look at what is left. */
async function live(
  world: World,
  people: People,
  { morning, plan, acts }: { morning: number; plan: Plan; acts: readonly Act[] },
): Promise<void> {
  const { time, judge } = world;
  const begun = time.elapsed - morning;
  for (const act of acts) {
    const wait = begun + act.at - time.elapsed;
    if (wait > 0) await time.advance(wait);
    people.perform(act);
    if (judge.violations.length > 0) return;
  }
  const end = begun + morning + dayMs(plan);
  const left = begun + morning + plan.spanMs - time.elapsed;
  if (left > 0) await time.advance(left);
  people.heal();
  await time.advance(end - LAST_LOOK_MS - time.elapsed);
  // What a dead caller left is removed by then, and machines that were switched on last have answered.
  people.heal();
  await time.advance(LAST_LOOK_MS);
  await settleEnds(world);
  judgeAtRest(world, people);
  judge.settle(world.cluster.api);
}

/** Whether a program is told to end, or is about to be. */
function isAnyEnding({ cluster: { api, machines } }: World): boolean {
  const isGoing = ({ pod: { metadata } }: Holding): boolean =>
    api.find(PODS, metadata)?.metadata.deletionTimestamp !== undefined;
  return (
    [...machines.values()].some(({ holdings }) => holdings.some(isGoing)) ||
    api.list<GpuInstance>(GPU_INSTANCES).some(({ status: { claim, ending } = {} }) => ending !== undefined && claim)
  );
}

/** A budget or a limit may be over at any time: what ends gets its grace, and who waits for its place gets that. */
async function settleEnds(world: World): Promise<void> {
  if (!isAnyEnding(world)) return;
  let isLast = false;
  for (let left = END_MS / LAST_LOOK_MS; left > 0 && !isLast; left -= 1) {
    isLast = !isAnyEnding(world);
    await world.time.advance(LAST_LOOK_MS);
  }
}

/** Berth is down until the next morning, and what runs runs on: no grace lasts a night. Kubernetes forgets its Events. */
async function night(world: World): Promise<void> {
  const { api } = world.cluster;
  for (let left = END_MS / SECOND_MS; left > 0 && isAnyEnding(world); left -= 1) await world.time.advance(SECOND_MS);
  world.stop();
  for (const { metadata } of api.list(EVENTS)) api.delete(EVENTS, metadata);
  world.time.skip(world.chance.between(6, 18) * HOUR_MS);
}

async function endAll(world: World): Promise<void> {
  const { time, judge } = world;
  const { api } = world.cluster;
  for (const { metadata } of api.list(GPU_INSTANCES)) {
    judge.unwanted(metadata.uid ?? '');
    api.delete(GPU_INSTANCES, metadata);
  }
  await time.advance(END_MS);
  for (const instance of api.list<GpuInstance>(GPU_INSTANCES))
    if (isKept(instance)) judge.blame(8, `${instance.metadata.name} cannot be deleted`);
  judgeLeftovers(world);
  world.exportUsage(true);
  await time.advance(LAST_LOOK_MS);
  judge.settle(api);
}
