/** Compares texts by their UTF-16 code units, for sort: the order is the same in every locale. */
export function compareText(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}
