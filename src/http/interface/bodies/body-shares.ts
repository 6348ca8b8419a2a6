import type { Request } from 'express';
import type { CeilingsOf } from '../../../access/ceilings.ts';
import { getPrincipal } from '../../../access/principal.ts';
import { clientNetwork } from '../../../lib/client-network.ts';
import { FairShares } from '../../../lib/shares.ts';
import { whoCanChange } from '../../../resources/tenants/who-can-change.ts';
import { ApiError } from '../errors/api-error.ts';
import { overloaded, tooManyAtOnce } from '../errors/busy.ts';
import { LIMITS } from '../schema.ts';
import type { BodyRules } from './read-body.ts';

const MIB = 1024 * 1024;
/** Bytes of bodies of calls with a key, all tenants together. A tenant holds at most a fifth. */
const TENANTS_MOST = 24 * MIB;
/** Bytes of bodies of the dashboard, which anybody may send. */
const DASHBOARD_MOST = 4 * MIB;
/** Bytes of such bodies from one address: sixteen of the longest. */
const ADDRESS_MOST = 256 * 1024;
/** An owner may hold a quarter of what is free. */
const FACTOR = 1 / 4;

function rulesFor(
  shares: FairShares,
  limit: number,
  { name, most, full }: { name: string; most: number; full: () => ApiError },
): BodyRules {
  return {
    limit,
    take(bytes) {
      const taken = shares.take(name, bytes, most);
      if (taken === 'taken') return;
      throw taken === 'owner-full' ? full() : overloaded('request bodies');
    },
    give: (bytes) => shares.give(name, bytes),
  };
}

/** The rules for bodies of calls with a key: a share for each tenant. */
export function tenantBodies(ceilings: CeilingsOf): (request: Request) => BodyRules {
  const shares = new FairShares(TENANTS_MOST, FACTOR);
  return (request) => {
    const { namespace } = getPrincipal(request);
    const { http, policies } = ceilings(namespace);
    const mib = http.bodyMib;
    const full = (): ApiError => tooManyAtOnce(`${mib} MiB of request bodies`, whoCanChange('http.bodyMib', policies));
    return rulesFor(shares, LIMITS.body, { name: namespace, most: mib * MIB, full });
  };
}

/** The rules for bodies of the dashboard: a share for each client address. */
export function dashboardBodies(): (request: Request) => BodyRules {
  const shares = new FairShares(DASHBOARD_MOST, FACTOR);
  const full = (): ApiError =>
    new ApiError('too_many_at_once', 'Too many requests of this address are under way. Wait for one to end.', {
      retryAfterSeconds: 5,
    });
  return (request) =>
    rulesFor(shares, LIMITS.dashboardBody, { name: clientNetwork(request.ip), most: ADDRESS_MOST, full });
}
