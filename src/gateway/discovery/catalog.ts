import { mayUseModel, type Principal } from '../../access/principal.ts';
import type { Clock } from '../../lib/clock.ts';
import { Model, type Member, type Sleeper } from '../balance/model.ts';
import { selects } from '../../kube/selector.ts';
import type { Namespace } from '../../kube/types.ts';
import { claimNames, identityOf, namesOf, type Conflict, type ServerState } from './names.ts';
import type { Probe, ServedModel } from './types.ts';

/** Models by name, as one tenant sees them. */
type ModelTable = ReadonlyMap<string, Model>;

/**
 * The models that each tenant may call: those of its own namespace and the shared ones. One namespace alone serves a
 * name: the caller's own, else Berth's, else the oldest of the namespaces that the operator lets share. No tenant can
 * pull away another's traffic.
 */
export class Catalog {
  readonly #own: ReadonlyMap<string, ModelTable>;
  readonly #shared: ModelTable;
  /** In the place of the shared ones, for tenants who may call what not all may. */
  readonly #chosen: ReadonlyMap<string, ModelTable>;

  /** The lists that were asked for. A tenant may have thousands of names, and ask for them at every wrong one. */
  readonly #lists = new WeakMap<ModelTable, readonly Model[]>();
  readonly #ownLists = new Map<string, readonly Model[]>();
  readonly #listsOfKeys = new WeakMap<readonly string[], Map<string, readonly Model[]>>();

  /** Names that a server has and another serves. */
  readonly conflicts: readonly Conflict[];

  constructor(
    own: ReadonlyMap<string, ModelTable> = new Map(),
    shared: ModelTable = new Map(),
    chosen: ReadonlyMap<string, ModelTable> = new Map(),
    conflicts: readonly Conflict[] = [],
  ) {
    this.#own = own;
    this.#shared = shared;
    this.#chosen = chosen;
    this.conflicts = conflicts;
  }

  find(namespace: string, name: string): Model | undefined {
    return this.#own.get(namespace)?.get(name) ?? this.#sharedWith(namespace).get(name);
  }

  #sharedWith(namespace: string): ModelTable {
    return this.#chosen.get(namespace) ?? this.#shared;
  }

  /** Every model the namespace may call, by name. */
  list(namespace: string): readonly Model[] {
    const own = this.#own.get(namespace);
    const shared = this.#sharedWith(namespace);
    const known = own === undefined ? this.#lists.get(shared) : this.#ownLists.get(namespace);
    if (known !== undefined) return known;
    const visible = new Map([...shared, ...(own ?? [])]);
    const list = [...visible.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
    if (own === undefined) this.#lists.set(shared, list);
    else this.#ownLists.set(namespace, list);
    return list;
  }

  /** Those of them that a key may use, which lists them or starts of their names. */
  listFor({ namespace, models: patterns }: Pick<Principal, 'namespace' | 'models'>): readonly Model[] {
    const list = this.list(namespace);
    if (patterns === undefined) return list;
    const known = this.#listsOfKeys.get(patterns) ?? new Map<string, readonly Model[]>();
    this.#listsOfKeys.set(patterns, known);
    const found = known.get(namespace) ?? list.filter(({ name }) => mayUseModel({ models: patterns }, name));
    known.set(namespace, found);
    return found;
  }
}

/**
 * @param models of the previous catalogue: a model is reused while its members stay, because its ring is costly
 * @param namespaces by whose labels servers outside choose their tenants
 */
export function buildCatalog(
  states: readonly ServerState[],
  models: ModelCache,
  namespaces: Iterable<Namespace> = [],
): Catalog {
  const isChosen = ({ server }: ServerState): boolean => server.outside?.tenants !== undefined;
  const forAll = states.filter((state) => !isChosen(state));
  // What is outside belongs to no tenant, and costs the same for all.
  const byNamespace = Map.groupBy(
    states.filter(({ server }) => server.outside === undefined),
    ({ server }) => server.namespace,
  );
  const own = new Map<string, ModelTable>();
  const conflicts: Conflict[] = [];
  for (const [namespace, group] of byNamespace)
    own.set(namespace, tableOf(group.map(withoutPrices), `own/${namespace}`, models, conflicts));
  const outside: Conflict[] = [];
  const shared = sharedOf(forAll, '', models, outside);
  const chosen = new Map<string, ModelTable>();
  const tables = new Map<string, ModelTable>();
  const restricted = states.filter(isChosen);
  for (const { metadata } of restricted.length === 0 ? [] : namespaces) {
    const own = restricted.filter(({ server }) => selects(server.outside?.tenants, metadata.labels));
    if (own.length === 0) continue;
    // Tenants with the same servers have one table.
    const key = own.map(({ server }) => server.uid).join();
    const table = tables.get(key) ?? sharedOf([...forAll, ...own], `/${key}`, models, outside);
    tables.set(key, table);
    chosen.set(metadata.name, table);
  }
  models.sweep();
  const ofOutside = outside.filter(({ server }) => server.outside !== undefined);
  return new Catalog(own, shared, chosen, [...conflicts, ...distinct(ofOutside)]);
}

