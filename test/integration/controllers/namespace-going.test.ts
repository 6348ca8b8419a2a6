import { expect, test } from 'vitest';
import { NAMESPACES, PODS } from '../../../src/kube/types.ts';
import { createWorld, offeredBy } from '../../faults/support/world.ts';
import { waitFor } from '../../support/wait-for.ts';

// Whoever else runs controllers in this cluster at the same time holds the lease first.
const LEASE_WAIT_MS = 50_000;
const HOLDER = 'example.com/holder';

test('instances of a namespace whose deletion is held up get no place, and hold none', async () => {
  await using world = await createWorld({ nodes: 1, gpusPerNode: 1 });
  const replica = await world.replica();
  const { namespace, client } = world;
  await world.create('one', { onNoCapacity: 'Queue' });
  await world.reached('one', 'Running', LEASE_WAIT_MS);
  await world.create('two', { onNoCapacity: 'Queue' });
  await world.reached('two', 'WaitingForCapacity');
  const holder = { name: 'holder', namespace, finalizers: [HOLDER] };
  await client.create(PODS, { metadata: holder, spec: { containers: [{ name: 'main', image: 'pause' }] } });
  await client.delete(NAMESPACES, { name: namespace });
  await world.reached('two', 'NamespaceTerminating');
  // A namespace controller deletes pods before all else, and those that finalizers hold keep the rest.
  for (const { metadata } of await world.pods()) if (metadata.name !== 'holder') await client.delete(PODS, metadata);
  await world.reached('one', 'NamespaceTerminating');
  await waitFor('the GPU to be free', () => offeredBy(replica, world.fleet) === 1);
  for (const name of ['one', 'two']) expect((await world.get(name))?.status?.claim).toBeUndefined();
});
