import type { Chance } from '../clock/chance.ts';
import type { LayoutName } from '../nodes/layout.ts';
import type { Act } from './acts.ts';
import { dayMs, FOR_EVER_MS, type Plan } from './plan.ts';
import { Stage } from './scenes.ts';

const SECOND_MS = 1_000;

/** What GPUs of the first product can be, and what is rented of them then. */
const DIVIDED: readonly (readonly [weight: number, to: LayoutName, part: string])[] = [
  [2, 'all-3g.40gb', '-MIG-3g.40gb'],
  [1, 'all-1g.10gb', '-MIG-1g.10gb'],
  [2, 'single-3g.40gb', '-MIG-3g.40gb'],
  [2, 'idle-3g.40gb', '-MIG-3g.40gb'],
  [1, 'shared-2', '-SHARED'],
  [2, 'shared-4', '-SHARED'],
];
/** Those of the other product have no MIG. */
const SHARED = DIVIDED.filter(([, , part]) => part === '-SHARED');

/** GPUs of a node are given out otherwise while many want them as they were and as they will be. */
function switchGpus(stage: Stage, at: number, nodes: readonly number[]): void {
  const { chance, plan } = stage;
  const node = chance.one(nodes);
  const product = node % 2;
  const pick = (): readonly [LayoutName, string] =>
    chance.weighted(
      (product === 0 ? DIVIDED : SHARED).map(([weight, to, part]) => [weight, [to, part] as const] as const),
    );
  const tenant = stage.freeTenant(at - 30 * SECOND_MS);
  const isCrowd = plan.days === 1 && chance.is(0.6);
  if (isCrowd) stage.crowd(at - chance.between(0, 25 * SECOND_MS), { tenant, product, interruptible: chance.is(0.3) });
  let from = at;
  // Some change their mind.
  for (let count = chance.int(1, 2); count > 0; count -= 1) {
    const [to, part] = pick();
    const isLast = plan.days === 1 && count === 1 && chance.is(0.3);
    const forMs = isLast ? FOR_EVER_MS : chance.between(20 * SECOND_MS, 240 * SECOND_MS);
    stage.add({ at: from, do: 'switch', node, to, forMs });
    for (let rents = chance.int(2, 7); rents > 0; rents -= 1) {
      const comes = from + chance.between(-10 * SECOND_MS, 60 * SECOND_MS);
      const of = stage.rent(comes, { tenant, product, part, gpus: 1, interruptible: chance.is(0.3) });
      const goes = comes + chance.between(30 * SECOND_MS, 240 * SECOND_MS);
      if (chance.is(0.7)) stage.add({ at: goes, do: 'delete', of, how: 'Background' });
      if (chance.is(0.3)) stage.add({ at: comes + 15 * SECOND_MS, do: 'stop', of });
      if (chance.is(0.3)) stage.add({ at: comes + chance.between(20, 60) * SECOND_MS, do: 'start', of });
    }
    from += Math.min(forMs, chance.between(15 * SECOND_MS, 120 * SECOND_MS));
  }
  if (chance.is(0.3))
    stage.add({ at: at + chance.between(0, 30 * SECOND_MS), do: chance.is(0.5) ? 'kill' : 'stopLeader' });
}

/** Half of a crowd stop within some time, and start again. */
function restartSome(stage: Stage, crowd: readonly number[], { at, forMs }: { at: number; forMs: number }): void {
  const { chance } = stage;
  for (const of of crowd) {
    if (chance.is(0.5)) continue;
    const stops = at + chance.between(0, forMs);
    stage.add({ at: stops, do: 'stop', of });
    stage.add({ at: stops + chance.between(5 * SECOND_MS, 40 * SECOND_MS), do: 'start', of });
  }
}

/** Half of the nodes of a pool are another pool for a while, and some of what runs there starts again. */
function splitPool(stage: Stage, at: number): void {
  const { chance } = stage;
  const pool = chance.int(0, 1);
  const forMs = chance.between(40 * SECOND_MS, 200 * SECOND_MS);
  const gapMs = chance.between(0, 15 * SECOND_MS);
  stage.add({ at, do: 'split', pool, isLabelFirst: chance.is(0.5), gapMs, forMs });
  const crowd = stage.crowd(at - chance.between(0, 20 * SECOND_MS), { product: pool, tenant: stage.freeTenant(at) });
  restartSome(stage, crowd, { at, forMs });
}

/** A pool offers other sizes for a while. */
function resize(stage: Stage, at: number): void {
  const { chance } = stage;
  const pool = chance.int(0, 1);
  const sizes = chance.one([[1], [1, 2], [2, 4], [1, 8], [3, 1]]);
  const forMs = chance.between(40 * SECOND_MS, 200 * SECOND_MS);
  stage.add({ at, do: 'resize', pool, sizes, forMs });
  const crowd = stage.crowd(at - chance.between(0, 40 * SECOND_MS), { product: pool });
  restartSome(stage, crowd, { at, forMs });
}

/**
 * In one of three worlds operators divide GPUs and pools otherwise. From numbers of their own, with ids after those of all
 * other acts. `nodes`: those with a device plugin.
 */
export function planDivisions(chance: Chance, plan: Plan, nodes: readonly number[], firstId: number): Act[] {
  const stage = new Stage(chance, plan, { lives: [], firstId });
  if (!chance.is(1 / 3) || nodes.length === 0) return [];
  for (let day = 0; day < plan.days; day += 1) {
    for (let count = 0; count < plan.divisions; count += 1) {
      const at = day * dayMs(plan) + chance.between(40 * SECOND_MS, plan.spanMs * 0.55);
      const next = chance.weighted([
        [3, () => switchGpus(stage, at, nodes)],
        [1, () => splitPool(stage, at)],
        [1, () => resize(stage, at)],
      ]);
      next();
    }
  }
  return stage.acts;
}
