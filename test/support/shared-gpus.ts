import type { ResourceSlice } from '../../src/kube/devices.ts';
import type { Chance } from '../simulation/clock/chance.ts';

// GPUs that several claims share, and what Kubernetes' scheduler makes of them, written down anew from
// dynamic-resource-allocation/structured/internal/incubating/consumable_capacity.go.

type Device = NonNullable<ResourceSlice['spec']['devices']>[number];
type Policy = NonNullable<NonNullable<Device['capacity']>[string]['requestPolicy']>;

/** A capacity in whole units. */
interface Capacity {
  value: number;
  unit: string;
  byDefault?: number;
  values?: number[];
  range?: { min: number; max?: number; step?: number };
}

export type Shape = Readonly<Record<string, Capacity>>;
/** By capacity. */
export type Amounts = Readonly<Record<string, number>>;

function someCapacity(chance: Chance, unit: string, most: number): Capacity {
  const value = chance.int(2, most);
  // Fewer parts than a node runs pods.
  const byDefault = chance.int(Math.ceil(value / 16), value);
  const step = chance.int(1, 3);
  // A range has its default and its end on a step.
  const stepped = { min: byDefault, max: byDefault + step * Math.floor((value - byDefault) / step), step };
  return chance.one<Capacity>([
    { value, unit },
    { value, unit, byDefault },
    { value, unit, byDefault: Math.ceil(value / chance.int(2, 8)) },
    { value, unit, byDefault, values: [...new Set([byDefault, chance.int(1, value)])].toSorted((a, b) => a - b) },
    { value, unit, byDefault, range: { min: chance.int(1, byDefault) } },
    ...(byDefault + step <= value ? [{ value, unit, byDefault, range: stepped }] : []),
  ]);
}

export function someShape(chance: Chance): Shape {
  return {
    memory: someCapacity(chance, 'Gi', 80),
    ...(chance.is(0.6) && { cores: someCapacity(chance, '', 100) }),
  };
}

function policyOf({ unit, byDefault, values, range }: Capacity): Policy | undefined {
  if (byDefault === undefined) return undefined;
  const told = (amount: number): string => `${amount}${unit}`;
  const { min, max, step } = range ?? {};
  return {
    default: told(byDefault),
    ...(values && { validValues: values.map((one) => told(one)) }),
    ...(min !== undefined && {
      validRange: {
        min: told(min),
        ...(max !== undefined && { max: told(max) }),
        ...(step !== undefined && { step: told(step) }),
      },
    }),
  };
}

export function sharedDevice(name: string, shape: Shape, attributes: Device['attributes']): Device {
  const capacity = Object.entries(shape).map(([key, one]) => {
    const requestPolicy = policyOf(one);
    return [key, { value: `${one.value}${one.unit}`, ...(requestPolicy && { requestPolicy }) }] as const;
  });
  return {
    name,
    allowMultipleAllocations: true,
    capacity: Object.fromEntries(capacity),
    ...(attributes && { attributes }),
  };
}

/** What a request takes of a device; undefined where the policy of a capacity refuses it. */
export function consumedBy(shape: Shape, asked: Amounts = {}): Amounts | undefined {
  const found: Record<string, number> = {};
  for (const [name, { value, byDefault, values, range }] of Object.entries(shape)) {
    const wanted = asked[name];
    if (wanted === undefined) {
      found[name] = byDefault ?? value;
      continue;
    }
    let amount = wanted;
    if (values !== undefined) amount = values.find((one) => one >= wanted) ?? Number.NaN;
    if (range !== undefined) {
      const { min, max = value, step } = range;
      amount = Math.max(min, wanted);
      if (step !== undefined) amount = min + Math.ceil((amount - min) / step) * step;
      if (amount > max) return undefined;
    }
    if (Number.isNaN(amount)) return undefined;
    found[name] = amount;
  }
  return found;
}

export function fitsInto(shape: Shape, taken: readonly Amounts[], more: Amounts): boolean {
  return Object.entries(shape).every(([name, { value }]) => {
    const used = taken.reduce((sum, one) => sum + (one[name] ?? 0), 0);
    return used + (more[name] ?? 0) <= value;
  });
}

/** As the status of a claim has it. */
export function quantities(shape: Shape, amounts: Amounts): Record<string, string> {
  return Object.fromEntries(Object.entries(amounts).map(([name, one]) => [name, `${one}${shape[name]?.unit ?? ''}`]));
}
