import { type Ceilings, isForGpus } from '../resources/tenants/ceilings.ts';
import type { TenantLimitSpec } from '../resources/tenants/tenant-limit.ts';
import { whoCanChange } from '../resources/tenants/who-can-change.ts';
import type { PlaceRequest } from './grant.ts';
import type { Inventory } from './inventory.ts';
import type { GpuShare } from './tenant-holdings.ts';

/** Why a ceiling refuses an instance. */
export interface CeilingRefusal {
  message: string;
  /** The GPUs that there is no room for; absent when a change of the ceiling alone can help. */
  wanted?: GpuShare;
}

type GpuCeiling = Ceilings['gpus'][number];
type GpuCeilings = Pick<TenantLimitSpec, 'gpus'> & Partial<Pick<TenantLimitSpec, 'policies'>>;

/** What helps against a ceiling that refuses an instance. Without a policy nothing is refused but for want of knowledge. */
export function remedy(field: string, policies: TenantLimitSpec['policies']): string {
  if (policies.length > 0) return whoCanChange(field, policies);
  return 'The ceilings of this namespace are not known yet. The controller looks again.';
}

function describe({ pool, product }: GpuCeiling): string {
  const of = product === '*' ? '' : ` of product ${product}`;
  return pool === '*' ? of : `${of} in pool ${pool}`;
}

/** Why the tenant may not hold these GPUs beside those that it holds already; undefined when every ceiling has room. */
export function gpuRefusal(
  { gpus, policies = [] }: GpuCeilings,
  held: Iterable<GpuShare>,
  wanted: GpuShare,
): CeilingRefusal | undefined {
  const shares = [...held];
  for (const ceiling of gpus) {
    if (!isForGpus(ceiling, wanted)) continue;
    const used = shares.filter((share) => isForGpus(ceiling, share)).reduce((sum, share) => sum + share.gpus, 0);
    if (used + wanted.gpus <= ceiling.max) continue;
    const message = `The ceiling gpus allows this tenant ${ceiling.max} GPUs${describe(ceiling)} at once. It holds ${used}, and this instance needs ${wanted.gpus}. Stop another instance. ${remedy('gpus', policies)}`;
    return { message, wanted };
  }
  return undefined;
}

/**
 * GPUs that fit a request and that the ceilings have no room for: the request is served without them. None when there is
 * no room for any that fit, which is said otherwise.
 */
export function roomlessShares(
  limit: GpuCeilings,
  inventory: Pick<Inventory, 'sharesFor' | 'heldBy'>,
  namespace: string,
  request: PlaceRequest,
): GpuShare[] {
  if (limit.gpus.length === 0) return [];
  const shares = inventory.sharesFor(request);
  const held = inventory.heldBy(namespace);
  const roomless = shares.filter((share) => gpuRefusal(limit, held, share) !== undefined);
  return roomless.length === shares.length ? [] : roomless;
}
