import type { Socket } from 'node:net';
import { clientNetwork, ownerNetwork } from '../../lib/client-network.ts';
import type { AddressLimiter, Exchange } from './address-limits.ts';

/** A connection that has not logged in. */
interface Pending {
  remote: string;
  /** What the limits count as one address. */
  address: string;
  network: string;
  grace: NodeJS.Timeout;
  exchange?: Exchange;
  /** Without a login, its end is a failure then. */
  hasTried: boolean;
}

/**
 * The oldest connection from the network that holds most places, and in it from the address that holds most. sshd's
 * MaxStartups refuses newcomers instead, at random: there the client that connects most gets most of the places.
 */
function crowdedOut(pending: ReadonlyMap<Socket, Pending>): Socket | undefined {
  const places = new Map<string, number>();
  for (const { address, network } of pending.values()) {
    places.set(address, (places.get(address) ?? 0) + 1);
    places.set(network, (places.get(network) ?? 0) + 1);
  }
  let found: Socket | undefined;
  let most = { network: 0, address: 0 };
  for (const [socket, each] of pending) {
    const holds = { network: places.get(each.network) ?? 0, address: places.get(each.address) ?? 0 };
    if (holds.network < most.network || (holds.network === most.network && holds.address <= most.address)) continue;
    found = socket;
    most = holds;
  }
  return found;
}

/** Connections that have not logged in, at most `places` of them, each for at most `graceMs`. */
export class PendingLogins {
  readonly #limiter: AddressLimiter;
  readonly #limits: { places: number; graceMs: number };
  readonly #pending = new Map<Socket, Pending>();

  constructor(limiter: AddressLimiter, limits: { places: number; graceMs: number }) {
    this.#limiter = limiter;
    this.#limits = limits;
  }

  /**
   * Whether the newcomer may try to log in. When all places are taken, the one that {@link crowdedOut} names is ended.
   */
  admit(socket: Socket): boolean {
    const remote = socket.remoteAddress ?? '';
    if (!this.#limiter.admit(remote)) return false;
    const grace = setTimeout(() => socket.destroy(), this.#limits.graceMs);
    const [address, network] = [clientNetwork(remote), ownerNetwork(remote)];
    this.#pending.set(socket, { remote, address, network, grace, hasTried: false });
    const loser = this.#pending.size > this.#limits.places ? crowdedOut(this.#pending) : undefined;
    if (loser !== undefined) {
      this.ended(loser, 'closed');
      loser.destroy();
    }
    return true;
  }

  /** Whether the client may exchange keys now, or who had too many, as {@link AddressLimiter.exchange} says. */
  exchange(socket: Socket): 'admitted' | 'crowded' | 'hurried' {
    const login = this.#pending.get(socket);
    if (login === undefined) return 'crowded';
    const answer = this.#limiter.exchange(login.remote);
    if (typeof answer === 'string') return answer;
    login.exchange = answer;
    return 'admitted';
  }

  /** Whether the tenant of the client may log in once more now. */
  mayLogIn(socket: Socket, tenant: string): boolean {
    return this.#pending.get(socket)?.exchange?.isOf(tenant) === true;
  }

  /** The client offered a key or broke a rule. */
  tried(socket: Socket): void {
    const login = this.#pending.get(socket);
    if (login !== undefined) login.hasTried = true;
  }

  /** The client showed that it may log in: when it does not, that is no failure. */
  signed(socket: Socket): void {
    const login = this.#pending.get(socket);
    if (login !== undefined) login.hasTried = false;
  }

  /** The connection logged in or is closed. Without effect when it was not pending. */
  ended(socket: Socket, outcome: 'logged in' | 'closed'): void {
    const login = this.#pending.get(socket);
    if (login === undefined) return;
    this.#pending.delete(socket);
    clearTimeout(login.grace);
    this.#limiter.ended(login.remote, outcome === 'closed' && login.hasTried ? 'failed' : outcome);
  }

  /** Hangs up on all of them. */
  closeAll(): void {
    for (const socket of this.#pending.keys()) socket.destroy();
  }
}
