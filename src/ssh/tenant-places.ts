import type { CeilingsOf } from '../access/ceilings.ts';
import { Shares } from '../lib/shares.ts';
import { whoCanChange } from '../resources/tenants/who-can-change.ts';

/** Connections and channels that this replica serves at once, of all tenants together. */
export interface ReplicaPlaces {
  connections: number;
  channels: number;
}

export type Place = keyof ReplicaPlaces;

const NOUNS = { connections: 'SSH connections', channels: 'open SSH channels' } as const;

/** The places that tenants hold in this replica: each as many as its ceilings say, and all as many as the replica has. */
export class TenantPlaces {
  readonly #ceilingsOf: CeilingsOf;
  readonly #most: ReplicaPlaces;
  readonly #held: Record<Place, Shares>;

  constructor(ceilingsOf: CeilingsOf, most: ReplicaPlaces) {
    this.#ceilingsOf = ceilingsOf;
    this.#most = most;
    this.#held = { connections: new Shares(most.connections), channels: new Shares(most.channels) };
  }

  /** Takes one place for a tenant, which `give` gives back. The answer is undefined, or why there is none. */
  take(place: Place, tenant: string): string | undefined {
    const { ssh, policies } = this.#ceilingsOf(tenant);
    const most = ssh[place];
    const outcome = this.#held[place].take(tenant, 1, most);
    if (outcome === 'taken') return undefined;
    if (outcome === 'all-full') {
      return `this replica of the SSH gateway has ${this.#most[place]} ${NOUNS[place]}, as many as it serves. Try again: another replica may have room.`;
    }
    return `namespace ${tenant} has ${this.#held[place].heldBy(tenant)} ${NOUNS[place]}, and its limit is ${most}. End one of them. ${whoCanChange(`ssh.${place}`, policies)}`;
  }

  give(place: Place, tenant: string): void {
    this.#held[place].give(tenant, 1);
  }
}
