import type { Pod, Service } from '../../kube/types.ts';
import type { ReadStore } from '../../kube/watch/store.ts';
import type { Clock } from '../../lib/clock.ts';
import { pullProblem } from '../../resources/pod/pull-problem.ts';
import type { Model, Sleeper } from '../balance/model.ts';
import type { Call } from '../calls/call.ts';
import type { ClientWriter } from '../calls/client-writer.ts';
import { priorityOf } from '../calls/priority.ts';
import type { Catalog } from '../discovery/catalog.ts';
import type { ServerState } from '../discovery/names.ts';
import { type ServerSpec, workloadOf } from '../discovery/types.ts';
import type { Endpoint } from '../endpoint.ts';
import type { ModelLeases } from './model-leases.ts';
import { StartError, WaitingRoom } from './waiting-room.ts';

export interface StartsDeps {
  leases: ModelLeases;
  services: ReadStore<Service>;
  pods: ReadStore<Pod>;
  catalog: () => Catalog;
  states: () => readonly ServerState[];
  /** Every endpoint that has calls, also where its Service is gone. */
  endpoints: () => Iterable<Endpoint>;
  /** Aborts when this replica stops: another one may hold the calls then. */
  stopping: AbortSignal;
  clock: Clock;
}

const TICK_MS = 2000;
const NEWS_MS = 500;
const STOPPING_RETRY_MS = 1000;
const TIMEOUT_RETRY_MS = 15_000;
const BROKEN_RETRY_MS = 30_000;
/** A start that takes longer is not measured. */
const START_MAX_MS = 3_600_000;

/** Holds calls for models without a server until one is ready, asks for a start, and says which servers are in use. */
export class Starts {
  readonly #deps: StartsDeps;
  readonly #room: WaitingRoom;
  /** When this replica asked a server that slept to start: milliseconds, monotonic. */
  readonly #askedAt = new Map<string, number>();
  /** What was found since the last tick, by server: the cluster has many pods, and many calls ask. */
  readonly #problems = new Map<string, StartProblem | undefined>();
  #lastTick = 0;
  #cancel: () => void = () => undefined;

  constructor(deps: StartsDeps) {
    this.#deps = deps;
    this.#room = new WaitingRoom(deps.clock);
  }

  start(): void {
    this.#lastTick = this.#deps.clock.monotonic();
    this.#deps.stopping.addEventListener('abort', () => this.#room.dismiss(stopping), { once: true });
    this.#again();
  }

  stop(): void {
    this.#cancel();
    this.#room.dismiss(stopping);
    this.#deps.leases.close();
  }

  /** The model of each call that waits. */
  get waiting(): WaitingRoom['models'] {
    return this.#room.models;
  }

  /** Brings up a server for later calls of the model. */
  wake({ sleepers }: Model): void {
    const sleeper = this.#choose(sleepers);
    if (sleeper !== undefined && !this.#deps.stopping.aborted) this.#ask(sleeper.server.uid);
  }

  /**
   * The model after a wait for the server that a call brings up; undefined where there is nothing to wait for. No other
   * server gets the call, which may be another's, at another price. A stream gets comments meanwhile. Rejects with
   * StartError, or with why the call is over.
   */
  async ready(call: Call, model: Model, client: ClientWriter): Promise<Model | undefined> {
    if (model.sleepers.length === 0 || model.readyCount > 0) return undefined;
    const sleeper = this.#choose(model.sleepers);
    if (sleeper === undefined) return undefined;
    const { server, scale } = sleeper;
    const tenant = call.principal.namespace;
    if (this.#deps.stopping.aborted) throw stopping();
    const broken = this.#problem(server);
    if (broken?.isFinal) throw cannotStart(model.name, broken, server, tenant);
    this.#ask(server.uid);
    if (call.inspection.stream) client.keepAlive();
    const { name, isShared } = model;
    const priority = priorityOf(call);
    const waiter = { tenant, priority, name, isShared, uid: server.uid, bytes: call.hold.held };
    try {
      return await this.#room.wait(waiter, {
        mostMs: scale.waitSeconds * 1000,
        timedOut: () => this.#tookTooLong(model.name, sleeper, tenant),
        onLeave: (leave) => client.onOver(leave),
      });
    } finally {
      client.onOver(undefined);
    }
  }

