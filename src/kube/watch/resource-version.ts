const DECIMAL = /^(0|[1-9][0-9]*)$/;

/**
 * Orders two resource versions of one resource type: negative, zero or positive, or undefined when they are not
 * comparable. Comparable by contract since Kubernetes 1.35 (KEP-5504): decimal strings of any length, so by length
 * first; never as numbers, which lose digits.
 */
export function compareVersions(left: string, right: string): number | undefined {
  if (left === right) return 0;
  if (!DECIMAL.test(left) || !DECIMAL.test(right)) return undefined;
  if (left.length !== right.length) return left.length - right.length;
  return left < right ? -1 : 1;
}

/** True when `have` is known to be the same as or newer than `want`. */
export function hasReached(have: string, want: string): boolean {
  const order = compareVersions(have, want);
  return order !== undefined && order >= 0;
}
