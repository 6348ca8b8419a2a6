import { expect, test } from 'vitest';
import { gpuNode, gpuPool, inventoryOf } from '../../support/inventory-world.ts';

test.each([
  [undefined, 0],
  [{ key: 'team', operator: 'Exists' }, 8],
  [{ key: 'team', operator: 'Equal', value: 'ml' }, 8],
  [{ key: 'team', operator: 'Equal', value: 'web' }, 0],
  [{ key: 'team', operator: 'Exists', effect: 'NoExecute' }, 0],
  [{ key: 'other', operator: 'Exists' }, 0],
] as const)(
  'a pool that tolerates %j rents a node with the taint team=ml:NoSchedule as %i GPUs',
  (toleration, want) => {
    const nodes = [gpuNode('n', { taints: [{ key: 'team', value: 'ml', effect: 'NoSchedule' }] })];
    const pools = [gpuPool('p', toleration && { tolerations: [toleration] })];
    const { inventory } = inventoryOf({ nodes, pools });
    const ones = inventory.offers().filter(({ gpuCount }) => gpuCount === 1);
    expect(ones.reduce((sum, { available }) => sum + available, 0)).toBe(want);
  },
);
