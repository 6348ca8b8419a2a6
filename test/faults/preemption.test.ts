import { expect, test } from 'vitest';
import { PODS } from '../../src/kube/types.ts';
import { hurriedClock } from '../support/scaled-clock.ts';
import { waitFor } from '../support/wait-for.ts';
import { createWorld, readyReason, violationsAtRest, type World } from './support/world.ts';

function names(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
}

async function running(world: World, some: readonly string[]): Promise<string[]> {
  const all = await Promise.all(some.map((name) => world.get(name)));
  return all.filter((one) => readyReason(one) === 'Running').map((one) => one?.metadata.name ?? '');
}

/** Sets the finalizers of a pod: with one, the pod stays in Terminating although its node is well. */
async function hold(world: World, podName: string, finalizers: string[]): Promise<void> {
  const ref = { namespace: world.namespace, name: podName };
  await world.client.patch(PODS, ref, { metadata: { finalizers } }, { type: 'merge' });
}

test('a pod that does not end stops no preemption, and eight preempt eight', async () => {
  await using world = await createWorld({ nodes: 2 });
  // The minute that the controller gives a pod to end, in fifteen seconds.
  const replica = await world.replica({ clock: hurriedClock(4) });
  // One node is full of on-demand instances and the one that will not end, the other of interruptible ones.
  await world.create('stuck', { gpu: { count: 4 } });
  const { status } = await world.reached('stuck', 'Running');
  await world.create('other', { gpu: { count: 4 } });
  await world.reached('other', 'Running');
  const spots = names('spot', 8);
  for (const name of spots) await world.create(name, { type: 'Interruptible' });
  for (const name of spots) await world.reached(name, 'Running');
  await hold(world, status?.podName ?? '', ['berth.test/stuck']);
  await world.patch('stuck', { spec: { powerState: 'Stopped' } });
  await world.reached('stuck', 'Stopping');
  const sure = names('sure', 8);
  for (const name of sure) await world.create(name);
  await waitFor('those to run that wait for no place of another', async () => (await running(world, sure)).length >= 4);
  // After a minute nobody counts on the places behind the pod that does not end.
  await waitFor('all to run', async () => (await running(world, sure)).length === sure.length, 120_000);
  expect(readyReason(await world.get('stuck'))).toBe('Stopping');
  await hold(world, status?.podName ?? '', []);
  await world.reached('stuck', 'Stopped');
  await waitFor('four interruptible ones to come back', async () => (await running(world, spots)).length === 4);
  expect(await violationsAtRest(world, replica)).toEqual([]);
});
