import { expect, test } from 'vitest';
import { endingOf } from '../../../src/controllers/gpu-instance/decide/endings.ts';
import { releasedStatus } from '../../../src/controllers/gpu-instance/decide/transitions.ts';
import { controllerWorld, held } from '../../support/controller-world.ts';
import { claimOn, gpuInstance, gpuNode, inventoryOf, placeRequest } from '../../support/inventory-world.ts';

/** Instance `one`, whose place on `node` the scheduler refused. */
function refusedOn(node: string, at: number) {
  const ending = { reason: 'PlaceLost', message: 'Refused.', at: new Date(at).toISOString(), generation: 1 };
  const claimed = gpuInstance(
    'one',
    { gpu: { count: 8 } },
    { claim: claimOn(node, { gpuCount: 8 }), incarnation: 1, ending },
  );
  const seen = endingOf(claimed.status);
  if (seen === undefined) throw new Error('no ending');
  return held(gpuInstance('one', claimed.spec, releasedStatus(claimed, seen, at)));
}

test('a place that the scheduler refused is left to others while another fits', async () => {
  const world = controllerWorld(undefined, undefined, { nodes: [gpuNode('a'), gpuNode('b')] });
  world.instances.upsert(refusedOn('a', world.clock.now() - 2_000));
  await world.reconcile('one');
  const { claim, failures } = world.instances.store.get('default/one')?.status ?? {};
  expect(claim?.node).toBe('b');
  expect(failures).toMatchObject({ count: 1, avoided: ['a'] });
  expect(failures?.nodes).toBeUndefined();
  // Another instance gets it at once: three such refusals put no node in quarantine.
  world.instances.upsert(held(gpuInstance('two', { gpu: { count: 8 } })));
  await world.reconcile('two');
  expect(world.instances.store.get('default/two')?.status?.claim?.node).toBe('a');
});

test('it is tried again where no other fits', async () => {
  const world = controllerWorld(undefined, undefined, { nodes: [gpuNode('a')] });
  world.instances.upsert(refusedOn('a', world.clock.now() - 2_000));
  await world.reconcile('one');
  expect(world.instances.store.get('default/one')?.status?.claim?.node).toBe('a');
});

test('a node is avoided although its GPUs are the cheapest', () => {
  const large = gpuNode('b', { labels: { 'nvidia.com/gpu.product': 'H100' } });
  const { inventory } = inventoryOf({ nodes: [gpuNode('a'), large] });
  const at = (avoid: string[]) => inventory.grant(placeRequest({ avoid: new Set(avoid) }));
  const first = ['a', 'b'].find(
    (node) => 'place' in at([]) && (at([]) as { place: { node: string } }).place.node === node,
  );
  expect(at([first ?? ''])).toMatchObject({ place: { node: first === 'a' ? 'b' : 'a' } });
  expect(at(['a', 'b'])).toMatchObject({ place: { node: first } });
});
