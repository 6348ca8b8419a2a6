import {
  PERSISTENT_VOLUME_CLAIMS,
  type PersistentVolume,
  PERSISTENT_VOLUMES,
  type PersistentVolumeClaim,
} from '../../../src/kube/types.ts';
import type { ApiServer } from '../api/server.ts';
import type { Witness } from './witness.ts';

/** The storage class whose volumes are on one node. */
export const LOCAL = 'local';
/** The one whose volumes every node can mount. */
export const SHARED = 'shared';

/** The volumes of the world, and what was written on them: the uids of the instances that used them. */
export class Volumes {
  readonly #api: ApiServer;
  readonly #witness: Witness;
  readonly #contents = new Map<string, Set<string>>();

  constructor(api: ApiServer, witness: Witness) {
    this.#api = api;
    this.#witness = witness;
    api.follow(({ kind, before, after }) => {
      if (kind.type.kind !== 'PersistentVolumeClaim' || after !== undefined || before === undefined) return;
      this.#reclaim(before);
    });
  }

  contents(volume: string): Set<string> {
    const known = this.#contents.get(volume) ?? new Set<string>();
    this.#contents.set(volume, known);
    return known;
  }

  /** Makes a volume for a claim of which the first pod is on a node. */
  bind(claim: PersistentVolumeClaim, node: string): void {
    const name = `pvc-${claim.metadata.uid}`;
    const isLocal = claim.spec?.storageClassName === LOCAL;
    const affinity = {
      required: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [node] }] }],
      },
    };
    const volume: PersistentVolume = {
      metadata: { name },
      spec: {
        accessModes: ['ReadWriteOnce'],
        ...(claim.spec?.storageClassName !== undefined && { storageClassName: claim.spec.storageClassName }),
        ...(isLocal && { nodeAffinity: affinity }),
      },
    };
    this.#api.create(PERSISTENT_VOLUMES, volume);
    this.#api.change(PERSISTENT_VOLUME_CLAIMS, claim.metadata, (one) => ({
      ...one,
      spec: { ...one.spec, volumeName: name },
      status: { phase: 'Bound' },
    }));
  }

  /** The node that a bound claim is tied to; undefined for none. */
  nodeOf(claim: PersistentVolumeClaim): string | undefined {
    const name = claim.spec?.volumeName;
    const volume = name === undefined ? undefined : this.#api.find(PERSISTENT_VOLUMES, { name });
    return volume?.spec?.nodeAffinity?.required?.nodeSelectorTerms[0]?.matchExpressions?.[0]?.values?.[0];
  }

  #reclaim(claim: PersistentVolumeClaim): void {
    const name = claim.spec?.volumeName;
    if (name === undefined) return;
    this.#witness.volumeGone(name, this.contents(name), claim.metadata.name);
    this.#contents.delete(name);
    if (this.#api.find(PERSISTENT_VOLUMES, { name }) !== undefined) this.#api.delete(PERSISTENT_VOLUMES, { name });
  }
}
