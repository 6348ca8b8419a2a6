import { type CeilingRefusal, remedy } from '../../../../inventory/gpu-ceilings.ts';
import { allowsImage, fullImageName } from '../../../../resources/tenants/ceilings.ts';
import type { TenantLimitSpec } from '../../../../resources/tenants/tenant-limit.ts';

/** More patterns than these are not listed: the message is for people. */
const MOST_PATTERNS = 8;

/** Why the tenant may not run this image; undefined when it may. */
export function imageRefusal(limit: TenantLimitSpec, image: string): CeilingRefusal | undefined {
  if (allowsImage(limit.images, image)) return undefined;
  const more = limit.images.length > MOST_PATTERNS ? ', ...' : '';
  const allowed = limit.images.length === 0 ? 'no image' : limit.images.slice(0, MOST_PATTERNS).join(', ') + more;
  const message = `The ceiling images allows this tenant ${allowed}, and not ${fullImageName(image)}. Choose another image. ${remedy('images', limit.policies)}`;
  return { message };
}
