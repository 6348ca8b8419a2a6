import type { NetworkPolicy } from '../../kube/network-policy.ts';
import {
  type Closed,
  closes,
  DIRECTIONS,
  METADATA_SERVICES,
  type Opening,
  openingsOf,
  PRIVATE_NETWORKS,
} from './policies.ts';

const MOST = 5;

function listed(reached: readonly Closed[]): string {
  const groups = new Map<string, Set<string>>();
  for (const { what, address } of reached) groups.set(what, (groups.get(what) ?? new Set()).add(address));
  const words = [...groups].map(([what, addresses]) => {
    const all = [...addresses];
    const rest = all.length > MOST ? ` and ${all.length - MOST} more` : '';
    return `${what} (${all.slice(0, MOST).join(', ')}${rest})`;
  });
  const rest = words.length > MOST ? ` and ${words.length - MOST} more` : '';
  return words.slice(0, MOST).join(', ') + rest;
}

/** What a policy does, after its name: "lets instances connect to every address". */
export function openingWords({ direction, to, ports }: Opening): string {
  const on = ports === undefined ? '' : ` on ports ${ports}`;
  const isOut = direction === 'Egress';
  if (to === 'any')
    return isOut ? `lets instances connect to every address${on}` : `lets everybody connect to instances${on}`;
  if (to === 'tenants') {
    return isOut
      ? `lets instances connect to pods of other tenants${on}`
      : `lets pods of other tenants connect to instances${on}`;
  }
  return isOut ? `lets instances connect to ${listed(to)}${on}` : `lets ${listed(to)} connect to instances${on}`;
}

/**
 * Why instances of a namespace are not closed to other tenants and to the metadata service, by its policies; undefined
 * when they are. Which private networks they reach is the operator's affair.
 */
export function whyOpen(namespace: string, policies: readonly NetworkPolicy[]): string | undefined {
  const missing = DIRECTIONS.filter((direction) => !policies.some((policy) => closes(policy, direction)));
  if (missing.length > 0) {
    return `No NetworkPolicy of the type ${missing.join(' and ')} closes the pods of instances in namespace ${namespace}. The operator requires one, and can make it. The instance starts then.`;
  }
  for (const policy of policies) {
    const openings = openingsOf(policy, { Ingress: PRIVATE_NETWORKS, Egress: METADATA_SERVICES });
    const opening = openings.find(({ direction, isNarrow }) => direction === 'Egress' || !isNarrow);
    if (opening === undefined) continue;
    return `NetworkPolicy ${policy.metadata.name} of namespace ${namespace} ${openingWords(opening)}. The operator requires that none does, and can change it. The instance starts then.`;
  }
  return undefined;
}
