import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { expect, inject, test } from 'vitest';
import type { Pod } from '../../src/kube/types.ts';
import { GPU_INSTANCES } from '../../src/resources/instances/gpu-instance.ts';
import { USAGE_RECORDS } from '../../src/resources/usage-record.ts';
import { type Crash, crashAt, recordWrites, type Write } from './support/counting-client.ts';
import { waitFor } from '../support/wait-for.ts';
import { expireLease } from './support/replica.ts';
import { SHARE } from './support/seed.ts';
import { createWorld, violationsAtRest, type World } from './support/world.ts';

/** Called when the instances have reached a stage of the story. */
type Reached = () => Promise<void>;

interface Story {
  name: string;
  run: (world: World, name: string, reached: Reached) => Promise<void>;
  /** How many of its instances had a start. */
  records: number;
  /** Crashes in one share of the suite. Runs with other seeds try other points. */
  points: number;
}

async function reach(world: World, name: string, reason: string): Promise<void> {
  await world.reached(name, reason, 60_000);
}

/** Started, stopped, started again, deleted. */
const WHOLE_LIFE: Story = {
  name: 'life',
  records: 1,
  points: 14,
  async run(world, name, reached) {
    await world.create(name, { gpu: { count: 2 } });
    await reach(world, name, 'Running');
    await reached();
    await world.patch(name, { spec: { powerState: 'Stopped' } });
    await reach(world, name, 'Stopped');
    await reached();
    await world.patch(name, { spec: { powerState: 'Running' } });
    await reach(world, name, 'Running');
    await reached();
    await world.remove(name);
    await world.gone(name, 60_000);
    await reached();
  },
};

/** An on-demand instance preempts an interruptible one, which starts again afterwards. */
const PREEMPTION: Story = {
  name: 'preemption',
  records: 2,
  points: 7,
  async run(world, name, reached) {
    await world.create(`${name}-spot`, { type: 'Interruptible', gpu: { count: 8 } });
    await reach(world, `${name}-spot`, 'Running');
    await world.create(`${name}-sure`, { gpu: { count: 4 } });
    await reach(world, `${name}-sure`, 'Running');
    await reach(world, `${name}-spot`, 'Preempted');
    await reached();
    await world.remove(`${name}-sure`);
    await world.gone(`${name}-sure`, 60_000);
    await reach(world, `${name}-spot`, 'Running');
    await reached();
    await world.remove(`${name}-spot`);
    await world.gone(`${name}-spot`, 60_000);
    await reached();
  },
};

