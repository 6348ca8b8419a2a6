import type { Endpoint } from '../endpoint.ts';
import { Pool, type Member } from '../balance/pool.ts';
import type { Probe, ServedModel, ServerSpec } from './types.ts';

/** One server with the endpoints it has now and what its last probed endpoint served. */
export interface ServerState {
  server: ServerSpec;
  endpoints: readonly Endpoint[];
  lastProbe: Probe | undefined;
}

/** Models by name as one tenant sees them. */
export type ModelTable = ReadonlyMap<string, Pool>;

/**
 * Which models there are, and who may call them. A tenant sees the servers of its own namespace and the shared ones,
 * never those of another tenant. One name is always served from one namespace: the caller's own, else Berth's, else
 * the one that shared it first, so nobody can pull away another's traffic by reusing a name.
 */
export class Catalog {
  readonly #own: ReadonlyMap<string, ModelTable>;
  readonly #shared: ModelTable;

  constructor(own: ReadonlyMap<string, ModelTable>, shared: ModelTable) {
    this.#own = own;
    this.#shared = shared;
  }

  find(namespace: string, model: string): Pool | undefined {
    return this.#own.get(namespace)?.get(model) ?? this.#shared.get(model);
  }

  /** Every model the namespace may call, by name. */
  list(namespace: string): Pool[] {
    const visible = new Map([...this.#shared, ...(this.#own.get(namespace) ?? [])]);
    return [...visible.values()].toSorted((a, b) => (a.model < b.model ? -1 : 1));
  }
}

/** @param previous pools are carried over while their members stay the same, because a ring is costly to build */
export function buildCatalog(states: readonly ServerState[], ownNamespace: string, previous: PoolCache): Catalog {
  const byNamespace = Map.groupBy(states, ({ server }) => server.namespace);
  const own = new Map<string, ModelTable>();
  for (const [namespace, group] of byNamespace) own.set(namespace, tableOf(group, `own/${namespace}`, previous));
  const shared = new Map<string, Pool>();
  for (const [namespace, group] of sharers(states, ownNamespace)) {
    for (const [model, pool] of tableOf(group, `shared/${namespace}`, previous)) {
      if (!shared.has(model)) shared.set(model, pool);
    }
  }
  previous.sweep();
  return new Catalog(own, shared);
}

function sharers(states: readonly ServerState[], ownNamespace: string): [string, ServerState[]][] {
  const groups = [
    ...Map.groupBy(
      states.filter(({ server }) => server.shared),
      ({ server }) => server.namespace,
    ),
  ];
  const rank = ([namespace, group]: [string, ServerState[]]): number =>
    namespace === ownNamespace ? -1 : Math.min(...group.map(({ server }) => server.created));
  return groups.toSorted((a, b) => rank(a) - rank(b) || (a[0] < b[0] ? -1 : 1));
}

function tableOf(states: readonly ServerState[], scope: string, pools: PoolCache): ModelTable {
  const members = new Map<string, Member[]>();
  const facts = new Map<string, ServedModel>();
  const probes = new Map<string, Probe>();
  const seen = new Set<string>();
  for (const { server, endpoints, lastProbe } of states) {
    for (const { upstream: _, ...model } of namesOf(server, lastProbe)) {
      if (!members.has(model.id)) members.set(model.id, []);
      facts.set(model.id, { ...facts.get(model.id), ...model });
      if (lastProbe !== undefined && !probes.has(model.id)) probes.set(model.id, lastProbe);
    }
    for (const endpoint of endpoints) {
      if (!endpoint.available || endpoint.probe === undefined) continue;
      for (const { id, upstream, ...model } of namesOf(server, endpoint.probe)) {
        // Two Services may select one pod: it is still one place to send a call to.
        const place = `${endpoint.origin} ${id}`;
        if (seen.has(place)) continue;
        seen.add(place);
        const list = members.get(id) ?? [];
        list.push({ endpoint, upstreamModel: upstream, contextLength: model.contextLength });
        members.set(id, list);
        if (!facts.has(id)) facts.set(id, { id, ...model });
        if (!probes.has(id)) probes.set(id, endpoint.probe);
      }
    }
  }
  const table = new Map<string, Pool>();
  for (const [model, list] of members) {
    table.set(
      model,
      pools.get(`${scope}/${model}`, { model, members: list, facts: facts.get(model), probe: probes.get(model) }),
    );
  }
  return table;
}

type NamedModel = ServedModel & { upstream: string };

function namesOf(server: ServerSpec, probe: Probe | undefined): NamedModel[] {
  const models = probe?.models ?? [];
  const aliases = server.aliases.flatMap(({ alias, model }): NamedModel[] => {
    const target = model === undefined ? models[0] : models.find(({ id }) => id === model);
    // Before any probe the annotation is all there is; after one, an alias of a model that is not served names nothing.
    if (target === undefined) return probe === undefined ? [{ id: alias, upstream: model ?? alias }] : [];
    return [{ ...target, id: alias, upstream: target.id }];
  });
  const taken = new Set(aliases.map(({ id }) => id));
  return [...aliases, ...models.filter(({ id }) => !taken.has(id)).map((model) => ({ ...model, upstream: model.id }))];
}

export interface PoolFacts {
  model: string;
  members: readonly Member[];
  facts: ServedModel | undefined;
  probe: Probe | undefined;
}

/** Pools by scope and model, kept from one catalog to the next. */
export class PoolCache {
  readonly #now: () => number;
  #kept = new Map<string, Pool>();
  #next = new Map<string, Pool>();

  constructor(now: () => number) {
    this.#now = now;
  }

  get(key: string, facts: PoolFacts): Pool {
    const kept = this.#kept.get(key);
    const pool = kept?.sameMembers(facts.members) ? kept : new Pool(facts.model, facts.members, this.#now);
    pool.describe(facts.facts, facts.probe);
    this.#next.set(key, pool);
    return pool;
  }

  /** Forgets the pools that were not asked for since the last sweep. */
  sweep(): void {
    this.#kept = this.#next;
    this.#next = new Map();
  }
}
