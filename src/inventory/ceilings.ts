import { allowsImage, type Ceilings, fullImageName, isForGpus } from '../resources/tenants/ceilings.ts';
import type { TenantCeilings, TenantLimitSpec } from '../resources/tenants/tenant-limit.ts';
import { whoCanChange } from '../resources/tenants/who-can-change.ts';
import type { DiskUse } from './tenant-disks.ts';
import type { GpuShare } from './tenant-holdings.ts';

/** Why a ceiling refuses an instance. */
export interface CeilingRefusal {
  message: string;
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
    return { message };
  }
  return undefined;
}

/** More disks than these are not named: the message is for people. */
const MOST_DISKS = 5;

function keptInWords({ kept }: DiskUse, namespace: string): string {
  if (kept.length === 0) return 'Delete an instance with its disk.';
  const gb = kept.reduce((sum, disk) => sum + disk.gb, 0);
  const named = kept.slice(0, MOST_DISKS).map((disk) => `${disk.name} (${disk.gb} GB)`);
  const more = kept.length > MOST_DISKS ? `, and ${kept.length - MOST_DISKS} more` : '';
  const whose = kept.length === 1 ? 'a deleted instance' : `${kept.length} deleted instances`;
  return `${gb} GB of them are kept from ${whose}: ${named.join(', ')}${more}. Delete those that nobody needs: kubectl delete pvc NAME -n ${namespace}, or ask the operator to.`;
}

/** Why the tenant may not have one more disk beside those that it has; undefined when the ceiling has room for it. */
export function diskRefusal(
  { diskGb: most, policies = [] }: Pick<TenantCeilings, 'diskGb' | 'policies'>,
  use: DiskUse,
  { namespace, gb }: { namespace: string; gb: number },
): CeilingRefusal | undefined {
  if (most === undefined || use.gb + gb <= most) return undefined;
  const message = `The ceiling diskGb allows this tenant ${most} GB of disks. Its disks have ${use.gb} GB, and this instance needs ${gb} GB. ${keptInWords(use, namespace)} Or ask for a smaller disk. ${remedy('diskGb', policies)}`;
  return { message };
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
