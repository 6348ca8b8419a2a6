import type { CeilingsOf } from '../access/ceilings.ts';
import { FairShares } from '../lib/shares.ts';
import { whoCanChange } from '../resources/tenants/who-can-change.ts';

/** Connections and channels that this replica serves at once, of all tenants together. */
export interface ReplicaPlaces {
  connections: number;
  channels: number;
}

export type Place = keyof ReplicaPlaces;

/** A tenant may hold as many as are left for others: half of all when it is alone. */
const FACTOR = 1;
const NOUNS = { connections: 'SSH connections', channels: 'open SSH channels' } as const;

/** The places that tenants hold in this replica: each as many as its ceilings say, while there is room for a newcomer. */
export class TenantPlaces {
  readonly #ceilingsOf: CeilingsOf;
  readonly #most: ReplicaPlaces;
  readonly #held: Record<Place, FairShares>;

  constructor(ceilingsOf: CeilingsOf, most: ReplicaPlaces) {
    this.#ceilingsOf = ceilingsOf;
    this.#most = most;
    this.#held = {
      connections: new FairShares(most.connections, FACTOR),
      channels: new FairShares(most.channels, FACTOR),
    };
  }

  /** Takes one place for a tenant, which `give` gives back. The answer is undefined, or why there is none. */
  take(place: Place, tenant: string): string | undefined {
    const { ssh, policies } = this.#ceilingsOf(tenant);
    const most = ssh[place];
    const outcome = this.#held[place].take(tenant, 1, most);
    if (outcome === 'taken') return undefined;
    if (outcome === 'all-full') {
      return `this replica of the SSH gateway serves ${this.#most[place]} ${NOUNS[place]} at most, and keeps room for other tenants. Try again: another replica may have room.`;
    }
    return `namespace ${tenant} has ${this.#held[place].heldBy(tenant)} ${NOUNS[place]}, and its limit is ${most}. End one of them. ${whoCanChange(`ssh.${place}`, policies)}`;
  }

  give(place: Place, tenant: string): void {
    this.#held[place].give(tenant, 1);
  }
}
