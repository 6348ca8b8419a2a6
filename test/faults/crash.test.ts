import { expect, test } from 'vitest';
import { USAGE_RECORDS } from '../../src/resources/usage-record.ts';
import { crashAt, recordWrites, type Write } from './support/counting-client.ts';
import { expireLease } from './support/replica.ts';
import { createWorld, offeredBy, type World } from './support/world.ts';

/** A whole life: started, stopped, started again, deleted. */
async function live(world: World, name: string): Promise<void> {
  await world.create(name, { gpu: { count: 2 } });
  await world.reached(name, 'Running');
  await world.patch(name, { spec: { powerState: 'Stopped' } });
  await world.reached(name, 'Stopped');
  await world.patch(name, { spec: { powerState: 'Running' } });
  const again = await world.reached(name, 'Running');
  expect(again.status?.podName).toBe(`${name}-${again.status?.incarnation}`);
  await world.remove(name);
  await world.gone(name);
}

async function records(world: World, name: string): Promise<number> {
  const { items } = await world.client.list(USAGE_RECORDS, { namespace: world.namespace });
  return items.filter(({ spec }) => spec.instance === name).length;
}

// Sieve's intermediate states: the controller dies between any two writes, and the next one goes on.
test('a crash before or after any write changes nothing about the end', { timeout: 600_000 }, async () => {
  await using world = await createWorld();
  const writes: Write[] = [];
  const first = await world.replica({ wrap: (client) => recordWrites(client, writes) });
  await live(world, 'whole');
  await first.stop();
  const own = writes.filter(({ name }) => name.startsWith('whole'));
  expect(own.length).toBeGreaterThan(8);

  for (const when of ['before', 'after'] as const) {
    for (let at = 1; at <= own.length; at += 1) {
      const name = `crash-${when}-${at}`;
      const crash = crashAt({ at, when, prefix: name });
      const doomed = await world.replica({ wrap: crash.wrap, wrapLease: crash.wrapLease });
      const life = live(world, name);
      const outcome = await Promise.race([crash.crashed, life.then(() => undefined)]);
      if (outcome !== undefined) {
        await expireLease(world.client);
        await using next = await world.replica();
        await life;
        expect(await records(world, name), `usage records after a crash ${when} ${JSON.stringify(outcome)}`).toBe(1);
        expect(await world.observer.atRest(offeredBy(next, world.fleet)), JSON.stringify(outcome)).toEqual([]);
        await next.stop();
      }
      await doomed.stop();
    }
  }
  expect(world.observer.violations).toEqual([]);
});
