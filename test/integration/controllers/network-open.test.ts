import { expect, test } from 'vitest';
import { NETWORK_POLICIES, type NetworkPolicy } from '../../../src/kube/network-policy.ts';
import { createWorld } from '../../faults/support/world.ts';
import { waitFor } from '../../support/wait-for.ts';

// Whoever else runs controllers in this cluster at the same time holds the lease first.
const LEASE_WAIT_MS = 50_000;
const CLOSED = { podSelector: {}, policyTypes: ['Ingress', 'Egress'] };

test('an instance waits until policies close its namespace, and goes on when one of them opens it', async () => {
  await using world = await createWorld();
  await world.replica({ requiresNetworkPolicy: true });
  const { namespace, client } = world;
  const message = async (name: string): Promise<string | undefined> =>
    (await world.get(name))?.status?.conditions?.find(({ type }) => type === 'Ready')?.message;
  const write = (policy: NetworkPolicy) => client.create(NETWORK_POLICIES, policy);
  await world.create('one', { onNoCapacity: 'Queue' });
  await world.reached('one', 'NetworkOpen', LEASE_WAIT_MS);
  await write({ metadata: { namespace, name: 'open' }, spec: { ...CLOSED, egress: [{}] } });
  await waitFor('the message to name it', async () =>
    (await message('one'))?.startsWith(`NetworkPolicy open of namespace ${namespace} lets instances connect`),
  );
  await write({ metadata: { namespace, name: 'closed' }, spec: CLOSED });
  await client.delete(NETWORK_POLICIES, { namespace, name: 'open' });
  await world.reached('one', 'Running');
  await client.delete(NETWORK_POLICIES, { namespace, name: 'closed' });
  await world.create('two', { onNoCapacity: 'Queue' });
  await world.reached('two', 'NetworkOpen');
  expect(await message('one')).toBe('The instance is up.');
});
