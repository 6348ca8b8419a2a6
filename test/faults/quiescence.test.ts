import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { GPU_INSTANCES } from '../../src/resources/instances/gpu-instance.ts';
import { INSTANCE_HISTORIES } from '../../src/resources/instance-history.ts';
import { hurriedClock } from '../support/scaled-clock.ts';
import { waitFor } from '../support/wait-for.ts';
import { type Write, recordWrites } from './support/counting-client.ts';
import { createWorld, violationsAtRest } from './support/world.ts';

/** How much faster time passes for the controllers. */
const HASTE = 3;
/** Twelve seconds for the controllers: longer than all their timers, those for failures and for what is compared now and then aside. */
const REST_MS = 4_000;

// cluster-api test/framework, ValidateResourceVersionStable.
test('at rest nothing is written', async () => {
  await using world = await createWorld();
  const writes: Write[] = [];
  const clock = hurriedClock(HASTE);
  const replica = await world.replica({ wrap: (client) => recordWrites(client, writes), clock });
  await world.create('running');
  await world.create('stopped', { powerState: 'Stopped' });
  await world.create('waiting', { gpu: { count: 64 } });
  await world.create('spot', { type: 'Interruptible', maxDuration: '10h', idleTimeout: '10h' });
  await world.create('refused', { gpu: { count: 64 }, onNoCapacity: 'Fail' });
  await world.reached('running', 'Running');
  await world.reached('stopped', 'Stopped');
  await world.reached('waiting', 'WaitingForCapacity');
  await world.reached('spot', 'Running');
  await world.reached('refused', 'NoCapacity');
  // Histories follow fifteen seconds after the first change, the counts of the pool sooner.
  const histories = async () => (await world.client.list(INSTANCE_HISTORIES, { namespace: world.namespace })).items;
  await waitFor('the histories', async () => (await histories()).length === 5, 60_000);
  await delay(REST_MS / 2);
  const versions = async (): Promise<unknown> => {
    const { items } = await world.client.list(GPU_INSTANCES, { namespace: world.namespace });
    return items.map(({ metadata }) => [metadata.name, metadata.resourceVersion]);
  };
  const before = await versions();
  writes.length = 0;
  // The test is about time passing, so it waits for a time and not for a condition.
  await delay(REST_MS);
  // A new leader ends the histories of instances that went while nobody led: those of the tests before.
  const own = writes.filter(({ namespace }) => namespace === undefined || namespace === world.namespace);
  expect(own).toEqual([]);
  expect(await versions()).toEqual(before);
  expect(await violationsAtRest(world, replica)).toEqual([]);
});

test('an instance takes at most five writes from create to ready', async () => {
  await using world = await createWorld();
  const writes: Write[] = [];
  await world.replica({ wrap: (client) => recordWrites(client, writes) });
  await world.create('one');
  await world.reached('one', 'Running');
  const own = writes.filter(({ name }) => name.startsWith('one'));
  expect(own.length, JSON.stringify(own)).toBeLessThanOrEqual(5);
});
