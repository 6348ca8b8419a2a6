import type { Socket } from 'node:net';
import { limitKey, networkOf, type AddressGate } from './address-limits.ts';

/** A connection that has not logged in. */
interface Pending {
  remote: string;
  /** What the limits count as one address. */
  address: string;
  network: string;
  grace: NodeJS.Timeout;
  /** Offered a key: leaving without a login is a failure then. */
  tried: boolean;
}

export interface PendingLogins {
  /**
   * Whether the newcomer may try to log in; it has the time of grace for that. When all places are taken it gets that of
   * the oldest connection from the network, and of it the address, that holds the most.
   */
  admit(socket: Socket): boolean;
  tried(socket: Socket): void;
  /** The connection logged in or is gone; without effect when it was not pending. */
  settle(socket: Socket, outcome: 'in' | 'left'): void;
  /** Hangs up on everyone who is pending. */
  drop(): void;
}

// sshd's MaxStartups refuses newcomers, at random before all places are taken: whoever connects most gets most of them.
function crowdedOut(pending: ReadonlyMap<Socket, Pending>): Socket | undefined {
  const held = new Map<string, number>();
  for (const { address, network } of pending.values()) {
    held.set(address, (held.get(address) ?? 0) + 1);
    held.set(network, (held.get(network) ?? 0) + 1);
  }
  let found: Socket | undefined;
  let most = { network: 0, address: 0 };
  for (const [socket, each] of pending) {
    const holds = { network: held.get(each.network) ?? 0, address: held.get(each.address) ?? 0 };
    if (holds.network < most.network || (holds.network === most.network && holds.address <= most.address)) continue;
    found = socket;
    most = holds;
  }
  return found;
}

/** Connections that have not logged in, at most `places` of them, each for at most `graceMs`. */
export function pendingLogins(gate: AddressGate, limits: { places: number; graceMs: number }): PendingLogins {
  const pending = new Map<Socket, Pending>();
  const settle = (socket: Socket, outcome: 'in' | 'left'): void => {
    const login = pending.get(socket);
    if (login === undefined) return;
    pending.delete(socket);
    clearTimeout(login.grace);
    gate.settle(login.remote, outcome === 'left' && login.tried);
  };
  return {
    admit: (socket) => {
      const remote = socket.remoteAddress ?? '';
      if (!gate.admit(remote)) return false;
      const grace = setTimeout(() => socket.destroy(), limits.graceMs);
      pending.set(socket, { remote, address: limitKey(remote), network: networkOf(remote), grace, tried: false });
      const loser = pending.size > limits.places ? crowdedOut(pending) : undefined;
      if (loser !== undefined) {
        settle(loser, 'left');
        loser.destroy();
      }
      return true;
    },
    tried: (socket) => {
      const login = pending.get(socket);
      if (login !== undefined) login.tried = true;
    },
    settle,
    drop: () => {
      for (const socket of pending.keys()) socket.destroy();
    },
  };
}
