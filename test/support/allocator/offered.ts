import type { Pod } from '../../../src/kube/types.ts';
import { DEVICE_CLASS_RESOURCE } from '../../../src/kube/quantity.ts';
import { bareNode, resourceClaim } from '../device-world.ts';
import { gpuPod, gpuPool, inventoryOf } from '../inventory-world.ts';
import { PRICES } from '../mig-fleet.ts';
import type { Allocation, Answer } from './allocator.ts';
import { type AllocatorWorld, NODE } from './worlds.ts';

/** Whether the claim of an allocation is of a pod. */
type IsOfPod = (allocation: Allocation) => boolean;

/** Nothing but devices is scarce on it. */
const ROOMY = { ...bareNode(NODE), status: { ...bareNode(NODE).status, allocatable: { pods: '500' } } };

/** A pod of others that runs on the node, and asked for a device by the extended resource of a class. */
function podOf(name: string, deviceClassName: string): Pod {
  const pod = gpuPod(name, NODE, { resource: DEVICE_CLASS_RESOURCE + deviceClassName });
  const extendedResourceClaimStatus = { resourceClaimName: name, requestMappings: [] };
  return {
    ...pod,
    metadata: { ...pod.metadata, uid: `uid-${name}` },
    status: { ...pod.status, extendedResourceClaimStatus },
  };
}

/** The claims that were taken, with their devices; every other one may be of a pod. */
function claimsOf({ taken: asks }: AllocatorWorld, { taken }: Answer, isOfPod: IsOfPod) {
  return taken.flatMap((allocation, index) => {
    const { class: deviceClassName = '', capacity } = asks[index] ?? {};
    if (allocation === null) return [];
    const name = `taken-${index}`;
    const mayBe = capacity === undefined && index % 2 === 0;
    const pod = mayBe && isOfPod(allocation) ? podOf(name, deviceClassName) : undefined;
    const devices = (allocation.devices?.results ?? []).map(({ device }) => device);
    const claim = resourceClaim(name, NODE, devices, { deviceClassName, ...(pod && { pod }) });
    return [{ pod, claim: { ...claim, status: { ...claim.status, allocation } } }];
  });
}

/** By class, how many Berth offers. */
export function offered(
  world: AllocatorWorld,
  answer: Answer,
  isOfPod: IsOfPod = () => true,
): Readonly<Record<string, number>> {
  const names = world.classes.map(({ metadata }) => metadata.name);
  const [deviceClassName = '', ...partitionClassNames] = names;
  const claims = claimsOf(world, answer, isOfPod);
  const { inventory } = inventoryOf({
    nodes: [ROOMY],
    pools: [gpuPool('p', { prices: PRICES, devices: { deviceClassName, partitionClassNames } })],
    resourceSlices: world.slices,
    deviceClasses: world.classes,
    resourceClaims: claims.map(({ claim }) => claim),
    pods: claims.flatMap(({ pod }) => pod ?? []),
  });
  const offers = inventory.offers().filter(({ gpuCount }) => gpuCount === 1);
  const availableOf = (name: string): number =>
    offers
      .filter(({ resourceName }) => resourceName === DEVICE_CLASS_RESOURCE + name)
      .reduce((sum, { available }) => sum + available, 0);
  return Object.fromEntries(names.map((name) => [name, availableOf(name)]));
}
