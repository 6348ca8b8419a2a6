import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Logger } from 'pino';
import type { AccessWatch } from '../access/access-watch.ts';
import type { Activity } from '../access/activity.ts';
import type { Caller } from '../access/authenticator.ts';
import type { AskDashboard, Principal, PrincipalRef } from '../access/principal.ts';
import { dialTls } from '../direct/dial.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import { keyOf, type Pod } from '../kube/types.ts';
import { forwardPort } from '../kube/streams/port-forward.ts';
import type { StreamEndpoint } from '../kube/streams/websocket.ts';
import { ByteTurns } from '../lib/byte-turns.ts';
import type { Clock } from '../lib/clock.ts';
import type { GpuInstance } from '../resources/instances/gpu-instance.ts';
import { signingKey } from './access-token.ts';
import { originOf, portHostOf, type PortHost } from './address.ts';
import { PortError, STATUS_OF } from './errors.ts';
import { PodLinks } from './pod-links.ts';
import { forwardHttp, forwardUpgrade, type ForwardDeps, type PortRequest } from './forward.ts';
import type { Sender } from './headers.ts';
import {
  answer,
  enter,
  ENTER_PATH,
  isCrossOrigin,
  send,
  SIGN_IN,
  TICKET_MS,
  ticketQuery,
  visitByCookie,
} from './host-pages.ts';
import type { Answer, SignInDeps, Visit } from './host-pages.ts';
import type { CountConnection } from './metrics.ts';
import { OpenStreams } from './open-streams.ts';
import { targetOf } from './target.ts';
import { type Connect, Upstream } from './upstream.ts';
import { Visitors } from './visitors.ts';

export interface PortsDeps {
  endpoint: StreamEndpoint;
  instances: ReadStore<GpuInstance>;
  pods: ReadStore<Pod>;
  /** Every port has a host of its own below this one. */
  base: URL;
  /** 32 bytes that all replicas share; read once, on first use. */
  sessionKey: () => Promise<Buffer>;
  /** Counts one more use of a ticket in the last minute, at all replicas when they share a store. Resolves with the count. */
  countUse: (ticketId: string) => Promise<number>;
  /** Whether the caller may still use ports. */
  isAuthorized: (user: Caller) => boolean;
  /** Undefined where there is no dashboard. */
  vouch: AskDashboard | undefined;
  /** Ends the streams of those who lose access. */
  access: Pick<AccessWatch, 'open'>;
  /** Counts one more request of the API key. Resolves with why its limits refuse it, or with undefined. */
  countCall: (user: PrincipalRef) => Promise<string | undefined>;
  activity: Pick<Activity, 'began'>;
  countConnection: CountConnection;
  clock: Clock;
  log: Logger;
}

const NO_ANSWER =
  'Berth cannot ask the dashboard whether you still have access, because it does not answer. Try again in some seconds.';

/** A request, with the socket when it asks to switch protocols. */
export interface Incoming {
  request: IncomingMessage;
  response: ServerResponse;
  upgrade: { socket: Duplex; head: Buffer } | undefined;
  sender: Sender;
  /** Called once the user may use the port: the connection is worth keeping then. Resolves when it is the tenant's turn. */
  accepted: (tenant: string) => Promise<void>;
  /** Called with what sends an answer of Berth's own, which a stranger waits for. May reject as long as nothing was sent. */
  answer: (send: () => void) => void | Promise<void>;
}

/** A call of the API to a port of an instance that the caller may use. */
export interface ApiCall {
  user: Pick<Principal, 'keyId' | 'namespace' | 'session'>;
  instance: GpuInstance;
  port: number;
  /** What stands before `path` in the URL of the call. */
  prefix: string;
  /** Path and query as the pod gets them. */
  path: string;
}

/** The ports of instances: for programs below a path of the API, and for browsers on a host for each port. */
export class InstancePorts {
  readonly #deps: PortsDeps;
  readonly #streams: OpenStreams;
  readonly #links: PodLinks;
  readonly #upstream: Upstream;
  readonly #forwarding: ForwardDeps;
  readonly #visitors: Visitors;

  constructor(deps: PortsDeps) {
    this.#deps = deps;
    const { access, endpoint, clock, activity, countConnection } = deps;
    this.#streams = new OpenStreams(access);
    this.#visitors = new Visitors(deps);
    const turns = new ByteTurns(clock);
    this.#links = new PodLinks({ ...deps, turns, dial: dialTls });
    const connect: Connect = async (target, signal) => {
      const direct = await this.#links.connect(target);
      countConnection(direct === undefined ? 'forward' : 'direct');
      return direct ?? (await forwardPort(endpoint, target, signal, turns.of(target.namespace)));
    };
    this.#upstream = new Upstream({ connect, access, clock });
    this.#forwarding = { upstream: this.#upstream, streams: this.#streams, activity };
  }

