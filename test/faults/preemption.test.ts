import { expect, test } from 'vitest';
import { PODS } from '../../src/kube/types.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../src/resources/instances/gpu-instance.ts';
import { TENANT_LIMIT_NAME, TENANT_LIMITS } from '../../src/resources/tenants/tenant-limit.ts';
import { hurriedClock } from '../support/scaled-clock.ts';
import { waitFor } from '../support/wait-for.ts';
import { SHARE } from './support/seed.ts';
import { createWorld, readyReason, violationsAtRest, type World } from './support/world.ts';

function names(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
}

/** The instances of these names as one moment saw them. */
async function listed(world: World, some: readonly string[]): Promise<GpuInstance[]> {
  const { items } = await world.client.list(GPU_INSTANCES, { namespace: world.namespace });
  return items.filter(({ metadata }) => some.includes(metadata.name));
}

async function running(world: World, some: readonly string[]): Promise<string[]> {
  const all = await listed(world, some);
  return all.filter((one) => readyReason(one) === 'Running').map(({ metadata }) => metadata.name);
}

/** The program of a simulated pod does not end while it is held. */
async function hold(world: World, podName: string, held: boolean): Promise<void> {
  const ref = { namespace: world.namespace, name: podName };
  const annotations = { 'pod-end.stage.kwok.x-k8s.io/hold': held ? 'true' : null };
  await world.client.patch(PODS, ref, { metadata: { annotations } }, { type: 'merge' });
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
  await hold(world, status?.podName ?? '', true);
  await world.patch('stuck', { spec: { powerState: 'Stopped' } });
  await world.reached('stuck', 'Stopping');
  const sure = names('sure', 8);
  for (const name of sure) await world.create(name);
  await waitFor('those to run that wait for no place of another', async () => (await running(world, sure)).length >= 4);
  // After a minute nobody counts on the places behind the pod that does not end.
  await waitFor('all to run', async () => (await running(world, sure)).length === sure.length, 120_000);
  expect(readyReason(await world.get('stuck'))).toBe('Stopping');
  await hold(world, status?.podName ?? '', false);
  await world.reached('stuck', 'Stopped');
  await waitFor('four interruptible ones to come back', async () => (await running(world, spots)).length === 4);
  expect(await violationsAtRest(world, replica)).toEqual([]);
});

/** Gangs that ask at once; each needs a node that is full of interruptible instances. */
const GANGS = 8 * SHARE;
const LONG = { timeout: 420_000 };

async function starts(world: World, some: readonly string[]): Promise<number[]> {
  return (await listed(world, some)).map(({ status }) => status?.incarnation ?? 0);
}

test('eight that end one after the other each end once for one that needs them all', async () => {
  await using world = await createWorld({ nodes: 1 });
  const replica = await world.replica();
  const spots = names('spot', 8);
  for (const name of spots) await world.create(name, { type: 'Interruptible' });
  for (const name of spots) {
    const { status } = await world.reached(name, 'Running');
    await hold(world, status?.podName ?? '', true);
  }
  await world.create('big', { gpu: { count: 8 }, onNoCapacity: 'Fail' });
  await world.reached('big', 'PlaceComing');
  for (const [index, name] of spots.entries()) {
    const one = await world.reached(name, 'Preempted');
    await hold(world, one.status?.podName ?? '', false);
    await waitFor('its place to be given back', async () => (await world.get(name))?.status?.claim === undefined);
    // Small newcomers of both types would take what has become free.
    await world.create(`late-${index}`, index % 2 === 0 ? {} : { type: 'Interruptible' });
  }
  await world.reached('big', 'Running');
  expect(await starts(world, spots)).toEqual(spots.map(() => 1));
  expect(await violationsAtRest(world, replica)).toEqual([]);
  await world.remove('big');
  await waitFor(
    'the node to be full again',
    async () => (await running(world, [...spots, ...names('late', 8)])).length === 8,
  );
  expect(await violationsAtRest(world, replica)).toEqual([]);
});

test('who takes back a request that others ended for ends nobody again, nor after all replicas started anew', async () => {
  await using world = await createWorld({ nodes: 1 });
  const first = await world.replica();
  const spots = names('spot', 8);
  for (const name of spots) await world.create(name, { type: 'Interruptible' });
  for (const name of spots) {
    const { status } = await world.reached(name, 'Running');
    await hold(world, status?.podName ?? '', true);
  }
  const ended = async (): Promise<string[]> =>
    (await listed(world, spots))
      .filter(({ status }) => status?.ending !== undefined)
      .map(({ metadata }) => metadata.name);
  await world.create('one');
  await world.reached('one', 'PlaceComing');
  await waitFor('one to be told', async () => (await ended()).length === 1);
  await world.remove('one');
  await world.gone('one');
  const ref = { namespace: world.namespace, name: TENANT_LIMIT_NAME };
  await waitFor('it to be remembered', async () => {
    const { status } = await world.client.get(TENANT_LIMITS, ref);
    return status?.held?.withdrawn.length === 1;
  });
  await first.stop();
  await world.replica();
  await world.create('two', { onNoCapacity: 'Queue' });
  const two = await world.reached('two', 'WaitingForCapacity');
  const message = two.status?.conditions?.find(({ type }) => type === 'Ready')?.message;
  expect(message).toContain('others ended for requests of this tenant that it took back');
  expect(await ended()).toHaveLength(1);
  // A place that is free it gets.
  for (const { status } of await listed(world, spots)) if (status?.podName) await hold(world, status.podName, false);
  await world.reached('two', 'Running');
  expect((await world.get('two'))?.status?.claim?.byPreemption).toBeUndefined();
});

test(
  'gangs against a full fleet of interruptible instances all start, and nobody ends twice for them',
  LONG,
  async () => {
    await using world = await createWorld({ nodes: GANGS });
    const replica = await world.replica();
    const spots = names('spot', GANGS * 4);
    await Promise.all(spots.map((name) => world.create(name, { type: 'Interruptible', gpu: { count: 2 } })));
    await waitFor('the fleet to be full', async () => (await running(world, spots)).length === spots.length, 120_000);
    const gangs = names('gang', GANGS);
    await Promise.all(gangs.map((name) => world.create(name, { gpu: { count: 8 } })));
    await waitFor('all gangs to run', async () => (await running(world, gangs)).length === gangs.length, 240_000);
    expect(await starts(world, spots)).toEqual(spots.map(() => 1));
    expect(await starts(world, gangs)).toEqual(gangs.map(() => 1));
    expect(await violationsAtRest(world, replica)).toEqual([]);
  },
);
