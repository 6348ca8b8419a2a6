/** Values by key, found again by the node they belong to. */
export class TwoKeyMap<T> {
  readonly #byKey = new Map<string, Map<string, T>>();
  readonly #byNode = new Map<string, Map<string, T>>();

  /** The value of a key that belongs to one node. */
  get(key: string): T | undefined {
    return this.#byKey.get(key)?.values().next().value;
  }

  /** Puts a key on one node, or takes it away when there is no value. */
  set(key: string, node: string | undefined, value: T | undefined): void {
    this.replace(key, node === undefined || value === undefined ? new Map() : new Map([[node, value]]));
  }

  /** Puts a key on several nodes at once and on no other. */
  replace(key: string, values: Map<string, T>): void {
    for (const node of this.#byKey.get(key)?.keys() ?? []) {
      const bucket = this.#byNode.get(node);
      bucket?.delete(key);
      if (bucket?.size === 0) this.#byNode.delete(node);
    }
    if (values.size === 0) this.#byKey.delete(key);
    else this.#byKey.set(key, values);
    for (const [node, value] of values) {
      const bucket = this.#byNode.get(node);
      if (bucket) bucket.set(key, value);
      else this.#byNode.set(node, new Map([[key, value]]));
    }
  }

  /** The values on a node. */
  of(node: string): Iterable<T> {
    return this.#byNode.get(node)?.values() ?? [];
  }

  /** Each key with its values, node by node. */
  *entries(): Generator<[string, T]> {
    for (const [key, values] of this.#byKey) for (const value of values.values()) yield [key, value];
  }

  nodesOf(key: string): Iterable<string> {
    return this.#byKey.get(key)?.keys() ?? [];
  }
}
