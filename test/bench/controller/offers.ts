import { gpuNode, gpuPod, inventoryOf } from '../../support/inventory-world.ts';

/** Milliseconds from a change of one node to the offers that show it, median of many, with this much in the caches. */
export function offersAfterNodeChange(nodeCount: number, podCount: number): { medianMs: number; worstMs: number } {
  const nodes = Array.from({ length: nodeCount }, (_, index) => gpuNode(`n${index}`));
  const pods = Array.from({ length: podCount }, (_, index) => gpuPod(`p${index}`, `n${index % nodeCount}`));
  const { inventory, caches } = inventoryOf({ nodes, pods });
  inventory.offers();
  const times: number[] = [];
  for (let turn = 0; turn < 50; turn += 1) {
    const node = gpuNode(`n${turn}`, { cordoned: turn % 2 === 0 });
    node.metadata.resourceVersion = String(1000 + turn);
    const start = performance.now();
    caches.nodes.upsert(node);
    inventory.offers();
    times.push(performance.now() - start);
  }
  const sorted = times.toSorted((a, b) => a - b);
  return { medianMs: sorted[25] ?? Number.NaN, worstMs: sorted.at(-1) ?? Number.NaN };
}
