import type { Endpoint } from '../endpoint.ts';
import type { Probe, ServedModel, ServerSpec } from './types.ts';

/** One server, the endpoints it has now, and what its last probed endpoint served. */
export interface ServerState {
  server: ServerSpec;
  endpoints: readonly Endpoint[];
  lastProbe: Probe | undefined;
  /** Seconds that earlier starts took from no replica to the first. */
  startSeconds?: number | undefined;
}

/** A model under a name that clients use, and its name at the server. */
type NamedModel = ServedModel & { upstream: string };

/** The models of a server with its aliases. */
export function namesOf(server: ServerSpec, probe: Probe | undefined): NamedModel[] {
  const models = probe?.models ?? [];
  const aliases = server.aliases.flatMap(({ alias, model }): NamedModel[] => {
    const target = model === undefined ? models[0] : models.find(({ id }) => id === model);
    // Before any probe the annotation is all there is; after one, an alias of a model that is not served names nothing.
    if (target === undefined) return probe === undefined ? [{ id: alias, upstream: model ?? alias }] : [];
    return [{ ...target, id: alias, upstream: target.id }];
  });
  const taken = new Set(aliases.map(({ id }) => id));
  return [...aliases, ...models.filter(({ id }) => !taken.has(id)).map((model) => ({ upstream: model.id, ...model }))];
}

/** A server has this name for another model than the one that is served under it. */
export interface Conflict {
  server: ServerSpec;
  name: string;
  /** The model that calls get. */
  served: string;
}

/** A model inside the cluster is none outside, whatever they are called: a call leaves the cluster by its name alone. */
export function identityOf({ outside }: ServerSpec, upstream: string): string {
  return outside === undefined ? upstream : `${upstream} outside the cluster`;
}

/** The model at the server that each name stands for, and the server that says what its tokens cost and the like. */
interface Claims {
  names: ReadonlyMap<string, string>;
  owners: ReadonlyMap<string, ServerSpec>;
  conflicts: readonly Conflict[];
}

/**
 * Decides which model each name stands for: one alone, or a conversation would change the model from call to call. The
 * oldest Service that has the name decides, also what it costs, as its endpoints that are ready say; those that have not answered a probe
 * come last. Servers of the same model serve the name together.
 */
export function claimNames(states: readonly ServerState[]): Claims {
  const names = new Map<string, string>();
  const owners = new Map<string, ServerSpec>();
  const conflicts: Conflict[] = [];
  for (const { server, endpoints, lastProbe } of states.toSorted(byAge)) {
    const probes = endpoints.flatMap(({ available, probe }) => (available && probe !== undefined ? [probe] : []));
    const own = probes.length > 0 ? probes : [lastProbe];
    for (const [name, model] of mostServed(own.flatMap((probe) => namesOf(server, probe)))) {
      const served = names.get(name);
      const upstream = identityOf(server, model);
      if (served === undefined) {
        names.set(name, upstream);
        owners.set(name, server);
      } else if (served !== upstream) conflicts.push({ server, name, served });
    }
  }
  return { names, owners, conflicts };
}

function byAge(a: ServerState, b: ServerState): number {
  const known = Number(a.lastProbe === undefined) - Number(b.lastProbe === undefined);
  return known || (a.server.createdAt ?? 0) - (b.server.createdAt ?? 0) || (a.server.name < b.server.name ? -1 : 1);
}

/** The model behind each name that most endpoints of one server have. While its pods change, they may differ. */
function mostServed(models: readonly NamedModel[]): Map<string, string> {
  const counts = new Map<string, Map<string, number>>();
  for (const { id, upstream } of models) {
    const of = counts.get(id) ?? new Map<string, number>();
    of.set(upstream, (of.get(upstream) ?? 0) + 1);
    counts.set(id, of);
  }
  const most = new Map<string, string>();
  for (const [name, of] of counts) {
    const [first] = [...of].toSorted((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    if (first !== undefined) most.set(name, first[0]);
  }
  return most;
}
