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

const QUANTITY = /^([+-]?(?:\d+\.?\d*|\.\d+))(?:[eE]([+-]?\d+)|([A-Za-z]*))$/;

/**
 * A Kubernetes quantity in base units (cores, bytes, pieces), as apimachinery's resource.Quantity reads it. Exact to
 * 53 bits. Text that is no quantity counts as 0: the API server lets none through.
 */
export function parseQuantity(text: string | undefined): number {
  const match = QUANTITY.exec(text ?? '');
  if (!match) return 0;
  const [, digits, exponent, suffix = ''] = match;
  if (exponent !== undefined) return Number(digits) * 10 ** Number(exponent);
  const factor = SUFFIXES[suffix];
  return factor === undefined ? 0 : Number(digits) * factor;
}
