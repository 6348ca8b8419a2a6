import type { ClientRequest, OutgoingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { AccessWatch } from '../access/access-watch.ts';
import type { PrincipalRef } from '../access/principal.ts';
import { Lru } from '../lib/lru.ts';
import { http } from '../lib/lean-http.ts';
import type { Clock } from '../lib/clock.ts';
import { JUPYTER_TOKEN_PORT } from '../resources/pod/jupyter.ts';
import { PortError } from './errors.ts';
import { PORT_USE } from './open-streams.ts';
import type { PortTarget } from './target.ts';

export interface PodRequest {
  method: string;
  /** Path and query. */
  path: string;
  headers: OutgoingHttpHeaders;
}

/** A request under way. */
export interface Begun {
  request: ClientRequest;
  stream: Duplex;
  /** It went out on a connection that had waited, which the pod may have closed just then. */
  isReused: boolean;
}

/** Opens a connection to a port on the loopback of a pod. */
export type Connect = (target: PortTarget, signal: AbortSignal) => Promise<Duplex>;

export interface UpstreamDeps {
  connect: Connect;
  access: Pick<AccessWatch, 'open'>;
  clock: Pick<Clock, 'setTimeout'>;
}

/** Requests that may be sent again, and that have no body to be sent again. */
const SAFE = new Set(['GET', 'HEAD', 'OPTIONS']);

const MAX_TOKEN = 4096;
const TOKEN_TIMEOUT_MS = 5_000;
const KNOWN_TOKENS = 10_000;
/** Milliseconds that a connection waits for another request. Few servers close one sooner: Node's and uvicorn's after 5 s. */
const IDLE_MS = 4_000;
/** Connections of one user to one port: what a browser opens. */
const MOST_IDLE_EACH = 6;
const MOST_IDLE = 512;

/** The error of a port that does not answer. A refused port says so on the stream, not in `error`. */
export function unreachable(port: number, error: unknown, stream?: Duplex): PortError {
  const cause = stream?.errored ?? error;
  const reason = cause instanceof Error ? cause.message : 'unknown';
  const message = `Port ${port} of the instance does not answer: ${reason.slice(0, 300)}`;
  return new PortError('port_unreachable', message, { cause });
}

function mayReuse({ method, headers }: PodRequest): boolean {
  const hasBody = headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
  return SAFE.has(method) && !hasBody && headers['upgrade'] === undefined;
}

interface Idle {
  stream: Duplex;
  /** Ends the wait. */
  leave: () => void;
}

/**
 * Connections to ports of pods that have answered a request and could answer another one of the same user. Nobody else
 * gets them: what a user leaves behind on a connection concerns that user alone.
 */
class IdleForwards {
  readonly #deps: Pick<UpstreamDeps, 'access' | 'clock'>;
  readonly #idle = new Map<string, Idle[]>();
  #count = 0;

  constructor(deps: Pick<UpstreamDeps, 'access' | 'clock'>) {
    this.#deps = deps;
  }

  /** The connection that was used last; undefined when none waits. */
  take(place: string): Duplex | undefined {
    const idle = this.#idle.get(place)?.at(-1);
    idle?.leave();
    return idle?.stream;
  }

  /** Keeps a connection for the next request, or ends it where too many wait. One that says anything meanwhile is ended. */
  keep(place: string, user: PrincipalRef, stream: Duplex): void {
    const here = this.#idle.get(place) ?? [];
    if (stream.destroyed || here.length >= MOST_IDLE_EACH || this.#count >= MOST_IDLE) {
      stream.destroy();
      return;
    }
    const end = (): void => {
      idle.leave();
      stream.destroy();
    };
    const access = this.#deps.access.open(user, PORT_USE);
    const cancel = this.#deps.clock.setTimeout(end, IDLE_MS);
    const leave = (): void => {
      cancel();
      access.close();
      for (const event of ['data', 'end', 'close'] as const) stream.off(event, end);
      this.#remove(place, idle);
    };
    const idle: Idle = { stream, leave };
    this.#idle.set(place, [...here, idle]);
    this.#count += 1;
    for (const event of ['data', 'end', 'close'] as const) stream.once(event, end);
    stream.resume();
    if (access.signal.aborted) end();
    else access.signal.addEventListener('abort', end);
  }

  close(): void {
    for (const { stream } of [...this.#idle.values()].flat()) stream.destroy();
  }

  #remove(place: string, idle: Idle): void {
    const left = (this.#idle.get(place) ?? []).filter((one) => one !== idle);
    if (left.length === (this.#idle.get(place)?.length ?? 0)) return;
    this.#count -= 1;
    if (left.length > 0) this.#idle.set(place, left);
    else this.#idle.delete(place);
  }
}

/**
 * Sends requests to pods. Each new connection costs more than a request, and through the API server a handshake with it and
 * the kubelet: so one that has answered a request without side effects waits for the next one of its user.
 */
export class Upstream {
  readonly #connect: Connect;
  readonly #idle: IdleForwards;
  /** Jupyter's tokens by the uid of the pod. A token lives as long as its pod. */
  readonly #tokens = new Lru<string, string>(KNOWN_TOKENS);

  constructor({ connect, ...deps }: UpstreamDeps) {
    this.#connect = connect;
    this.#idle = new IdleForwards(deps);
  }

  /**
   * Begins a request on a connection that no other request has, and that ends with the signal unless it can be used
   * again. `fresh`: on a new one. Rejects with {@link PortError}.
   */
  async begin(
    target: PortTarget,
    asked: PodRequest,
    { user, signal, fresh = false }: { user: PrincipalRef; signal: AbortSignal; fresh?: boolean },
  ): Promise<Begun> {
    const token = target.jupyter ? await this.#jupyterToken(target) : undefined;
    const isKept = mayReuse(asked);
    const place = [user.keyId, target.podUid, target.port].join('/');
    const waiting = isKept && !fresh ? this.#idle.take(place) : undefined;
    const stream =
      waiting ??
      (await this.#connect(target, signal).catch((error: unknown) => {
        throw unreachable(target.port, error);
      }));
    const cut = (): void => void stream.destroy();
    if (signal.aborted) cut();
    signal.addEventListener('abort', cut, { once: true });
    const done = (): void => {
      signal.removeEventListener('abort', cut);
      stream.off('close', done).off('free', free);
    };
    // Node says so of a connection on which both sides agree that another request may follow.
    const free = (): void => {
      done();
      this.#idle.keep(place, user, stream);
    };
    stream.once('close', done).once('free', free);
    const { method, path } = asked;
    const headers = {
      ...asked.headers,
      ...(isKept && { connection: 'keep-alive' }),
      ...(token !== undefined && { authorization: `token ${token}` }),
    };
    const request = http.request({ createConnection: () => stream, method, path, headers, setHost: false });
    // Who waits for the answer hears of an error, and nobody else needs to.
    request.on('error', () => undefined);
    return { request, stream, isReused: waiting !== undefined };
  }

  close(): void {
    this.#idle.close();
  }

  /** Jupyter's token, which the instance serves on its loopback; undefined while there is none. */
  async #jupyterToken(target: PortTarget): Promise<string | undefined> {
    const known = this.#tokens.get(target.podUid);
    if (known !== undefined) return known;
    const signal = AbortSignal.timeout(TOKEN_TIMEOUT_MS);
    try {
      const stream = await this.#connect({ ...target, port: JUPYTER_TOKEN_PORT }, signal);
      signal.addEventListener('abort', () => stream.destroy());
      let length = 0;
      stream.on('data', (chunk: Buffer) => {
        length += chunk.length;
        if (length > MAX_TOKEN) stream.destroy();
      });
      stream.write('GET /token HTTP/1.0\r\n\r\n');
      const [, token] = /^HTTP\/1\.\d 200 [^]*?\r\n\r\n([!-~]+)\s*$/.exec(await text(stream)) ?? [];
      if (token === undefined) return undefined;
      this.#tokens.set(target.podUid, token);
      return token;
    } catch {
      return undefined;
    }
  }
}
