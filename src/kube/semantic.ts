/** Parents whose values are resource quantities, which the API server rewrites (`1000m` to `1`). */
const QUANTITY_MAPS: ReadonlySet<string> = new Set(['requests', 'limits', 'capacity', 'hard', 'used', 'allocatable']);

/** The fields by which the API server merges lists of objects, in the order in which they are looked for. */
const LIST_KEYS = ['name', 'uid', 'type', 'containerPort', 'port', 'key', 'mountPath', 'ip'] as const;

const SUFFIXES: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/** A Kubernetes quantity as a number; undefined for what is not one. Exact up to 2^53. */
export function parseQuantity(quantity: string): number | undefined {
  const match = /^([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$/.exec(quantity);
  if (!match) return undefined;
  return Number(match[1]) * (SUFFIXES[match[2] ?? ''] ?? Number.NaN);
}

type Json = Record<string, unknown>;

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function sameQuantity(left: unknown, right: unknown): boolean {
  const numbers = [left, right].map((value) => parseQuantity(String(value)));
  return numbers[0] !== undefined && numbers[0] === numbers[1];
}

function listContains(current: readonly unknown[], desired: readonly unknown[], parent: string): boolean {
  return desired.every((item, index) => {
    if (Array.isArray(item)) return contains(current[index], item, parent);
    if (!isObject(item)) return current.includes(item);
    const key = LIST_KEYS.find((name) => item[name] !== undefined);
    const match = key === undefined ? current[index] : current.find((one) => isObject(one) && one[key] === item[key]);
    return contains(match, item, parent);
  });
}

/**
 * True when every field of `desired` is in `current` with the same meaning: applying it would change nothing. Fields
 * that only `current` has belong to the server or to others. Undefined fields of `desired` say nothing; null, an empty
 * object and an empty list are the same as absent.
 */
export function contains(current: unknown, desired: unknown, parent = ''): boolean {
  if (desired === undefined || current === desired) return true;
  if (Array.isArray(desired)) return listContains(Array.isArray(current) ? current : [], desired, parent);
  if (isObject(desired)) {
    const have = isObject(current) ? current : {};
    return Object.keys(desired).every((key) =>
      QUANTITY_MAPS.has(parent) && sameQuantity(have[key], desired[key])
        ? true
        : contains(have[key], desired[key], key),
    );
  }
  return desired === null && current === undefined;
}

/** True when both say the same, whatever the order of fields: for what is wholly ours, such as a status. */
export function sameJson(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (Array.isArray(left) && Array.isArray(right)) {
    return left.length === right.length && left.every((item, index) => sameJson(item, right[index]));
  }
  if (!isObject(left) || !isObject(right)) return false;
  const keys = new Set([...Object.keys(left), ...Object.keys(right)]);
  return [...keys].every((key) => sameJson(left[key], right[key]));
}
