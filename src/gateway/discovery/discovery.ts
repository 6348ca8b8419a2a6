import type { Logger } from 'pino';
import type { Dispatcher } from 'undici';
import type { InferencePool } from '../../kube/inference-pools.ts';
import type { ReadStore } from '../../kube/watch/store.ts';
import { selects } from '../../kube/selector.ts';
import { keyOf, type EndpointSlice, type Namespace, type Pod, type Service } from '../../kube/types.ts';
import type { Clock } from '../../lib/clock.ts';
import { sameJson } from '../../lib/json.ts';
import { PRICED_MODELS_LABEL } from '../../resources/model-servers/prices.ts';
import { HangWatch } from '../balance/hang-watch.ts';
import { Scraper } from '../balance/scraper.ts';
import { tellBreaks } from '../balance/endpoint-breaker.ts';
import { Endpoint } from '../endpoint.ts';
import type { ModelServer } from '../../resources/model-servers/model-server.ts';
import { buildCatalog, Catalog, ModelCache } from './catalog.ts';
import type { Conflict, ServerState } from './names.ts';
import type { EngineSecrets } from '../../resources/model-servers/engine-credential.ts';
import { Credentials } from './credentials.ts';
import { OutsideAgents, type OutsideSpec, readOutside } from './outside.ts';
import { assumedProbe, probe } from './probe.ts';
import { Prober } from './prober.ts';
import { readPool, readServer, SHARED_MODELS_LABEL } from './server-spec.ts';
import { smallRequest } from './small-http.ts';
import { poolTargetsOf, targetsOf } from './targets.ts';
import { type Addresses, boundNames, TargetBudget } from './tenant-bounds.ts';
import {
  type Probe,
  pathAt,
  type ServerMemory,
  type ServerSpec,
  type Target,
  type FollowedNamespaces,
} from './types.ts';

/** A server outside, and where it is called; undefined where it is not. */
interface OutsideServerNow extends OutsideSpec {
  target: Target | undefined;
}

/** What names servers of the cluster. */
type Source = { service: Service; pool?: never } | { pool: InferencePool; service?: never };

export interface DiscoveryDeps {
  services: ReadStore<Service>;
  slices: ReadStore<EndpointSlice>;
  inferencePools: ReadStore<InferencePool>;
  pods: ReadStore<Pod>;
  namespaces: ReadStore<Namespace>;
  /** Servers outside the cluster. Only those of Berth's own namespace count. */
  modelServers?: ReadStore<ModelServer> | undefined;
  tenants: FollowedNamespaces;
  /** Berth's own namespace: its model servers are shared with every tenant. */
  namespace: string;
  /** Namespaces where servers may scale to zero. */
  mayScale: (namespace: string) => boolean;
  /** Of servers that scale to zero. */
  memory?: ServerMemory | undefined;
  /** Called when there is a new catalogue. */
  onRebuilt: () => void;
  dispatcher: Dispatcher;
  /** Milliseconds for connections to servers outside. */
  timeouts: { keepAliveMs: number; connectMs: number };
  engineSecrets: EngineSecrets;
  log: Logger;
  clock: Clock;
}

const PROBE_TIMEOUT_MS = 5000;
const PROBE_MAX_BYTES = 1 << 20;
/** vLLM's page has about 50 KiB for each data-parallel rank. */
const METRICS_MAX_BYTES = 1 << 20;
const COALESCE_MS = 20;
/**
 * The catalogue rests this many times as long as it took to make, and a second at most: tenants with many names that
 * change their Services all the time take a fifth of the process together.
 */
const REST = 4;
const MOST_REST_MS = 1000;
/** Servers of one tenant. Each is read at every change of any. */
const MAX_SERVERS = 256;

/** Follows the labelled Services and InferencePools and keeps the catalogue of models and their endpoints current. */
export class Discovery {
  readonly #deps: DiscoveryDeps;
  readonly #endpoints = new Map<string, Endpoint>();
  /** Those that no Service names any more, and that have calls under way. */
  readonly #left = new Set<Endpoint>();
  readonly #podKeys = new Set<string>();
  /** By namespace. */
  #pools = new Map<string, InferencePool[]>();
  readonly #lastProbes = new Map<string, Probe>();
  /** What was read from each Service and InferencePool, until a Namespace is trusted otherwise. */
  #specs = new WeakMap<Service | InferencePool, { server: ServerSpec | undefined }>();
  /** What was logged about a Service, by its uid. */
  readonly #logged = new Map<string, string>();
  /** The names that were logged as those of other Services, by uid. */
  readonly #loggedNames = new Map<string, string>();
  readonly #models: ModelCache;
  readonly #credentials: Credentials;
  readonly #agents: OutsideAgents;
  readonly #prober: Prober;
  readonly #scraper: Scraper;
  readonly #hangWatch: HangWatch;
  #catalog = new Catalog();
  #states: readonly ServerState[] = [];
  #unsubscribe: (() => void)[] = [];
  #timer: NodeJS.Timeout | undefined;
  /** Monotonic: the catalogue is made anew no earlier. */
  #restUntil = 0;
  /** As it was logged last. */
  #ignored = 0;

