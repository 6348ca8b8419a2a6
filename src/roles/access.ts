import { AccessWatch } from '../access/access-watch.ts';
import { Authenticator } from '../access/authenticator.ts';
import { Tenants } from '../access/tenants.ts';
import type { RoleContext } from './role.ts';

/** Which namespaces are tenants. */
export function tenantsOf({ process: { config }, caches }: RoleContext): Tenants {
  return new Tenants(caches.get('namespaces'), { own: config.namespace, requireLabel: config.requireTenantLabel });
}

/** Who calls, and what ends when a caller loses the right to it. */
export function accessOf(context: RoleContext): {
  tenants: Tenants;
  authenticator: Authenticator;
  access: AccessWatch;
} {
  const { process, caches, shutdown } = context;
  const { clock } = process;
  const [apiKeys, tenants] = [caches.get('apiKeys'), tenantsOf(context)];
  const authenticator = new Authenticator({ apiKeys, tenants, clock });
  const access = new AccessWatch({ authenticator, apiKeys, tenants, clock });
  shutdown.defer('access', () => access.close());
  return { tenants, authenticator, access };
}
