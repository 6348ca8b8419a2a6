/**
 * A function that computes once what it says of an object that nobody can change, as caches have them, and forgets it with
 * the object. What it says of others it computes each time.
 */
export function ofFrozen<K extends object, V>(compute: (of: K) => V): (of: K) => V {
  const known = new WeakMap<K, { value: V }>();
  return (of) => {
    const before = known.get(of);
    if (before !== undefined) return before.value;
    const value = compute(of);
    if (Object.isFrozen(of)) known.set(of, { value });
    return value;
  };
}
