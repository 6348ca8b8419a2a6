import { addAmounts, type Amounts } from '../../inventory/amounts.ts';
import { gpuShareOf } from '../../inventory/grant.ts';
import type { Inventory } from '../../inventory/inventory.ts';
import { type DiskUse, diskUse } from '../../inventory/tenant-disks.ts';
import type { GpuShare } from '../../inventory/tenant-holdings.ts';
import { keyOf, refOf } from '../../kube/types.ts';
import { diskNameOf } from '../../resources/pod/disk.ts';
import type { ControllerStores } from '../stores.ts';
import type { WaitingLine } from './waiting-line.ts';

interface Deps {
  inventory: Pick<Inventory, 'heldBy' | 'assumedIn'>;
  line: Pick<WaitingLine, 'placesIn'>;
  stores: Pick<ControllerStores, 'instances' | 'disks'>;
}

/** What others leave for instances of a tenant whose statuses do not say so yet. */
function unshownIn({ line, stores }: Deps, tenant: string, except?: string): ReturnType<WaitingLine['placesIn']> {
  return line.placesIn(tenant, except).filter((place) => !stores.instances.get(place.key)?.status?.reserved);
}

/**
 * The GPUs that a tenant holds, with those that others leave for it. Who looks and who wakes count the same, or one would
 * wake the other for ever.
 *
 * @param except key of the instance that does not count
 */
export function gpusOf(deps: Deps, tenant: string, except?: string): GpuShare[] {
  const coming = unshownIn(deps, tenant, except).map(({ offerClass }) => gpuShareOf(offerClass));
  return [...deps.inventory.heldBy(tenant, except), ...coming];
}

/** What a tenant takes of its quotas in all places that others leave for it: no quota counts these yet. */
export function amountsOf({ line }: Pick<Deps, 'line'>, tenant: string, except?: string): Amounts {
  return line.placesIn(tenant, except).reduce<Amounts>((sum, { takes }) => addAmounts(sum, takes), {});
}

/** The disks of a tenant, with those of all starts that others leave a place for. */
export function disksOf(deps: Deps, tenant: string, except?: string): DiskUse {
  const { stores, inventory } = deps;
  const use = diskUse(stores, inventory, tenant, except);
  const isNew = ({ key }: { key: string }): boolean =>
    stores.disks.get(keyOf({ namespace: tenant, name: diskNameOf({ metadata: refOf(key) }) })) === undefined;
  const coming = unshownIn(deps, tenant, except).filter(isNew);
  return { ...use, gb: coming.reduce((sum, { request }) => sum + request.diskGb, use.gb) };
}
