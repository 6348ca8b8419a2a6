import type { ServerState } from './names.ts';
import type { ServerSpec, Target } from './types.ts';

// The catalogue is made anew at every change of any server, so what one tenant has in it is everybody's time.

/** Addresses of the servers of one tenant. */
const MOST_TARGETS = 1024;
/** Names of models of one tenant: those of each server, and those of each of its endpoints. */
const MOST_NAMES = 8192;

/** A server of which some addresses may be left out. */
interface Addressed {
  server: ServerSpec;
  targets: readonly Target[];
}

/** The servers with as many addresses as their namespaces may have, the first ones. */
export function boundTargets(servers: readonly Addressed[], isBounded: (namespace: string) => boolean): Addressed[] {
  const used = new Map<string, number>();
  return servers.map(({ server, targets }) => {
    const { namespace } = server;
    if (!isBounded(namespace)) return { server, targets };
    const kept = targets.slice(0, MOST_TARGETS - (used.get(namespace) ?? 0));
    used.set(namespace, (used.get(namespace) ?? 0) + kept.length);
    return { server, targets: kept };
  });
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
