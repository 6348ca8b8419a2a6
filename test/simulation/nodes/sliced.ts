import { Chance } from '../clock/chance.ts';

/** Which GPUs of a world are handed out by Dynamic Resource Allocation, and how. */
export interface Sliced {
  /** Indexes of their nodes. */
  nodes: ReadonlySet<number>;
  /** ResourceSlices that a driver writes of one node. */
  perNode: number;
  /** Whether pods ask for them by the name that a device plugin has, too. */
  isNamed: boolean;
}

interface Shape {
  seed: number;
  nodes: number;
  firstDay: number;
}

/** Of its own numbers: worlds without slices are as they were before there were slices. */
export function slicedIn({ seed, nodes, firstDay }: Shape): Sliced {
  const chance = new Chance(seed ^ 0xd7a0 ^ (firstDay << 16));
  const isSliced = chance.weighted<(node: number) => boolean>([
    [12, () => false],
    // Nodes have two products in turn.
    [2, (node) => node % 2 === 0],
    [2, (node) => node % 2 === 1],
    [2, (node) => node % 4 < 2],
    [1, () => true],
  ]);
  const indexes = Array.from({ length: nodes }, (_, index) => index);
  return { nodes: new Set(indexes.filter(isSliced)), perNode: chance.int(1, 2), isNamed: chance.is(0.7) };
}