  constructor(deps: DiscoveryDeps) {
    this.#deps = deps;
    this.#models = new ModelCache(deps.clock);
    this.#agents = new OutsideAgents(deps.timeouts);
    this.#credentials = new Credentials({
      secrets: deps.engineSecrets,
      changed: () => this.#schedule(),
      clock: deps.clock,
    });
    this.#prober = new Prober({
      probe: (target, signal) => this.#probe(target, signal),
      changed: () => this.#schedule(),
      failed: (target, err, attempt) => this.#logFailure(target, err, attempt),
      clock: deps.clock,
      random: Math.random,
    });
    this.#scraper = new Scraper({
      endpoints: () => this.endpoints,
      fetch: (endpoint) => this.#metrics(endpoint),
      clock: deps.clock,
    });
    this.#hangWatch = new HangWatch({
      endpoints: () => this.endpoints,
      ask: (endpoint, signal) => this.#ask(endpoint, signal),
      clock: deps.clock,
    });
  }

  get catalog(): Catalog {
    return this.#catalog;
  }

  /** Every server that is labelled, whether it has endpoints or not. */
  get states(): readonly ServerState[] {
    return this.#states;
  }

  /** Also those that no Service names any more, until their calls have ended. */
  get endpoints(): Iterable<Endpoint> {
    for (const endpoint of this.#left) if (endpoint.inFlight === 0) this.#left.delete(endpoint);
    return [...this.#endpoints.values(), ...this.#left];
  }

  /** Reads the metrics of these servers now. */
  read(endpoints: readonly Endpoint[]): void {
    this.#scraper.look(endpoints);
  }

  start(): void {
    const { services, slices, inferencePools, pods, namespaces, modelServers, tenants, memory } = this.#deps;
    this.#unsubscribe = [
      memory?.onChange(() => this.#schedule()) ?? (() => undefined),
      services.onChange(() => this.#schedule()),
      slices.onChange(() => this.#schedule()),
      // The cluster has many pods. Only those of model servers matter.
      pods.onChange(({ key, before, after }) => {
        if (this.#podKeys.has(key) || this.#isPooled(before) || this.#isPooled(after)) this.#schedule();
      }),
      inferencePools.onChange(() => this.#schedule()),
      namespaces.onChange(({ before, after }) => {
        if (trustOf(before) !== trustOf(after)) this.#specs = new WeakMap();
        else if (!this.#choosesTenants || sameJson(before?.metadata.labels, after?.metadata.labels)) return;
        this.#schedule();
      }),
      modelServers?.onChange(() => this.#schedule()) ?? (() => undefined),
      tenants.onChange(() => this.#schedule()),
    ];
    this.#credentials.start();
    this.#prober.start();
    this.#scraper.start();
    this.#hangWatch.start();
    this.#schedule();
  }

  async stop(): Promise<void> {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    clearTimeout(this.#timer);
    this.#prober.stop();
    this.#scraper.stop();
    this.#hangWatch.stop();
    await this.#credentials.stop();
  }

  /** Ends the connections to servers outside, once no call needs them. */
  async close(): Promise<void> {
    await this.#agents.close();
  }

  /** Whether labels of namespaces say who may call a server. */
  get #choosesTenants(): boolean {
    return this.#states.some(({ server }) => server.outside?.tenants !== undefined);
  }

  #schedule(): void {
    if (this.#timer !== undefined) return;
    const { clock } = this.#deps;
    const rest = Math.min(this.#restUntil - clock.monotonic(), MOST_REST_MS);
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        const began = clock.monotonic();
        this.#rebuild();
        const ended = clock.monotonic();
        this.#restUntil = ended + REST * (ended - began);
      },
      Math.max(COALESCE_MS, rest),
    ).unref();
  }

  #rebuild(): void {
    const budget = new TargetBudget(this.#isBounded);
    const servers = this.#readServers(budget);
    const targets = servers.flatMap(({ targets }) => targets);
    const unprobed = this.#prober.sync(targets);
    const outside = this.#readOutside();
    const keys = new Set([...targets, ...outside.flatMap(({ target }) => target ?? [])].map(({ key }) => key));
    for (const [key, endpoint] of this.#endpoints) {
      if (keys.has(key)) continue;
      endpoint.available = false;
      this.#endpoints.delete(key);
      if (endpoint.inFlight > 0) this.#left.add(endpoint);
    }
    const states = servers.map(({ server, targets }) => this.#stateOf(server, targets));
    const inside = boundNames(states, this.#isBounded);
    this.#states = [...inside, ...outside.map((one) => this.#stateOutside(one))];
    const followed = inside.reduce((sum, { endpoints }) => sum + endpoints.length, 0);
    this.#logIgnored(budget.ignored + targets.length - followed + unprobed);
    const uids = new Set(this.#states.map(({ server }) => server.uid));
    for (const byUid of [this.#lastProbes, this.#logged, this.#loggedNames])
      for (const uid of byUid.keys()) if (!uids.has(uid)) byUid.delete(uid);
    this.#catalog = buildCatalog(this.#states, this.#models, this.#deps.namespaces.values());
    this.#logConflicts(this.#catalog.conflicts);
    this.#withdraw();
    this.#deps.onRebuilt();
  }

  /** Ends the calls under way of tenants to whom a server outside was open, by their labels, and is no more. */
  #withdraw(): void {
    for (const { server, endpoints } of this.#states) {
      const tenants = server.outside?.tenants;
      if (tenants === undefined) continue;
      for (const flight of endpoints.flatMap(({ flights }) => [...flights])) {
        const labels = this.#deps.namespaces.get(flight.tenant)?.metadata.labels;
        if (!selects(tenants, labels)) flight.withdraw();
      }
    }
  }

  #logIgnored(ignored: number): void {
    if (ignored > this.#ignored) this.#deps.log.warn({ ignored }, 'More model endpoints than the gateway follows');
    this.#ignored = ignored;
  }

  /** Servers of tenants are. Others are the operator's. */
  readonly #isBounded = (namespace: string): boolean => {
    const labels = this.#deps.namespaces.get(namespace)?.metadata.labels;
    return namespace !== this.#deps.namespace && labels?.[SHARED_MODELS_LABEL] !== 'true';
  };

  #stateOf(server: ServerSpec, targets: readonly Target[]): ServerState {
    const { memory } = this.#deps;
    const { uid, scale } = server;
    const endpoints = targets.map((target) => this.#endpoint(target));
    const current = endpoints.find(({ probe }) => probe !== undefined)?.probe;
    if (current !== undefined) this.#lastProbes.set(uid, current);
    if (scale === undefined) return { server, endpoints, lastProbe: this.#lastProbes.get(uid) };
    if (current !== undefined) memory?.noteProbe(uid, current);
    const known = this.#lastProbes.get(uid) ?? memory?.lastProbe(uid);
    const lastProbe = current ?? assumedProbe(server, scale, known);
    return { server, endpoints, lastProbe, startSeconds: memory?.startSeconds(uid) };
  }

  #isPooled(pod: Pod | undefined): boolean {
    const pools = this.#pools.get(pod?.metadata.namespace ?? '') ?? [];
    return pools.some(({ spec }) => selects(spec?.selector, pod?.metadata.labels));
  }

  /** What somebody may call: what is in Berth's own namespace, in those of tenants and in those that share. */
  #sources(): Source[] {
    const { services, inferencePools, tenants } = this.#deps;
    const every: Source[] = [
      ...[...services.values()].map((service) => ({ service })),
      ...[...inferencePools.values()].map((pool) => ({ pool })),
    ];
    const byNamespace = Map.groupBy(every, (source) => metadataOf(source).namespace ?? '');
    return [...byNamespace].flatMap(([namespace, all]) => {
      if (!this.#isBounded(namespace)) return all;
      return tenants.has(namespace) ? all.toSorted(byAge).slice(0, MAX_SERVERS) : [];
    });
  }

  #readServers(budget: TargetBudget) {
    const { slices, pods } = this.#deps;
    const byService = Map.groupBy(
      slices.values(),
      ({ metadata }) => `${metadata.namespace}/${metadata.labels?.['kubernetes.io/service-name']}`,
    );
    const sources = this.#sources();
    this.#podKeys.clear();
    const pools = sources.flatMap(({ pool }) => pool ?? []);
    this.#pools = Map.groupBy(pools, namespaceOf);
    const pooled = new Map<string, readonly Pod[]>();
    for (const [namespace, own] of pools.length === 0 ? [] : Map.groupBy(pods.values(), namespaceOf)) {
      const count = this.#pools.get(namespace)?.length ?? 0;
      if (count > 0) pooled.set(namespace, budget.podsFor(namespace, count, own));
    }
    return sources.flatMap((source) => {
      const server = this.#specOf(source);
      if (server === undefined) return [];
      const credential = this.#credentials.of(server);
      if (typeof credential === 'string') {
        const problems = credential === '' ? server.problems : [...server.problems, credential];
        this.#logProblems({ ...server, problems });
        return [{ server, targets: [] }];
      }
      this.#logProblems(server);
      const { namespace } = server;
      const found =
        source.service === undefined
          ? poolTargetsOf(server, source.pool, pooled.get(namespace) ?? [], budget.left(namespace))
          : this.#targetsOfService(server, source.service, byService.get(keyOf(source.service)) ?? []);
      const targets = budget.take(namespace, found);
      return [{ server, targets: targets.map((target) => ({ ...target, ...(credential && { credential }) })) }];
    });
  }

  #targetsOfService(server: ServerSpec, service: Service, slices: readonly EndpointSlice[]): Addresses {
    const { pods, namespace } = this.#deps;
    const pod = (key: string): Pod | undefined => {
      this.#podKeys.add(key);
      return pods.get(key);
    };
    return { targets: targetsOf({ server, service, slices, pod, trustedNamespace: namespace }), ignored: 0 };
  }

  #readOutside(): OutsideServerNow[] {
    const { modelServers, namespace } = this.#deps;
    const specs = [...(modelServers?.values() ?? [])]
      .filter(({ metadata }) => metadata.namespace === namespace && metadata.deletionTimestamp === undefined)
      .map(readOutside);
    this.#agents.keep(new Set(specs.map(({ ca }) => ca)));
    return specs.map((spec) => {
      const target = this.#targetOutside(spec);
      const problem = typeof target === 'string' && target !== '' ? [target] : [];
      this.#logProblems({ ...spec.server, problems: problem });
      return { ...spec, target: typeof target === 'string' ? undefined : target };
    });
  }

  /** Why it gets no calls, where it gets none; empty where its Secret was not read yet. */
  #targetOutside({ server, where, ca }: OutsideSpec): Target | string {
    if (typeof where === 'string') return where;
    const credential = this.#credentials.of(server);
    if (typeof credential === 'string') return credential;
    const dispatcher = this.#agents.of(ca);
    if (dispatcher === undefined) return 'spec.caBundle does not begin with a certificate in PEM';
    const { origin, path } = where;
    return {
      key: `${server.uid}@${origin}${path}`,
      place: `${server.namespace}@${origin}${path}`,
      origin,
      restarts: '',
      server,
      dispatcher,
      available: true,
      ...(credential && { credential }),
    };
  }

  #stateOutside({ server, target, probe: said }: OutsideServerNow): ServerState {
    return { server, endpoints: target === undefined ? [] : [this.#endpoint(target, said)], lastProbe: said };
  }

  /** Each version of a Service or InferencePool is read once. */
  #specOf({ service, pool }: Source): ServerSpec | undefined {
    const object = service ?? pool;
    const known = this.#specs.get(object);
    if (known !== undefined) return known.server;
    const { namespaces, namespace, mayScale } = this.#deps;
    const trust = { own: namespace, find: (name: string) => namespaces.get(name), mayScale };
    const server = service === undefined ? readPool(pool, trust) : readServer(service, trust);
    this.#specs.set(object, { server });
    return server;
  }

  /** Logs once what is wrong with a server. */
  #logProblems({ uid, namespace, name, problems, outside }: ServerSpec): void {
    const text = problems.join('; ');
    if ((this.#logged.get(uid) ?? '') === text) return;
    this.#logged.set(uid, text);
    if (text === '') return;
    const { log } = this.#deps;
    if (outside === undefined)
      log.info({ service: `${namespace}/${name}`, problems }, 'Annotations of a model server were ignored');
    else log.warn({ modelServer: `${namespace}/${name}`, problems }, 'Model server outside gets no calls');
  }

  /** Logs once which names of a Service mean a model of another. */
  #logConflicts(conflicts: readonly Conflict[]): void {
    const byServer = Map.groupBy(conflicts, ({ server }) => server.uid);
    for (const uid of this.#loggedNames.keys()) if (!byServer.has(uid)) this.#loggedNames.delete(uid);
    for (const [uid, own] of byServer) {
      const names = own.map(({ name, served }) => ({ name, served }));
      const text = JSON.stringify(names);
      const [first] = own;
      if (first === undefined || this.#loggedNames.get(uid) === text) continue;
      this.#loggedNames.set(uid, text);
      const service = `${first.server.namespace}/${first.server.name}`;
      this.#deps.log.warn({ service, names }, 'Names of a model server belong to another model of an older Service');
    }
  }

  /** @param said what its owner says of it, in the place of a probe */
  #endpoint(target: Target, said?: Probe): Endpoint {
    const endpoint = this.#endpoints.get(target.key) ?? this.#back(target) ?? this.#newEndpoint(target);
    endpoint.update(target, said ?? this.#prober.get(target.key));
    this.#endpoints.set(target.key, endpoint);
    return endpoint;
  }

  /** A server that was gone for a moment has its calls still, whichever Service names it now. */
  #back({ place }: Target): Endpoint | undefined {
    const endpoint = [...this.#left].find((one) => one.place === place);
    if (endpoint !== undefined) this.#left.delete(endpoint);
    return endpoint;
  }

  #newEndpoint(target: Target): Endpoint {
    const { clock, log } = this.#deps;
    const fields = { service: serviceOf(target), origin: target.origin };
    return new Endpoint(target, clock, tellBreaks(log, clock, fields));
  }

  async #probe(target: Target, signal: AbortSignal): Promise<Probe> {
    const { dispatcher } = this.#deps;
    const { origin, credential } = target;
    const limits = { signal, timeoutMs: PROBE_TIMEOUT_MS, maxBytes: PROBE_MAX_BYTES };
    const found = await probe(
      (path, body) => smallRequest(dispatcher, { origin, credential, path, body, ...limits }),
      target.server,
    );
    const { engine, version, dialects } = found;
    this.#deps.log.debug({ service: serviceOf(target), engine, version, dialects }, 'Model server was probed');
    return found;
  }

  /** Any answer will do: it shows that the server is there. */
  async #ask({ origin, probe, credential, dispatcher }: Endpoint, signal: AbortSignal): Promise<void> {
    const path = pathAt(probe ?? { prefix: '' }, '/v1/models');
    const limits = { timeoutMs: PROBE_TIMEOUT_MS, maxBytes: PROBE_MAX_BYTES };
    await smallRequest(dispatcher ?? this.#deps.dispatcher, { origin, credential, path, signal, ...limits });
  }

  async #metrics({ origin, credential }: Endpoint): Promise<string> {
    const limits = { timeoutMs: PROBE_TIMEOUT_MS, maxBytes: METRICS_MAX_BYTES };
    return (await smallRequest(this.#deps.dispatcher, { origin, credential, path: '/metrics', ...limits })).text;
  }

  #logFailure(target: Target, err: unknown, attempt: number): void {
    const fields = { err, service: serviceOf(target), attempt };
    // A server that loads its weights fails many probes. The first failure alone is worth a line of its own.
    if (attempt === 1) this.#deps.log.info(fields, 'Model server does not answer probes yet');
    else this.#deps.log.debug(fields, 'Model server still does not answer probes');
  }
}

function metadataOf({ service, pool }: Source): Service['metadata'] {
  return (service ?? pool).metadata;
}

function namespaceOf({ metadata }: Pod | InferencePool): string {
  return metadata.namespace ?? '';
}

function byAge(a: Source, b: Source): number {
  const age = (source: Source): string => `${metadataOf(source).creationTimestamp ?? ''} ${metadataOf(source).name}`;
  return age(a) < age(b) ? -1 : 1;
}

/** What the operator trusts the Services of a namespace with. */
function trustOf(namespace: Namespace | undefined): string {
  const { labels = {} } = namespace?.metadata ?? {};
  return [SHARED_MODELS_LABEL, PRICED_MODELS_LABEL].map((name) => labels[name] ?? '').join();
}

function serviceOf({ server }: Target): string {
  return `${server.namespace}/${server.name}`;
}
