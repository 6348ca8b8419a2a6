import type { KubeObject } from '../../kube/types.ts';

/** Since when objects have been in a set, as this process saw it. It remembers only what is in the set. */
export class FirstSeen {
  #since = new Map<string, number>();

  /** The time of each object in milliseconds since the epoch, by uid: `now` for those that were not there last time. */
  note(objects: readonly KubeObject[], now: number): ReadonlyMap<string, number> {
    const entries = objects.map(({ metadata: { uid = '' } }) => [uid, this.#since.get(uid) ?? now] as const);
    this.#since = new Map(entries);
    return this.#since;
  }
}
