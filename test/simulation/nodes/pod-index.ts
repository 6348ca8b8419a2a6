import type { Pod } from '../../../src/kube/types.ts';
import type { ApiServer } from '../api/server.ts';

/** Pods by node and by owner, as they are now. */
export class PodIndex {
  readonly #byNode = new Map<string, Map<string, Pod>>();
  readonly #byOwner = new Map<string, Map<string, Pod>>();

  constructor(api: ApiServer) {
    api.follow(({ kind, before, after }) => {
      if (kind.type.kind !== 'Pod') return;
      if (before !== undefined) this.#remove(before);
      if (after !== undefined) this.#add(after);
    });
  }

  on(node: string): Pod[] {
    return [...(this.#byNode.get(node)?.values() ?? [])];
  }

  ownedBy(uid: string): Pod[] {
    return [...(this.#byOwner.get(uid)?.values() ?? [])];
  }

  #add(pod: Pod): void {
    const { uid = '' } = pod.metadata;
    const { nodeName } = pod.spec ?? {};
    if (nodeName !== undefined) bucket(this.#byNode, nodeName).set(uid, pod);
    for (const owner of pod.metadata.ownerReferences ?? []) bucket(this.#byOwner, owner.uid).set(uid, pod);
  }

  #remove(pod: Pod): void {
    const { uid = '' } = pod.metadata;
    const { nodeName } = pod.spec ?? {};
    if (nodeName !== undefined) this.#byNode.get(nodeName)?.delete(uid);
    for (const owner of pod.metadata.ownerReferences ?? []) {
      const owned = this.#byOwner.get(owner.uid);
      owned?.delete(uid);
      if (owned?.size === 0) this.#byOwner.delete(owner.uid);
    }
  }
}

function bucket(map: Map<string, Map<string, Pod>>, key: string): Map<string, Pod> {
  const known = map.get(key) ?? new Map<string, Pod>();
  map.set(key, known);
  return known;
}