  /** Serves a call of the API. Rejects with `PortError` as long as nothing was answered. */
  async call(incoming: Incoming, { user, instance, port, prefix, path }: ApiCall): Promise<void> {
    const { request, sender } = incoming;
    const target = targetOf(instance, port, this.#deps.pods);
    await this.#forward(incoming, { request, target, user, path, routing: { kind: 'path', prefix, port }, sender });
  }

  /** A link that opens a port in a browser once, within a minute. Rejects with `PortError`. */
  async link({ user, instance, port, path }: ApiCall): Promise<{ url: string; expires: number }> {
    const { base, clock, pods } = this.#deps;
    targetOf(instance, port, pods);
    const { name, namespace = '', uid = '' } = instance.metadata;
    const expires = clock.now() + TICKET_MS;
    const about = { namespace, instance: name, uid, port, keyId: user.keyId, path, expires };
    const { key } = await this.#signIn();
    const query = ticketQuery({ ...about, kind: 'ticket', id: randomUUID() }, user.session, key);
    return { url: `${originOf({ port, uid }, base)}${ENTER_PATH}?${query.toString()}`, expires };
  }

  /** The port that the request's Host names. */
  hostOf(request: IncomingMessage): PortHost | undefined {
    return portHostOf(request.headers.host, this.#deps.base);
  }

  /** Serves a request to such a host. Rejects with what `answer` does. */
  async page(incoming: Incoming, host: PortHost): Promise<void> {
    const { response } = incoming;
    const given = await this.#visit(incoming, host).catch((error: unknown) => {
      if (error instanceof PortError) return answer(STATUS_OF[error.problem], error.message);
      this.#deps.log.error({ err: error }, 'Port was not served');
      return answer(500, 'Berth failed to serve this port. Try again.');
    });
    if (given === undefined) return;
    if (response.headersSent) response.destroy();
    else await incoming.answer(() => send(response, given));
  }

  close(): void {
    this.#streams.close();
    this.#upstream.close();
    this.#links.close();
  }

  /** Forwards the request to the pod, or returns what the browser gets in its place. */
  async #visit(incoming: Incoming, host: PortHost): Promise<Answer | undefined> {
    const { request, sender } = incoming;
    const { countCall, countUse, instances, pods } = this.#deps;
    const signIn = await this.#signIn();
    const path = request.url ?? '/';
    if (path.split('?', 1)[0] === ENTER_PATH) {
      const isAuthorized = async (visit: Visit): Promise<boolean> => (await this.#userOf(visit)) !== undefined;
      return await enter(request, host, { ...signIn, isAuthorized, isFirst: async (id) => (await countUse(id)) === 1 });
    }
    const visit = visitByCookie(request, host, signIn);
    const instance = visit && instances.get(keyOf({ namespace: visit.token.namespace, name: visit.token.instance }));
    const user = visit && instance?.metadata.uid === host.uid ? await this.#userOf(visit) : undefined;
    if (user === undefined || instance === undefined) return SIGN_IN;
    if (isCrossOrigin(request))
      return answer(403, 'A page of another site sent this request. Only pages of this host may.');
    await incoming.accepted(user.namespace);
    const refused = await countCall(user);
    if (refused !== undefined) return answer(429, refused);
    const target = targetOf(instance, host.port, pods);
    await this.#forward(incoming, { request, target, user, path, routing: { kind: 'host' }, sender });
    return undefined;
  }

  /** Undefined when the visitor may not use ports any more. Rejects with {@link PortError}. */
  async #userOf({ token, session }: Visit): Promise<Caller | undefined> {
    const user = await this.#visitors.callerOf(token, session).catch((error: unknown) => {
      throw new PortError('dashboard_unavailable', NO_ANSWER, { cause: error });
    });
    return this.#deps.isAuthorized(user) ? user : undefined;
  }

  async #signIn(): Promise<SignInDeps> {
    const { base, clock, sessionKey } = this.#deps;
    return { key: signingKey(await sessionKey()), now: clock.now(), isSecure: base.protocol === 'https:' };
  }

  async #forward({ response, upgrade }: Incoming, request: PortRequest): Promise<void> {
    if (upgrade === undefined) await forwardHttp(this.#forwarding, request, response);
    else await forwardUpgrade(this.#forwarding, request, { ...upgrade, response });
  }
}
