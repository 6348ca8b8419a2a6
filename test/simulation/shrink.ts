/**
 * The shortest part of a list, in its order, of which `fails` is still true (Zeller's delta debugging, with halves, then
 * quarters, then less). Looks at most `most` times.
 */
export async function shortest<T>(
  items: readonly T[],
  fails: (items: readonly T[]) => Promise<boolean>,
  most: number,
): Promise<readonly T[]> {
  let left = items;
  let parts = 2;
  let looks = 0;
  while (left.length > 1 && looks < most) {
    const size = Math.ceil(left.length / parts);
    let isShorter = false;
    for (let from = 0; from < left.length && looks < most; from += size) {
      const without = [...left.slice(0, from), ...left.slice(from + size)];
      looks += 1;
      if (!(await fails(without))) continue;
      left = without;
      parts = Math.max(2, parts - 1);
      isShorter = true;
      break;
    }
    if (isShorter) continue;
    if (size === 1) break;
    parts = Math.min(left.length, parts * 2);
  }
  return left;
}