  /**
   * The model with a ready server, after a call met one that was on its way to zero. Undefined when the model still has
   * a server, or cannot come from zero, or has other servers by now.
   */
  async afterFailure(call: Call, model: Model, client: ClientWriter): Promise<Model | undefined> {
    if (model.sleepers.length === 0 || client.over !== undefined) return undefined;
    const { namespace } = call.principal;
    const now = (): Model | undefined => this.#deps.catalog().find(namespace, model.name);
    // A pod that ends may be faster than the news of it.
    if ((now()?.readyCount ?? 0) > 0) await this.#deps.clock.sleep(NEWS_MS);
    const current = now();
    if (current === undefined || current.readyCount > 0) return undefined;
    const isSame = current.sleepers.some(({ server }) => model.sleepers.some((one) => one.server.uid === server.uid));
    return isSame ? this.ready(call, current, client) : undefined;
  }

  /** There is a new catalogue. */
  changed(): void {
    this.#room.admit(({ tenant, name, uid }) => {
      const model = this.#deps.catalog().find(tenant, name);
      return model !== undefined && this.#isServedBy(model, uid) ? model : undefined;
    });
    this.#measure();
  }

  #again(): void {
    this.#cancel = this.#deps.clock.setTimeout(() => {
      this.#tick();
      this.#again();
    }, TICK_MS);
  }

  #tick(): void {
    const { leases, states, catalog } = this.#deps;
    const waited = this.#room.uids;
    const since = this.#lastTick;
    this.#lastTick = this.#deps.clock.monotonic();
    this.#problems.clear();
    const problems = new Map<string, { server: ServerSpec; problem: StartProblem }>();
    const used = [...this.#deps.endpoints()].filter(({ inFlight, heardAt }) => inFlight > 0 || heardAt > since);
    const workloads = new Set(used.map(({ workload }) => workload));
    for (const { server } of states()) {
      if (server.scale === undefined) continue;
      const { uid } = server;
      if (waited.has(uid)) {
        leases.wake(uid);
        const problem = this.#problem(server);
        if (problem?.isFinal) problems.set(uid, { server, problem });
      } else if (workloads.has(workloadOf(server))) leases.keepAwake(uid);
    }
    this.#room.dismiss(({ tenant, name, uid }) => {
      const broken = problems.get(uid);
      if (broken !== undefined) return cannotStart(name, broken.problem, broken.server, tenant);
      const isThere = catalog()
        .find(tenant, name)
        ?.sleepers.some(({ server }) => server.uid === uid);
      return isThere === true ? undefined : noLongerThere(name);
    });
  }

  /** Whether the server of this Service is ready, and has the name. */
  #isServedBy({ members }: Model, uid: string): boolean {
    const own = this.#deps.states().find(({ server }) => server.uid === uid)?.endpoints ?? [];
    return members.some(({ endpoint }) => endpoint.available && own.some(({ origin }) => origin === endpoint.origin));
  }

  /** The server to start: the first that nothing is known to keep from it. */
  #choose(sleepers: readonly Sleeper[]): Sleeper | undefined {
    return sleepers.find(({ server }) => this.#problem(server)?.isFinal !== true) ?? sleepers[0];
  }

  #ask(uid: string): void {
    const { leases, clock } = this.#deps;
    if (leases.isAsleep(uid) && !this.#askedAt.has(uid)) this.#askedAt.set(uid, clock.monotonic());
    leases.wake(uid);
  }

  #measure(): void {
    if (this.#askedAt.size === 0) return;
    const now = this.#deps.clock.monotonic();
    for (const { server, endpoints } of this.#deps.states()) {
      const askedAt = this.#askedAt.get(server.uid);
      if (askedAt === undefined || !endpoints.some(({ available, probe }) => available && probe !== undefined))
        continue;
      this.#deps.leases.noteStart(server.uid, (now - askedAt) / 1000);
      this.#askedAt.delete(server.uid);
    }
    for (const [uid, askedAt] of this.#askedAt) if (now - askedAt > START_MAX_MS) this.#askedAt.delete(uid);
  }

  #problem(server: ServerSpec): StartProblem | undefined {
    if (!this.#problems.has(server.uid)) this.#problems.set(server.uid, this.#findProblem(server));
    return this.#problems.get(server.uid);
  }

  #findProblem({ uid, namespace, name }: ServerSpec): StartProblem | undefined {
    const { leases, services, pods } = this.#deps;
    const reported = leases.problem(uid);
    if (reported !== undefined) return { words: 'Its workload cannot be scaled.', detail: reported, isFinal: true };
    const selector = services.get(`${namespace}/${name}`)?.spec?.selector;
    return startProblem(selectedPods(pods.values(), namespace, selector));
  }

  #tookTooLong(name: string, { server, scale }: Sleeper, tenant: string): StartError {
    const problem = this.#problem(server);
    const why = problem === undefined ? 'It is still starting.' : inWords(problem, server, tenant);
    const message = `The model '${name}' was at zero replicas, and none was ready after ${scale.waitSeconds} s. ${why}`;
    return new StartError(`${message} Try again later.`, TIMEOUT_RETRY_MS);
  }
}

