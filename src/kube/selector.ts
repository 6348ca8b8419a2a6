/** As matchLabels and matchExpressions are written everywhere in Kubernetes. */
export interface LabelSelector {
  matchLabels?: Readonly<Record<string, string>>;
  matchExpressions?: readonly { key: string; operator: string; values?: readonly string[] }[];
}

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
