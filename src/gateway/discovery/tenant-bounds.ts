import type { Pod } from '../../kube/types.ts';
import type { ServerState } from './names.ts';
import type { Target } from './types.ts';

// The catalogue is made anew at every change of any server, so what one tenant has in it is everybody's time.

/** Addresses of the servers of one tenant. */
const MOST_TARGETS = 1024;
/** Names of models of one tenant: those of each server, and those of each of its endpoints. */
const MOST_NAMES = 8192;

/** Pods of one tenant that its InferencePools are held against, over all pools: each pool may select all of them. */
const MOST_LOOKS = 65_536;

/** Addresses of one server. */
export interface Addresses {
  targets: readonly Target[];
  /** How many more there are. */
  ignored: number;
}

/** Addresses that namespaces have left while their servers are read, the first ones. */
export class TargetBudget {
  readonly #isBounded: (namespace: string) => boolean;
  readonly #used = new Map<string, number>();
  #ignored = 0;

  constructor(isBounded: (namespace: string) => boolean) {
    this.#isBounded = isBounded;
  }

  /** How many addresses were left out. */
  get ignored(): number {
    return this.#ignored;
  }

  left(namespace: string): number {
    return this.#isBounded(namespace) ? MOST_TARGETS - (this.#used.get(namespace) ?? 0) : Infinity;
  }

  /** As many of a server's addresses as its namespace has left. */
  take(namespace: string, { targets, ignored }: Addresses): readonly Target[] {
    const kept = targets.slice(0, this.left(namespace));
    this.#used.set(namespace, (this.#used.get(namespace) ?? 0) + kept.length);
    this.#ignored += ignored + targets.length - kept.length;
    return kept;
  }

  /** The pods that each of so many InferencePools is held against. */
  podsFor(namespace: string, pools: number, pods: readonly Pod[]): readonly Pod[] {
    return this.#isBounded(namespace) ? pods.slice(0, Math.ceil(MOST_LOOKS / pools)) : pods;
  }
}

/** The servers with as many endpoints as the names of their namespaces allow, the first ones. */
export function boundNames(states: readonly ServerState[], isBounded: (namespace: string) => boolean): ServerState[] {
  const used = new Map<string, number>();
  return states.map((state) => {
    const { aliases, namespace } = state.server;
    if (!isBounded(namespace)) return state;
    const fits = (probe: ServerState['lastProbe']): boolean => {
      const names = (used.get(namespace) ?? 0) + aliases.length + (probe?.models.length ?? 0);
      if (names > MOST_NAMES) return false;
      used.set(namespace, names);
      return true;
    };
    if (!fits(state.lastProbe)) return { ...state, endpoints: [], lastProbe: undefined };
    return { ...state, endpoints: state.endpoints.filter(({ probe }) => fits(probe)) };
  });
}
