import type { Node } from '../../kube/types.ts';
import { sizesOf } from '../offers.ts';
import { gpuCounts } from './gpu-counts.ts';
import { isolationOn } from './isolation.ts';
import { type Architectures, type Closure, closuresOf, tolerationsOf } from './node-state.ts';
import type { NodeView } from './node-view.ts';

/** Why nothing new is rented out on a node, whether it is full or not. */
export type Obstacle =
  | Closure
  | {
      reason:
        | 'NoGPUs'
        | 'NoHealthyGPUs'
        | 'NoPool'
        | 'NoSize'
        | 'RuntimeClass'
        | 'UserNamespaces'
        | 'Quarantined'
        | 'Switched';
    };

/** What the node itself lacks: no device plugin has told of GPUs, or all of them are out of service. */
function lackOf(view: NodeView): Obstacle[] {
  if (view.facts.resources.length > 0) return [];
  return [{ reason: gpuCounts(view, []).length === 0 ? 'NoGPUs' : 'NoHealthyGPUs' }];
}

/** Everything that keeps a node out of the offers: none exactly where something can be placed on it while it is empty. */
export function obstaclesOf(node: Node, view: NodeView, architectures?: Architectures): Obstacle[] {
  const { facts, quarantined, switched } = view;
  const { pool, resources } = facts;
  const found = lackOf(view);
  if (pool === undefined) found.push({ reason: 'NoPool' });
  else if (resources.length > 0 && resources.every((resource) => sizesOf(pool, resource).length === 0))
    found.push({ reason: 'NoSize' });
  found.push(...closuresOf(node, tolerationsOf(pool?.spec), architectures));
  const isolation = isolationOn(facts);
  if (typeof isolation === 'string') found.push({ reason: isolation });
  if (quarantined) found.push({ reason: 'Quarantined' });
  if (switched) found.push({ reason: 'Switched' });
  return found;
}
