const DECIMAL = /^(0|[1-9][0-9]*)$/;

/**
 * Orders two resource versions of one resource type: negative, zero or positive, or undefined when they cannot be
 * compared. Since Kubernetes 1.35 (KEP-5504) they are decimal strings of any length, which compare by length first. As
 * numbers they would lose digits.
 */
export function compareVersions(left: string, right: string): number | undefined {
  if (left === right) return 0;
  if (!DECIMAL.test(left) || !DECIMAL.test(right)) return undefined;
  if (left.length !== right.length) return left.length - right.length;
  return left < right ? -1 : 1;
}

/** True when `have` is certainly not older than `want`. */
export function hasReached(have: string, want: string): boolean {
  const order = compareVersions(have, want);
  return order !== undefined && order >= 0;
}
