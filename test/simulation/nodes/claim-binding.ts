import { EXTENDED_RESOURCE_CLAIM, RESOURCE_CLAIMS, type ResourceClaim } from '../../../src/kube/devices.ts';
import { type Pod, PODS } from '../../../src/kube/types.ts';
import { Failure } from '../api/failure.ts';
import type { ApiServer } from '../api/server.ts';
import type { Chance } from '../clock/chance.ts';
import type { VirtualTime } from '../clock/virtual-time.ts';
import { CLAIM_FINALIZER } from './claim-keeper.ts';
import type { Devices } from './devices.ts';
import { DEVICE_CLASS, DRIVER } from './driver.ts';

interface Deps {
  api: ApiServer;
  time: VirtualTime;
  chance: Chance;
  devices: Devices;
}

interface Place {
  pod: Pod;
  node: string;
  devices: readonly string[];
  resourceName: string;
}

type Requests = NonNullable<NonNullable<ResourceClaim['spec']['devices']>['requests']>;
type Mappings = NonNullable<NonNullable<Pod['status']>['extendedResourceClaimStatus']>['requestMappings'];

/** What a pod asks for of a resource, container by container (kubernetes dynamicresources, createRequestsAndMappings). */
function requestsOf({ spec }: Pod, resourceName: string): { requests: Requests; requestMappings: Mappings } {
  const requests: Requests = [];
  const requestMappings: Mappings = [];
  for (const [index, container] of [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].entries()) {
    const all = { ...container.resources?.limits, ...container.resources?.requests };
    const count = Number(all[resourceName] ?? 0);
    if (count === 0) continue;
    const name = `container-${index}-request-${Object.keys(all).toSorted().indexOf(resourceName)}`;
    requests.push({ name, exactly: { deviceClassName: DEVICE_CLASS, allocationMode: 'ExactCount', count } });
    requestMappings.push({ containerName: container.name, resourceName, requestName: name });
  }
  return { requests, requestMappings };
}

/** What kube-scheduler writes before it binds a pod to devices: its special claim, what that has, and its name. */
export class ClaimBinding {
  readonly #deps: Deps;
  readonly #open = new Set<string>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Whether it is at work on a pod. */
  has(uid: string): boolean {
    return this.#open.has(uid);
  }

  /** Takes devices for a pod, write by write. `over`: whether the pod may be bound now. */
  begin(place: Place, over: (isDone: boolean) => void): void {
    const { api, devices } = this.#deps;
    const { pod } = place;
    const { uid = '', namespace } = pod.metadata;
    const { requests, requestMappings } = requestsOf(pod, place.resourceName);
    const resourceClaimName = `${pod.metadata.name.slice(0, 37)}-extended-resources-${this.#suffix()}`;
    const ref = { namespace, name: resourceClaimName };
    const isThere = (): boolean => {
      const now = api.find(PODS, pod.metadata);
      return now?.metadata.uid === uid && now.metadata.deletionTimestamp === undefined;
    };
    const writes: readonly (() => void)[] = [
      () =>
        api.create(RESOURCE_CLAIMS, {
          ...claimFor(pod, resourceClaimName),
          spec: { devices: { requests } },
        } as ResourceClaim),
      () => this.#allocate(ref, place, requests),
      () =>
        api.change(PODS, pod.metadata, (one) => ({
          ...one,
          status: { ...one.status, extendedResourceClaimStatus: { resourceClaimName, requestMappings } },
        })),
    ];
    this.#open.add(uid);
    devices.plan(uid, place.node, place.devices);
    const end = (isDone: boolean): void => {
      this.#open.delete(uid);
      devices.forget(uid);
      if (!isDone) this.#drop(ref);
      over(isDone);
    };
    this.#write(writes, isThere, end);
  }

  #write([next, ...rest]: readonly (() => void)[], isThere: () => boolean, end: (isDone: boolean) => void): void {
    const { time, chance } = this.#deps;
    time.afterPlain(chance.between(2, 40), () => {
      if (!isThere()) return end(false);
      if (next === undefined) return end(true);
      try {
        next();
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        return end(false);
      }
      this.#write(rest, isThere, end);
    });
  }

  #allocate(
    ref: { namespace: string | undefined; name: string },
    { pod, node, devices }: Place,
    requests: Requests,
  ): void {
    const asked = requests.flatMap(({ name, exactly }) => Array.from({ length: exactly?.count ?? 0 }, () => name));
    const results = devices.map((device, index) => ({
      request: asked[index] ?? '',
      driver: DRIVER,
      pool: node,
      device,
    }));
    const { api } = this.#deps;
    const claim = api.get(RESOURCE_CLAIMS, ref);
    if (claim.metadata.deletionTimestamp !== undefined)
      throw new Failure(409, 'Conflict', 'the claim is being deleted');
    api.change(RESOURCE_CLAIMS, ref, (one) => ({
      ...one,
      metadata: { ...one.metadata, finalizers: [CLAIM_FINALIZER] },
      status: {
        allocation: { devices: { results } },
        reservedFor: [{ resource: 'pods', name: pod.metadata.name, uid: pod.metadata.uid ?? '' }],
      },
    }));
  }

  /** What was made for a pod that cannot be bound goes (kubernetes dynamicresources, Unreserve). */
  #drop(ref: { namespace: string | undefined; name: string }): void {
    const { api } = this.#deps;
    api.change(RESOURCE_CLAIMS, ref, (one) => ({ ...one, metadata: { ...one.metadata, finalizers: [] } }));
    if (api.find(RESOURCE_CLAIMS, ref) !== undefined) api.delete(RESOURCE_CLAIMS, ref);
  }

  #suffix(): string {
    return Math.floor(this.#deps.chance.next() * 36 ** 5)
      .toString(36)
      .padStart(5, '0');
  }
}

function claimFor({ metadata }: Pod, name: string): Pick<ResourceClaim, 'metadata'> {
  const owner = { apiVersion: 'v1', kind: 'Pod', name: metadata.name, uid: metadata.uid ?? '', controller: true };
  return {
    metadata: {
      name,
      namespace: metadata.namespace ?? '',
      annotations: { [EXTENDED_RESOURCE_CLAIM]: 'true' },
      ownerReferences: [owner],
    },
  };
}
