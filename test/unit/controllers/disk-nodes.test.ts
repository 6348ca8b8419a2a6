import { expect, test } from 'vitest';
import { refusalMessage } from '../../../src/controllers/gpu-instance/decide/place.ts';
import { placeRequest } from '../../support/inventory-world.ts';
import { nodesOfVolume } from '../../../src/controllers/gpu-instance/decide/volume-nodes.ts';
import type { PersistentVolume } from '../../../src/kube/types.ts';
import { gpuNode } from '../../support/inventory-world.ts';

const NODES = ['a', 'b', 'c'].map((name) =>
  gpuNode(name, { labels: { 'kubernetes.io/hostname': name, zone: `z-${name}` } }),
);

function volume(...terms: { key: string; operator: string; values?: string[] }[][]): PersistentVolume {
  const nodeSelectorTerms = terms.map((matchExpressions) => ({ matchExpressions }));
  return { metadata: { name: 'v' }, spec: { nodeAffinity: { required: { nodeSelectorTerms } } } };
}

test('a volume without affinity can be used on every node', () => {
  expect(nodesOfVolume({ metadata: { name: 'v' }, spec: {} }, NODES)).toBeUndefined();
});

test('a local volume can be used on its node alone', () => {
  const local = volume([{ key: 'kubernetes.io/hostname', operator: 'In', values: ['b'] }]);
  expect(nodesOfVolume(local, NODES)).toEqual(new Set(['b']));
});

test('one term must match, with all its expressions', () => {
  const tied = volume(
    [
      { key: 'zone', operator: 'In', values: ['z-a', 'z-b'] },
      { key: 'kubernetes.io/hostname', operator: 'NotIn', values: ['a'] },
    ],
    [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['c'] }],
  );
  expect(nodesOfVolume(tied, NODES)).toEqual(new Set(['b', 'c']));
});

test('an instance whose disk no node can mount any more says so', () => {
  expect(refusalMessage(placeRequest({ only: new Set() }), 'full')).toContain('No node is left');
  expect(refusalMessage(placeRequest({ only: new Set(['n']) }), 'full')).toBe('full');
  expect(refusalMessage(placeRequest(), 'full')).toBe('full');
});