/** Names of images, nodes and workloads are for those to whom the server belongs. */
function inWords({ words, detail }: StartProblem, { namespace }: ServerSpec, tenant: string): string {
  return namespace === tenant ? `${words} ${detail}` : `${words} Tell the operator of the cluster.`;
}

function cannotStart(name: string, problem: StartProblem, server: ServerSpec, tenant: string): StartError {
  const why = inWords(problem, server, tenant);
  return new StartError(`The model '${name}' is at zero replicas and cannot start. ${why}`, BROKEN_RETRY_MS);
}

function noLongerThere(name: string): StartError {
  return new StartError(`The model '${name}' is no longer served. Ask for the list of models.`, TIMEOUT_RETRY_MS);
}

function stopping(): StartError {
  return new StartError('This replica of the gateway stops. Try again: another replica answers.', STOPPING_RETRY_MS);
}

/** Why a server does not become ready. */
interface StartProblem {
  /** For every caller: names no image, registry or node. */
  words: string;
  /** What Kubernetes says, for callers of the server's own namespace. */
  detail: string;
  /** Only a person can mend it, so nobody waits for it. */
  isFinal: boolean;
}

const CONTAINER_WORDS: Readonly<Record<string, string>> = {
  ImagePullBackOff: 'The image of its server cannot be pulled.',
  InvalidImageName: 'The image of its server cannot be pulled.',
  ErrImageNeverPull: 'The image of its server is not on the node.',
  CreateContainerConfigError: 'The container of its server cannot be created.',
  CrashLoopBackOff: 'Its server ends again and again while it starts.',
};
const OF_IMAGES = new Set(['ImagePullBackOff', 'InvalidImageName', 'ErrImageNeverPull']);
const DETAIL_MAX = 300;

/** Why none of these pods is ready: the first thing that Kubernetes says about one. `undefined`: nothing is wrong yet. */
function startProblem(pods: Iterable<Pod>): StartProblem | undefined {
  let waits: StartProblem | undefined;
  for (const pod of pods) {
    if (pod.metadata.deletionTimestamp !== undefined) continue;
    const broken = brokenContainer(pod);
    if (broken !== undefined) return broken;
    waits ??= withoutNode(pod);
  }
  return waits;
}

function brokenContainer({ metadata, status }: Pod): StartProblem | undefined {
  const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  for (const { name, image, state } of statuses) {
    const { reason = '', message = '' } = state?.waiting ?? {};
    const words = CONTAINER_WORDS[reason];
    if (words === undefined) continue;
    const said = OF_IMAGES.has(reason) ? pullProblem(image, { reason, message }) : message;
    const detail = `Container '${name}' of pod '${metadata.name}': ${reason}: ${said}`;
    return { words, detail: detail.slice(0, DETAIL_MAX), isFinal: true };
  }
  return undefined;
}

/** A node may come or become free, so calls go on waiting. */
function withoutNode({ metadata, status }: Pod): StartProblem | undefined {
  const scheduled = status?.conditions?.find(({ type }) => type === 'PodScheduled');
  if (scheduled?.status !== 'False') return undefined;
  const detail = `Pod '${metadata.name}': ${scheduled.message ?? scheduled.reason ?? ''}`;
  return { words: 'No node has room for its server.', detail: detail.slice(0, DETAIL_MAX), isFinal: false };
}

/** The pods that a Service selects. A Service without a selector selects none. */
function* selectedPods(
  pods: Iterable<Pod>,
  namespace: string,
  selector: Readonly<Record<string, string>> | undefined,
): Generator<Pod> {
  const wanted = Object.entries(selector ?? {});
  if (wanted.length === 0) return;
  for (const pod of pods) {
    const { labels } = pod.metadata;
    if (pod.metadata.namespace === namespace && wanted.every(([key, value]) => labels?.[key] === value)) yield pod;
  }
}
