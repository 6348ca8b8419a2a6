import { parseQuantity } from '../../../src/kube/quantity.ts';
import type { Container, Pod } from '../../../src/kube/types.ts';

export type Amounts = Record<string, number>;

export const GPUS = 'nvidia.com/gpu';

function of(container: Container): Amounts {
  const { limits = {}, requests = {} } = container.resources ?? {};
  const all = { ...limits, ...requests };
  return Object.fromEntries(Object.entries(all).map(([name, text]) => [name, parseQuantity(text) ?? 0]));
}

/** What a pod asks of its node: its containers at once, or the largest of those that come before them. */
export function requestsOf({ spec }: Pod): Amounts {
  const sum: Amounts = { pods: 1 };
  for (const container of spec?.containers ?? []) {
    for (const [name, amount] of Object.entries(of(container))) sum[name] = (sum[name] ?? 0) + amount;
  }
  for (const container of spec?.initContainers ?? []) {
    for (const [name, amount] of Object.entries(of(container))) sum[name] = Math.max(sum[name] ?? 0, amount);
  }
  return sum;
}
