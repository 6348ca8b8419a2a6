import type { Node, PersistentVolume } from '../../../kube/types.ts';

type Affinity = NonNullable<NonNullable<PersistentVolume['spec']>['nodeAffinity']>;
type Term = NonNullable<Affinity['required']>['nodeSelectorTerms'][number];

function meets(labels: Readonly<Record<string, string>>, { matchExpressions = [] }: Term): boolean {
  return matchExpressions.every(({ key, operator, values = [] }) => {
    const value = labels[key];
    if (operator === 'In') return value !== undefined && values.includes(value);
    if (operator === 'NotIn') return value === undefined || !values.includes(value);
    if (operator === 'Exists') return value !== undefined;
    if (operator === 'DoesNotExist') return value === undefined;
    // No provisioner writes Gt or Lt. The scheduler decides about them.
    return true;
  });
}

/** Names of the nodes that a volume can be used on; undefined for all. */
export function nodesOfVolume(volume: PersistentVolume, nodes: Iterable<Node>): Set<string> | undefined {
  const terms = volume.spec?.nodeAffinity?.required?.nodeSelectorTerms;
  if (terms === undefined) return undefined;
  const fitting = [...nodes].filter(({ metadata }) => terms.some((term) => meets(metadata.labels ?? {}, term)));
  return new Set(fitting.map(({ metadata }) => metadata.name));
}
