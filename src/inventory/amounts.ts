import { isExtendedResource, parseQuantity } from '../kube/quantity.ts';

/** By resource: `cpu` in thousandths of a core, `memory` and `ephemeral-storage` in bytes, all others in pieces. */
export type Amounts = Readonly<Record<string, number>>;

// Other resources do not decide about places, extended ones aside: a pool says which of them are its GPUs.
const KEPT = new Set(['cpu', 'memory', 'ephemeral-storage', 'pods']);

/** A Kubernetes resource list as amounts. */
export function toAmounts(list: Readonly<Record<string, string>> | undefined): Amounts {
  const amounts: Record<string, number> = {};
  for (const [name, quantity] of Object.entries(list ?? {})) {
    if (!KEPT.has(name) && !isExtendedResource(name)) continue;
    const value = parseQuantity(quantity) ?? 0;
    // Rounded up, as Kubernetes does in MilliValue.
    amounts[name] = Math.ceil(name === 'cpu' ? value * 1000 : value);
  }
  return amounts;
}

function combine(left: Amounts, right: Amounts, merge: (a: number, b: number) => number): Amounts {
  const result: Record<string, number> = { ...left };
  for (const [name, amount] of Object.entries(right)) result[name] = merge(result[name] ?? 0, amount);
  return result;
}

export function addAmounts(left: Amounts, right: Amounts): Amounts {
  return combine(left, right, (a, b) => a + b);
}

/** What is left of the first when the second goes. */
export function subtractAmounts(left: Amounts, right: Amounts): Amounts {
  return combine(left, right, (a, b) => a - b);
}

export function maxAmounts(left: Amounts, right: Amounts): Amounts {
  return combine(left, right, Math.max);
}
