import { allowsImage, type Ceilings, fullImageName, isForGpus } from '../resources/tenants/ceilings.ts';
import type { TenantCeilings, TenantLimitSpec } from '../resources/tenants/tenant-limit.ts';
import { whoCanChange } from '../resources/tenants/who-can-change.ts';
import type { GpuShare } from './tenant-holdings.ts';

/** Why a ceiling refuses an instance. */
export interface CeilingRefusal {
  message: string;
  /** The GPUs that there is no room for; absent when a change of the ceiling alone can help. */
  wanted?: GpuShare;
}

type GpuCeiling = Ceilings['gpus'][number];

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
  { gpus, policies = [] }: Pick<TenantCeilings, 'gpus' | 'policies'>,
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

/** More patterns than these are not listed: the message is for people. */
const MOST_PATTERNS = 8;

/** Why the tenant may not run this image; undefined when it may. */
export function imageRefusal(
  { images, policies = [] }: Pick<TenantCeilings, 'images' | 'policies'>,
  image: string,
): CeilingRefusal | undefined {
  if (allowsImage(images, image)) return undefined;
  const more = images.length > MOST_PATTERNS ? ', ...' : '';
  const allowed = images.length === 0 ? 'no image' : images.slice(0, MOST_PATTERNS).join(', ') + more;
  const message = `The ceiling images allows this tenant ${allowed}, and not ${fullImageName(image)}. Choose another image. ${remedy('images', policies)}`;
  return { message };
}
