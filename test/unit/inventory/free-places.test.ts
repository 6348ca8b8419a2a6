import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  claimOn,
  gpuInstance,
  gpuNode,
  gpuPod,
  gpuPool,
  inventoryOf,
  placeRequest,
} from '../../support/inventory-world.ts';

const NODES = ['n0', 'n1', 'n2'];
type World = ReturnType<typeof inventoryOf>;
type Change = { what: string; node: number; name: number; size: number };

let versions = 0;
function fresh<T extends { metadata: object }>(object: T): T {
  versions += 1;
  return { ...object, metadata: { ...object.metadata, resourceVersion: String(1_000 + versions) } };
}

function apply({ caches, inventory, clock }: World, { what, node, name, size }: Change): void {
  const on = NODES[node] ?? 'n0';
  const instance = gpuInstance(`i${name}`, {}, { claim: claimOn(on, { gpuCount: size }) });
  if (what === 'node') caches.nodes.upsert(fresh(gpuNode(on, { cordoned: size === 8 })));
  if (what === 'no node') caches.nodes.remove(gpuNode(on));
  if (what === 'pool')
    caches.pools.upsert(fresh(gpuPool(`p${name}`, { sizes: [...new Set([1, size])], nodeSelector: {} })));
  if (what === 'no pool') caches.pools.remove(gpuPool(`p${name}`));
  if (what === 'pod') caches.pods.upsert(fresh(gpuPod(`pod${name}`, on, { gpus: size })));
  if (what === 'no pod') caches.pods.remove(gpuPod(`pod${name}`, on));
  if (what === 'claim') caches.instances.upsert(fresh(instance));
  if (what === 'no claim') caches.instances.remove(instance);
  if (what === 'assume') inventory.assume(instance, claimOn(on, { gpuCount: size }), { gb: 1, persistent: true });
  if (what === 'forget') inventory.forget(`default/i${name}`);
  if (what === 'failures') {
    const failures = { count: 1, lastTime: new Date(clock.at).toISOString(), nodes: [on] };
    caches.instances.upsert(fresh(gpuInstance(`i${name}`, {}, { failures })));
  }
  if (what === 'time') clock.at += size * 100_000;
}

// Offers are summed up node by node each time, what is free is kept up change by change.
test('what is kept up change by change is what a look at every node finds', () => {
  const names = ['node', 'no node', 'pool', 'no pool', 'pod', 'no pod', 'claim', 'no claim', 'assume', 'forget'];
  const change = fc.record({
    what: fc.constantFrom(...names, 'failures', 'time'),
    node: fc.nat(NODES.length - 1),
    name: fc.nat(4),
    size: fc.constantFrom(1, 2, 4, 8),
  });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 40 }), (changes) => {
      const world = inventoryOf({ nodes: NODES.map((name) => gpuNode(name)) });
      for (const one of changes) {
        apply(world, one);
        const { inventory } = world;
        for (const { id, available } of inventory.offers()) {
          const request = placeRequest({ offerId: id, diskGb: 1 });
          expect(inventory.placesFor(request)).toBe(available);
          expect(inventory.hasPlace(request)).toBe(available > 0);
          expect('place' in inventory.grant(request)).toBe(available > 0);
        }
      }
    }),
    { numRuns: 300 },
  );
});
