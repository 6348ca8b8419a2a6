import fc from 'fast-check';
import { expect, inject, test } from 'vitest';
import { InvalidError } from '../../src/kube/errors.ts';
import { GPU_POOLS } from '../../src/resources/gpu-pool.ts';
import type { GpuInstance } from '../../src/resources/instances/gpu-instance.ts';
import { waitFor } from '../support/wait-for.ts';
import { essence, instanceMutations, type Mutation } from './support/mutations.ts';
import { isSettled } from './support/settled.ts';
import { createWorld, readyReason, violationsAtRest, type World } from './support/world.ts';

/** Mutations of one run. Each takes two instances through four starts. */
const SAMPLE = 48;
const WIDTH = 12;
/** These fields matter at the first start alone, so a changed instance differs from one that was created so. */
const FIRST_START_ONLY = new Set(['offerDiskSpace']);

async function settled(world: World, name: string): Promise<GpuInstance> {
  return waitFor(
    `${name} to settle`,
    async () => {
      const one = await world.get(name);
      return one !== undefined && isSettled(one) ? one : undefined;
    },
    60_000,
  );
}

/** The state of an instance, and what its pod was made from. */
async function outcome(world: World, name: string): Promise<unknown> {
  const one = await settled(world, name);
  const pod = (await world.pods()).find(({ metadata }) => metadata.name === one.status?.podName);
  return { reason: readyReason(one), pod: essence(pod, one) };
}

async function restart(world: World, name: string): Promise<void> {
  await world.patch(name, { spec: { powerState: 'Stopped' } });
  await settled(world, name);
  await world.patch(name, { spec: { powerState: 'Running' } });
}

async function set(world: World, name: string, field: string, value: unknown): Promise<boolean> {
  try {
    await world.patch(name, { spec: { [field]: value } });
    return true;
  } catch (error) {
    // A refusal must name the field.
    if (!(error instanceof InvalidError)) throw error;
    expect(error.message, `${field} ${JSON.stringify(value).slice(0, 80)}`).toContain(`spec.${field}`);
    return false;
  }
}

async function mutate(world: World, { field, value }: Mutation, index: number): Promise<'refused' | 'taken'> {
  const [name, fresh] = [`m-${index}`, `f-${index}`];
  const context = `${field}: ${JSON.stringify(value).slice(0, 80)}`;
  await world.create(name);
  const first = await outcome(world, name);
  expect(first, context).toMatchObject({ reason: 'Running' });
  if (!(await set(world, name, field, value))) {
    expect(await outcome(world, name), context).toEqual(first);
    return 'refused';
  }
  await settled(world, name);
  await restart(world, name);
  const changed = await outcome(world, name);
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!FIRST_START_ONLY.has(field) && !isObject) {
    await world.create(fresh, { [field]: value });
    expect(await outcome(world, fresh), `${context}, against an instance made so`).toEqual(changed);
    await world.remove(fresh);
  }
  // Some fields can be set once only. Then the API server refuses the way back.
  if (await set(world, name, field, null)) {
    await restart(world, name);
    expect(await outcome(world, name), `${context}, and back`).toEqual(first);
  }
  return 'taken';
}

// As in the Acto paper: from A to B and back to A, for every field of the schema. B must equal an instance created as
// B.
test('whatever is written into a field, the way back leads to where it began', { timeout: 600_000 }, async () => {
  await using world = await createWorld({ nodes: 16 });
  const replica = await world.replica();
  const all = instanceMutations();
  const [sample = []] = fc.sample(fc.shuffledSubarray(all, { minLength: SAMPLE, maxLength: SAMPLE }), {
    numRuns: 1,
    seed: inject('seed'),
  });
  const results: ('refused' | 'taken')[] = [];
  for (let from = 0; from < sample.length; from += WIDTH) {
    const some = sample.slice(from, from + WIDTH);
    results.push(...(await Promise.all(some.map((mutation, index) => mutate(world, mutation, from + index)))));
  }
  expect(new Set(results)).toEqual(new Set(['refused', 'taken']));
  expect(await violationsAtRest(world, replica)).toEqual([]);
  for (const [index] of sample.entries()) {
    await world.remove(`m-${index}`);
    await world.remove(`f-${index}`);
  }
  for (const [index] of sample.entries()) await world.gone(`m-${index}`, 60_000);
  expect(await violationsAtRest(world, replica)).toEqual([]);
});

test('a switch that is flipped again and again ends where it was left, with one pod', async () => {
  await using world = await createWorld();
  const replica = await world.replica();
  await world.create('one');
  for (let turn = 0; turn < 25; turn += 1) {
    await world.patch('one', { spec: { powerState: turn % 2 === 0 ? 'Stopped' : 'Running' } });
  }
  await settled(world, 'one');
  await world.reached('one', 'Stopped');
  // A pod that has ended keeps its finalizer for a moment after that.
  await waitFor('its pods to go', async () => (await world.pods()).length === 0);
  await world.patch('one', { spec: { powerState: 'Running' } });
  await world.reached('one', 'Running');
  expect(await violationsAtRest(world, replica)).toEqual([]);
});

test('a pool that goes while instances run leaves them alone, and takes only its offers', async () => {
  await using world = await createWorld();
  const replica = await world.replica();
  await world.create('one');
  const before = await world.reached('one', 'Running');
  await world.client.delete(GPU_POOLS, { name: world.fleet.pool });
  await waitFor('the offers to go', () =>
    replica.inventory.offers().every(({ product }) => product !== world.fleet.product),
  );
  await world.create('late');
  await world.reached('late', 'WaitingForCapacity');
  expect((await world.get('one'))?.status?.podUid).toBe(before.status?.podUid);
  await world.remove('one');
  await world.gone('one');
  expect(world.observer.violations).toEqual([]);
});

test('names up to the bound work, and longer ones are refused with the bound', async () => {
  await using world = await createWorld();
  const replica = await world.replica();
  const longest = 'n'.repeat(52);
  await world.create(longest);
  await world.reached(longest, 'Running');
  await expect(world.create('n'.repeat(53))).rejects.toThrow('52 characters');
  await world.remove(longest);
  await world.gone(longest);
  expect(await violationsAtRest(world, replica)).toEqual([]);
});
