import type { Duplex } from 'node:stream';
import type { Logger } from 'pino';
import { BlockedPods } from '../direct/blocked-pods.ts';
import type { Dial } from '../direct/dial.ts';
import type { DirectLink } from '../direct/direct-link.ts';
import { type Carrier, DirectWayClosedError, openDirect } from '../direct/open-direct.ts';
import { forwardPort } from '../kube/streams/port-forward.ts';
import type { StreamEndpoint } from '../kube/streams/websocket.ts';
import type { Clock } from '../lib/clock.ts';
import type { ByteTurns } from '../lib/byte-turns.ts';
import { FairBytes, FairShares } from '../lib/shares.ts';
import { DIRECT_PORT } from '../resources/pod/tools-volume.ts';
import type { PortTarget } from './target.ts';
import { socketOf } from './link-socket.ts';

/** Links of a replica. */
const MOST_LINKS = 1024;
/** A tenant may have as many as are left for others: half of all when it is alone. */
const FACTOR = 1;
/** Milliseconds that a link without connections waits for the next one. */
const IDLE_MS = 60_000;
/** Bytes of windows beyond the first ones. */
const WIDE_BYTES = 64 * 1024 * 1024;

export interface PodLinksDeps {
  endpoint: StreamEndpoint;
  /** Connects to the helpers. */
  dial: Dial;
  turns: ByteTurns;
  clock: Clock;
  log: Logger;
}

type ReachedTarget = PortTarget & { address: string };

interface KnownLink {
  opening: Promise<DirectLink | undefined>;
  /** Connections that are open. */
  count: number;
  /** Ends the wait for the next connection. */
  leave: () => void;
}

/** Reaches the helper that waits on the loopback of the pod. Rejects with `StreamRefusedError`. */
async function reachHelper(
  endpoint: StreamEndpoint,
  { namespace, pod }: PortTarget,
  signal: AbortSignal,
): Promise<Carrier> {
  const stream = await forwardPort(endpoint, { namespace, pod, port: DIRECT_PORT }, signal);
  return {
    input: stream,
    output: stream,
    whyEnded: () => Promise.resolve(new DirectWayClosedError('No helper listens in the instance.')),
    close: () => void stream.destroy(),
  };
}

/** The direct way to ports: one link to each pod, for all connections to it. Users of other tenants reach other pods. */
export class PodLinks {
  readonly #deps: PodLinksDeps;
  readonly #blocked: BlockedPods;
  readonly #places = new FairShares(MOST_LINKS, FACTOR);
  readonly #wideWindows = new FairBytes(WIDE_BYTES);
  /** By the uid of the pod. */
  readonly #links = new Map<string, KnownLink>();
  readonly #closing = new AbortController();

  constructor(deps: PodLinksDeps) {
    this.#deps = deps;
    this.#blocked = new BlockedPods(deps.clock);
  }

  /**
   * A connection to the port, which may turn out to be refused. Undefined where port-forward must carry it: without tools
   * or an address, and while the direct way to this pod is known to be closed.
   */
  async connect(target: PortTarget): Promise<Duplex | undefined> {
    const { address, namespace, podUid } = target;
    if (address === undefined || this.#closing.signal.aborted || this.#blocked.has(podUid)) return undefined;
    const known = this.#links.get(podUid) ?? this.#begin({ ...target, address });
    const link = await known?.opening;
    if (known === undefined || link?.isOpen !== true) return undefined;
    known.leave();
    known.count += 1;
    const socket = socketOf(link.open({ port: target.port }), this.#deps.turns.of(namespace));
    socket.once('close', () => {
      known.count -= 1;
      if (known.count === 0) known.leave = this.#deps.clock.setTimeout(() => link.close(), IDLE_MS);
    });
    return socket;
  }

  close(): void {
    this.#closing.abort();
  }

  /** Undefined when the tenant has as many links as it may have. */
  #begin(target: ReachedTarget): KnownLink | undefined {
    const { namespace, podUid } = target;
    if (this.#places.take(namespace, 1) !== 'taken') return undefined;
    const known: KnownLink = { opening: this.#open(target), count: 0, leave: () => undefined };
    this.#links.set(podUid, known);
    const forget = (): void => {
      known.leave();
      this.#links.delete(podUid);
      this.#places.give(namespace, 1);
    };
    void known.opening.then((link) => (link === undefined ? forget() : link.closed.then(forget)));
    return known;
  }

  async #open(target: ReachedTarget): Promise<DirectLink | undefined> {
    const { signal } = this.#closing;
    const [portion, turn] = [this.#wideWindows.of(target.namespace), this.#deps.turns.of(target.namespace)];
    const deps = { ...this.#deps, blocked: this.#blocked, portion, turn };
    const reach = (): Promise<Carrier> => reachHelper(this.#deps.endpoint, target, signal);
    // Where the API server does not answer, port-forward says so.
    return await openDirect(deps, reach, { ...target, uid: target.podUid }, signal).catch(() => undefined);
  }
}
