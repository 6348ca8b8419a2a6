import { countBefore } from '../../../src/caches/line-order.ts';
import type { KubeObject } from '../../../src/kube/types.ts';
import { keyOf } from '../../../src/kube/types.ts';
import type { Kind } from './kinds.ts';
import { Line } from './lines.ts';

/** One change of an object, as a watch tells of it. */
export interface Change {
  version: number;
  kind: Kind;
  before: KubeObject | undefined;
  /** Undefined when the object is gone. */
  after: KubeObject | undefined;
  /** What a watch sends, for as many watches as there are. */
  line: Line;
}

/** Changes of a kind that a watch may begin behind. Earlier ones are compacted. */
const KEPT = 2_000;

/** Where a key stands in ordered keys, or would stand. */
function placeIn(keys: readonly string[], key: string): number {
  return countBefore(keys.length, (index) => keys[index], key);
}

/** All objects of one kind, and what lately became of them. */
export class Collection {
  readonly kind: Kind;
  readonly objects = new Map<string, KubeObject>();
  readonly namespaces = new Map<string, Map<string, KubeObject>>();
  readonly listeners = new Set<(change: Change) => void>();
  /** Keys of all objects, in order. */
  readonly #keys: string[] = [];
  #changes: Change[] = [];
  /** A watch that begins before this version has missed something. */
  #oldest = 0;

  constructor(kind: Kind) {
    this.kind = kind;
  }

  get(ref: { namespace?: string | undefined; name: string }): KubeObject | undefined {
    return this.objects.get(keyOf(ref));
  }

  in(namespace: string | undefined): Iterable<KubeObject> {
    if (namespace === undefined) return this.objects.values();
    return this.namespaces.get(namespace)?.values() ?? [];
  }

  /** The objects after a key in the order of a list; after none, all. */
  inOrder(namespace: string | undefined, after = ''): KubeObject[] {
    if (namespace !== undefined) {
      const all = [...this.in(namespace)].filter(({ metadata }) => keyOf(metadata) > after);
      return all.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
    }
    const later = this.#keys.slice(placeIn(this.#keys, after));
    return later.flatMap((key) => (key === after ? [] : (this.objects.get(key) ?? [])));
  }

  countIn(namespace: string): number {
    return this.namespaces.get(namespace)?.size ?? 0;
  }

  /** Changes after a version, or undefined when they are not known any more. */
  since(version: number): Change[] | undefined {
    if (version < this.#oldest) return undefined;
    return this.#changes.filter((change) => change.version > version);
  }

  /** As etcd's compaction: no watch can begin before now. */
  compact(version: number): void {
    this.#changes = [];
    this.#oldest = version;
  }

  put(version: number, before: KubeObject | undefined, after: KubeObject): void {
    this.#set(after);
    this.#tell({ version, before, after, line: Line.of(before === undefined ? 'ADDED' : 'MODIFIED', after) });
  }

  /** It is told of as it was before the write that took it away. */
  remove(version: number, before: KubeObject): void {
    const { namespace = '' } = before.metadata;
    const key = keyOf(before.metadata);
    if (this.objects.delete(key)) this.#keys.splice(placeIn(this.#keys, key), 1);
    this.namespaces.get(namespace)?.delete(before.metadata.name);
    const told = { ...before, metadata: { ...before.metadata, resourceVersion: String(version) } };
    this.#tell({ version, before, after: undefined, line: Line.of('DELETED', told) });
  }

  #set(object: KubeObject): void {
    const { namespace = '', name } = object.metadata;
    const key = keyOf(object.metadata);
    if (!this.objects.has(key)) this.#keys.splice(placeIn(this.#keys, key), 0, key);
    this.objects.set(key, object);
    const inside = this.namespaces.get(namespace);
    if (inside === undefined) this.namespaces.set(namespace, new Map([[name, object]]));
    else inside.set(name, object);
  }

  #tell(change: Omit<Change, 'kind'>): void {
    const whole = { ...change, kind: this.kind };
    this.#changes.push(whole);
    if (this.#changes.length > 2 * KEPT) {
      const gone = this.#changes.splice(0, KEPT);
      this.#oldest = gone.at(-1)?.version ?? this.#oldest;
    }
    for (const listener of this.listeners) listener(whole);
  }
}
