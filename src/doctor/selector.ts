import type { LabelSelector } from '../kube/installation-types.ts';
import { INSTANCE_UID_LABEL } from '../resources/pod/owner.ts';

/** As the pods of instances have them. A selector that asks for any other label does not take such a pod. */
export const LABELS_OF_PODS = { 'berth.dev/instance': 'any', [INSTANCE_UID_LABEL]: 'any' };

type Labels = Readonly<Record<string, string>>;

/** Whether a selector takes an object with these labels. One that is empty or absent takes every object. */
export function selects({ matchLabels = {}, matchExpressions = [] }: LabelSelector = {}, labels: Labels = {}): boolean {
  return (
    Object.entries(matchLabels).every(([name, value]) => labels[name] === value) &&
    matchExpressions.every((expression) => holds(expression, labels))
  );
}

type Expression = NonNullable<LabelSelector['matchExpressions']>[number];

// As in Kubernetes, staging/src/k8s.io/apimachinery/pkg/labels/selector.go: NotIn takes an object without the label.
function holds({ key, operator, values = [] }: Expression, labels: Labels): boolean {
  const value = labels[key];
  const isIn = value !== undefined && values.includes(value);
  if (operator === 'In') return isIn;
  if (operator === 'NotIn') return !isIn;
  return operator === 'Exists' ? value !== undefined : value === undefined;
}
