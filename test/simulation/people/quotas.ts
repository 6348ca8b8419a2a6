import type { Chance } from '../clock/chance.ts';
import type { Act } from './acts.ts';
import { dayMs, FOR_EVER_MS, type Plan } from './plan.ts';
import { Stage } from './scenes.ts';

const SECOND_MS = 1_000;

/** A namespace gets a quota, and its tenant wants more than that; some stop and start again. */
function limit(stage: Stage, at: number): void {
  const { chance, plan } = stage;
  const tenant = stage.tenant();
  const [gpus, pods] = chance.one([
    [chance.int(0, 8), undefined],
    [undefined, chance.int(0, 3)],
    [chance.int(2, 10), chance.int(1, 5)],
  ] as const);
  const isForEver = plan.days === 1 && chance.is(0.3);
  const forMs = isForEver ? FOR_EVER_MS : chance.between(40 * SECOND_MS, 240 * SECOND_MS);
  stage.add({
    at,
    do: 'quota',
    tenant,
    ...(gpus !== undefined && { gpus }),
    ...(pods !== undefined && { pods }),
    forMs,
  });
  const crowd = stage.crowd(at + chance.between(-20 * SECOND_MS, 20 * SECOND_MS), {
    tenant,
    product: chance.int(0, 1),
    interruptible: chance.is(0.2),
  });
  for (const of of crowd) {
    if (chance.is(0.6)) continue;
    const stops = at + chance.between(5 * SECOND_MS, 120 * SECOND_MS);
    stage.add({ at: stops, do: 'stop', of });
    stage.add({ at: stops + chance.between(5 * SECOND_MS, 40 * SECOND_MS), do: 'start', of });
  }
  if (chance.is(0.3))
    stage.add({ at: at + chance.between(0, 30 * SECOND_MS), do: chance.is(0.5) ? 'kill' : 'stopLeader' });
}

/** In one of four worlds operators limit namespaces by quotas. From numbers of their own, with ids from `firstId` on. */
export function planQuotas(chance: Chance, plan: Plan, firstId: number): Act[] {
  const stage = new Stage(chance, plan, { lives: [], firstId });
  if (!chance.is(1 / 4)) return [];
  for (let day = 0; day < plan.days; day += 1)
    for (let count = 0; count < plan.quotas; count += 1)
      limit(stage, day * dayMs(plan) + chance.between(20 * SECOND_MS, plan.spanMs * 0.55));
  return stage.acts;
}
