import { RESOURCE_CLAIMS, type ResourceClaim, RESOURCE_SLICES, type ResourceSlice } from '../../../src/kube/devices.ts';
import { type KubeObject, type Pod, PODS } from '../../../src/kube/types.ts';
import type { ApiServer } from '../api/server.ts';
import type { Chance } from '../clock/chance.ts';
import type { VirtualTime } from '../clock/virtual-time.ts';
import { devicesOf } from './devices.ts';
import { disrupted } from './keepers.ts';

interface Deps {
  api: ApiServer;
  time: VirtualTime;
  chance: Chance;
}

/** Keeps a claim while it has devices. */
export const CLAIM_FINALIZER = 'resource.kubernetes.io/delete-protection';

/** Whether no container of a pod runs and none ever will (kubernetes pkg/controller/resourceclaim, isPodDone). */
function isDone({ metadata, spec, status }: Pod): boolean {
  if (status?.phase === 'Succeeded' || status?.phase === 'Failed') return true;
  return metadata.deletionTimestamp !== undefined && spec?.nodeName === undefined;
}

/** The controllers of claims and of tainted devices, and what goes with a Node: in kube-controller-manager. */
export class ClaimKeeper {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  start(): void {
    const { api, time, chance } = this.#deps;
    if (!api.servesDevices) return;
    api.follow(({ kind, before, after }) => {
      if (kind.type.kind === 'Pod') this.#seePod(before, after);
      if (kind.type.kind === 'Node' && after === undefined)
        time.afterPlain(chance.between(20, 800), () => this.#collect(before?.metadata.uid));
      if (kind.type.kind === RESOURCE_SLICES.kind && after !== undefined) this.#seeSlice(after as ResourceSlice);
    });
  }

  #seePod(before: Pod | undefined, after: Pod | undefined): void {
    const pod = after ?? before;
    if (pod === undefined || (after !== undefined && !isDone(after))) return;
    const { time, chance } = this.#deps;
    time.afterPlain(chance.between(10, 300), () => {
      for (const claim of this.#claimsOf(pod)) this.#free(claim);
    });
  }

  /** The claims that were made for a pod that is over. */
  #claimsOf({ metadata: { namespace, uid } }: Pod): ResourceClaim[] {
    const claims = this.#deps.api.list(RESOURCE_CLAIMS, namespace);
    return claims.filter(({ metadata }) => metadata.ownerReferences?.some((owner) => owner.uid === uid));
  }

  #free({ metadata }: ResourceClaim): void {
    const { api, time, chance } = this.#deps;
    api.change(RESOURCE_CLAIMS, metadata, (one) => ({
      ...one,
      metadata: {
        ...one.metadata,
        finalizers: one.metadata.finalizers?.filter((name) => name !== CLAIM_FINALIZER) ?? [],
      },
      status: {},
    }));
    time.afterPlain(chance.between(5, 50), () => {
      if (api.find(RESOURCE_CLAIMS, metadata)?.metadata.uid === metadata.uid) api.delete(RESOURCE_CLAIMS, metadata);
    });
  }

  /** The slices of a Node that is gone. Its driver may have given them to the one that took its name. */
  #collect(uid: string | undefined): void {
    const { api } = this.#deps;
    const isOf = ({ metadata }: KubeObject): boolean =>
      metadata.ownerReferences?.some((one) => one.uid === uid) ?? false;
    for (const { metadata } of api.list(RESOURCE_SLICES).filter(isOf)) api.delete(RESOURCE_SLICES, metadata);
  }

  /** Pods whose devices may not be used any more go. */
  #seeSlice({ spec }: ResourceSlice): void {
    const { api, time, chance } = this.#deps;
    const bad = spec.devices?.filter(({ taints = [] }) => taints.some(({ effect }) => effect === 'NoExecute')) ?? [];
    if (bad.length === 0) return;
    time.afterPlain(chance.between(10, 500), () => {
      const claims = api
        .list(RESOURCE_CLAIMS)
        .filter((claim) =>
          devicesOf(claim).some(
            ({ node, device }) => node === spec.nodeName && bad.some(({ name }) => name === device),
          ),
        );
      for (const { metadata, status } of claims)
        for (const { name, uid } of status?.reservedFor ?? [])
          this.#evict({ namespace: metadata.namespace, name }, uid);
    });
  }

  #evict(ref: { namespace: string | undefined; name: string }, uid: string): void {
    const { api, time } = this.#deps;
    const pod = api.find(PODS, ref);
    if (pod?.metadata.uid !== uid || pod.metadata.deletionTimestamp !== undefined || isDone(pod)) return;
    const why = 'Device Taint manager: deleting due to NoExecute taint';
    api.change(PODS, ref, disrupted('DeletionByDeviceTaintManager', why, time.seconds));
    api.delete(PODS, ref);
  }
}