/** What the namespaces that share serve to others. */
function sharedOf(
  states: readonly ServerState[],
  scope: string,
  models: ModelCache,
  conflicts: Conflict[],
): ModelTable {
  const shared = new Map<string, Model>();
  for (const [namespace, group] of sharers(states)) {
    for (const [name, model] of tableOf(group, `shared/${namespace}${scope}`, models, conflicts)) {
      if (!shared.has(name)) shared.set(name, model);
    }
  }
  return shared;
}

function distinct(conflicts: readonly Conflict[]): Conflict[] {
  return [...new Map(conflicts.map((one) => [`${one.server.uid} ${one.name}`, one])).values()];
}

/** A tenant pays nothing for calls to its own servers: it has their GPUs. */
function withoutPrices({ server: { prices: _prices, ...server }, ...state }: ServerState): ServerState {
  return { ...state, server };
}

/** The namespaces that share servers, in the order of their right to a name. */
function sharers(states: readonly ServerState[]): [string, ServerState[]][] {
  const shared = states.filter(({ server }) => server.sharedRank !== undefined);
  const groups = [...Map.groupBy(shared, ({ server }) => server.namespace)];
  const rank = ([, group]: [string, ServerState[]]): number => group[0]?.server.sharedRank ?? 0;
  return groups.toSorted((a, b) => rank(a) - rank(b) || (a[0] < b[0] ? -1 : 1));
}

/** @param conflicts gets the names that servers of this table may not have */
function tableOf(states: readonly ServerState[], scope: string, models: ModelCache, conflicts: Conflict[]): ModelTable {
  const claims = claimNames(states);
  conflicts.push(...claims.conflicts);
  const members = new Map<string, Member[]>();
  const facts = new Map<string, ServedModel>();
  const probes = new Map<string, Probe>();
  const seen = new Set<string>();
  const sleepers = new Map<string, Sleeper[]>();
  for (const { server, endpoints, lastProbe, startSeconds } of states) {
    for (const { upstream, ...model } of namesOf(server, lastProbe)) {
      if (claims.names.get(model.id) !== identityOf(server, upstream)) continue;
      if (!members.has(model.id)) members.set(model.id, []);
      facts.set(model.id, { ...facts.get(model.id), ...model });
      if (lastProbe !== undefined && !probes.has(model.id)) probes.set(model.id, lastProbe);
      if (server.scale !== undefined)
        sleepers.set(model.id, [...(sleepers.get(model.id) ?? []), { server, scale: server.scale, startSeconds }]);
    }
    for (const endpoint of endpoints) {
      if (!endpoint.available || endpoint.probe === undefined) continue;
      for (const { id, upstream, ...model } of namesOf(server, endpoint.probe)) {
        if (claims.names.get(id) !== identityOf(server, upstream)) continue;
        // Two Services may select one pod, which is still one member.
        const address = `${endpoint.isOutside ? endpoint.key : endpoint.origin} ${id}`;
        if (seen.has(address)) continue;
        seen.add(address);
        const list = members.get(id) ?? [];
        list.push({ endpoint, upstreamModel: upstream, contextLength: model.contextLength });
        members.set(id, list);
        if (!facts.has(id)) facts.set(id, { id, ...model });
        if (!probes.has(id)) probes.set(id, endpoint.probe);
      }
    }
  }
  const table = new Map<string, Model>();
  for (const [name, list] of members) {
    const model = models.get(`${scope}/${name}`, name, list);
    model.describe(facts.get(name), probes.get(name), sleepers.get(name));
    const owner = claims.owners.get(name);
    const own = owner?.outside?.models.get(name) ?? owner;
    model.prices = own?.prices;
    model.fallback = own?.fallback;
    model.isOutside = owner?.outside !== undefined;
    table.set(name, model);
  }
  return table;
}

/** Models by scope and name, kept from one catalogue to the next. */
export class ModelCache {
  readonly #clock: Clock;
  #current = new Map<string, Model>();
  #next = new Map<string, Model>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get(key: string, name: string, members: readonly Member[]): Model {
    const current = this.#current.get(key);
    const model = current?.hasMembers(members) ? current : new Model(name, members, this.#clock);
    this.#next.set(key, model);
    return model;
  }

  /** Forgets the models that were not asked for since the last sweep. */
  sweep(): void {
    this.#current = this.#next;
    this.#next = new Map();
  }
}