/** An instance whose status has as many ended starts as it may: they go to a record of their own before it starts. */
const FULL_BILL: Story = {
  name: 'full bill',
  records: 2,
  points: 7,
  async run(world, name, reached) {
    await world.create(name, { powerState: 'Stopped' });
    await reach(world, name, 'Stopped');
    const product = world.fleet.product;
    const one = { gpuSeconds: 60, cost: '0.10', currency: 'USD', product, gpuCount: 1 };
    const at = (minute: number): string => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString();
    const intervals = Array.from({ length: 8 }, (_, index) => {
      return { ...one, start: index + 1, from: at(2 * index), to: at(2 * index + 1) };
    });
    const usage = { gpuSeconds: 480, cost: '0.80', currency: 'USD', until: at(15) };
    const ref = { namespace: world.namespace, name };
    const options = { type: 'merge', subresource: 'status' } as const;
    await world.client.patch(GPU_INSTANCES, ref, { status: { incarnation: 8, intervals, usage } }, options);
    await world.patch(name, { spec: { powerState: 'Running' } });
    await reach(world, name, 'Running');
    await reached();
    await world.remove(name);
    await world.gone(name, 60_000);
    await reached();
    const { items } = await world.client.list(USAGE_RECORDS, { namespace: world.namespace });
    const starts = items
      .filter(({ spec }) => spec.instance === name)
      .flatMap(({ spec }) => spec.intervals ?? [])
      .map(({ start }) => start);
    // The ninth may have ended before it was ready, and then cost nothing.
    expect(starts.toSorted((a, b) => a - b).slice(0, 8)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  },
};

async function records(world: World, name: string): Promise<number> {
  const { items } = await world.client.list(USAGE_RECORDS, { namespace: world.namespace });
  return items.filter(({ spec }) => spec.instance.startsWith(name)).length;
}

/** The starts and bills of the instances of a story. Unlike conditions they must not go back, not even for a moment. */
async function starts(world: World, name: string): Promise<unknown> {
  const { items } = await world.client.list(GPU_INSTANCES, { namespace: world.namespace });
  return items
    .filter(({ metadata }) => metadata.name.startsWith(name))
    .map(({ metadata, status }) => [
      metadata.name,
      status?.incarnation,
      status?.podUid,
      status?.usage,
      status?.intervals,
    ]);
}

async function podsOf(world: World, name: string): Promise<Pod[]> {
  return (await world.pods()).filter(({ metadata }) => metadata.name.startsWith(`${name}-`));
}

function uidsOf(pods: readonly Pod[]): unknown[] {
  return pods.map(({ metadata }) => metadata.uid);
}

/**
 * Delivers the late write when its sender is dead and the next stage is reached, and checks that it changes nothing.
 */
async function deliverLate(world: World, name: string, crash: Crash): Promise<void> {
  const before = await starts(world, name);
  // Those of starts that have ended go in their own time.
  const stay = uidsOf((await podsOf(world, name)).filter(({ metadata }) => metadata.deletionTimestamp === undefined));
  await crash.deliver();
  expect(await starts(world, name)).toEqual(before);
  // The creation of a pod is the one write without a condition, since Kubernetes has none across objects. A late pod of
  // a start that has ended is created, and must be deleted again.
  await waitFor('the pods as they were', async () => isDeepStrictEqual(uidsOf(await podsOf(world, name)), stay));
  expect(await starts(world, name)).toEqual(before);
}

async function liveThrough(world: World, story: Story, crash: Crash, name: string): Promise<boolean> {
  const doomed = await world.replica({ wrap: crash.wrap, wrapLease: crash.wrapLease });
  let died: Write | undefined;
  void crash.crashed.then((write) => (died = write));
  let delivered = false;
  const life = story.run(world, name, async () => {
    if (died === undefined || delivered) return;
    delivered = true;
    await deliverLate(world, name, crash);
  });
  const outcome = await Promise.race([crash.crashed, life.then(() => undefined)]);
  if (outcome !== undefined) {
    await expireLease(world.client);
    await using next = await world.replica();
    await life;
    const context = `died at ${JSON.stringify(outcome)}`;
    expect(await records(world, name), context).toBe(story.records);
    expect(await violationsAtRest(world, next), context).toEqual([]);
    await next.stop();
  }
  await doomed.stop();
  return outcome !== undefined;
}

interface Point {
  when: 'after' | 'late';
  at: number;
}

function pointsOf(count: number, limit: number): Point[] {
  const all = Array.from({ length: count }, (_, index) => index + 1).flatMap((at): Point[] => [
    { when: 'after', at },
    { when: 'late', at },
  ]);
  const size = Math.min(limit, all.length);
  const chosen = fc.subarray(all, { minLength: size, maxLength: size });
  return fc.sample(chosen, { numRuns: 1, seed: inject('seed') })[0] ?? [];
}

// Intermediate states in the Sieve paper: the controller dies between any two writes, and the next one goes on. It dies
// after a write, or while a write is on its way. That write arrives when the next controller has done the work: the
// lease and timers cannot stop it, so its conditions must.
test.each([WHOLE_LIFE, PREEMPTION, FULL_BILL])(
  '$name: a crash at any write changes nothing',
  { timeout: 600_000 },
  async (story) => {
    await using world = await createWorld({ nodes: 1 });
    const writes: Write[] = [];
    const first = await world.replica({ wrap: (client) => recordWrites(client, writes) });
    await story.run(world, 'whole', () => Promise.resolve());
    await first.stop();
    const own = writes.filter(({ name }) => name.startsWith('whole'));
    expect(own.length).toBeGreaterThan(8);
    let crashes = 0;
    const points = pointsOf(own.length, story.points * SHARE);
    for (const { when, at } of points) {
      const name = `crash-${when}-${at}`;
      if (await liveThrough(world, story, crashAt({ at, when, prefix: name }), name)) crashes += 1;
    }
    // Two writes that are sent side by side may count as one.
    expect(crashes).toBeGreaterThan(points.length / 2);
    expect(world.observer.violations).toEqual([]);
  },
);
