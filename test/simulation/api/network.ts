import type { KubeConnection } from '../../../src/kube/config/connection.ts';
import { type KubeObject, type Lease, LEASES } from '../../../src/kube/types.ts';
import { CONTROLLER_LEASE } from '../../../src/runtime/lease-record.ts';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { OWN } from '../own.ts';
import type { Chance } from '../clock/chance.ts';
import type { ProcessClock } from '../clock/process-clock.ts';
import type { VirtualTime } from '../clock/virtual-time.ts';
import { expired, Failure } from './failure.ts';
import { carryOut, type Request, targetOf } from './request.ts';
import type { ApiServer } from './server.ts';
import { AnswerChunk, Line, Lines } from './lines.ts';
import { selects } from './selectors.ts';
import type { Change, Collection } from './store.ts';
import { type Chunk, WatchStream } from './watch-stream.ts';

type Range = readonly [least: number, most: number];

/** How the way from one process to the API server is. Probabilities are for each call. */
export interface Weather {
  latencyMs: Range;
  watchLagMs: Range;
  /** 429 with Retry-After. */
  refused: number;
  /** 500, and nothing was done. */
  failed: number;
  /** It was done, and the connection breaks before the answer. */
  lost: number;
  /** It arrives seconds later. */
  slow: number;
  /** Nothing takes the connection. */
  isAway: boolean;
}

export const FAIR: Weather = {
  latencyMs: [2, 12],
  watchLagMs: [1, 25],
  refused: 0,
  failed: 0,
  lost: 0,
  slow: 0,
  isAway: false,
};

interface Call {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string | null;
  signal: AbortSignal;
}

interface Response {
  statusCode: number;
  headers: Record<string, string>;
  body: AsyncIterable<Chunk>;
}

/** Which write something happens at. */
interface Moment {
  /** How many of those that are meant come before it. */
  skips?: number | undefined;
  /** Only grants of a place to the instance of this name are meant; undefined: all writes. */
  grantTo?: string | undefined;
}

/** What becomes of one write, besides what the weather does. */
interface Fate {
  /** Milliseconds that it is on its way longer. */
  heldMs?: number;
  /** It is done, and the connection breaks before the answer. */
  isLost?: boolean;
}

const BOOKMARK_MS = 60_000;
/** So long Berth waits for its caches to show what it wrote, and less. */
const SHOWN_MS = 25_000;
/** Writes of one object that are refused one after the other: what was on the way is no reason any more. */
const MANY_REFUSED = 3;

function broken(code: string): Error {
  return Object.assign(new Error(code), { code });
}

/** The first write that says when a place was granted is the one that grants it, after a dry run of it. */
function isMeant({ grantTo }: Moment, { path, body }: Call): boolean {
  if (grantTo === undefined) return true;
  const isOf = path.includes(`/${grantTo}/`) || body?.includes(`"${grantTo}"`) === true;
  return isOf && !path.includes('dryRun') && body?.includes('grantedAt') === true;
}

/** The body of an answer that is there at once. */
function bodyOf(answer: Line | string): AsyncIterable<Chunk> {
  let left: Chunk | undefined = answer instanceof Line ? new AnswerChunk(answer) : Buffer.from(answer);
  const next = (): Promise<IteratorResult<Chunk>> => {
    const value = left;
    left = undefined;
    return Promise.resolve(value === undefined ? { value, done: true } : { value, done: false });
  };
  return { [Symbol.asyncIterator]: () => ({ next }) };
}

function bookmark(collection: Collection, version: number, isInitial: boolean): Line {
  const { type } = collection.kind;
  const annotations = isInitial ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {};
  const object = { kind: type.kind, metadata: { resourceVersion: String(version), ...annotations } };
  return new Line({ type: 'BOOKMARK', object });
}

type Selects = (object: KubeObject) => boolean;

/** What a watch with a selector is told of a change; undefined: nothing. An object that it selects no more is gone for it. */
function selectedLine({ before, after, line }: Change, selects: Selects): Line | undefined {
  const [was, is] = [before, after].map((one) => one !== undefined && selects(one));
  if (!was && !is) return undefined;
  if (was === is || after === undefined) return line;
  return Line.of(is ? 'ADDED' : 'DELETED', after);
}

/** One watch that is open. Lines come in order, each batch some time after the first of them. */
class Watch {
  readonly stream = new WatchStream();
  readonly #link: Link;
  readonly #collection: Collection;
  readonly #selects: Selects | undefined;
  readonly #listener = (change: Change): void => {
    const line = this.#selects === undefined ? change.line : selectedLine(change, this.#selects);
    if (line !== undefined) this.#add(line);
  };
  #lines: Line[] = [];
  #isOnTheWay = false;
  #cancel: () => void = () => undefined;

  constructor(
    link: Link,
    collection: Collection,
    { first, selects }: { first: readonly Line[]; selects?: Selects | undefined },
  ) {
    this.#selects = selects;
    this.#link = link;
    this.#collection = collection;
    collection.listeners.add(this.#listener);
    this.stream.once('close', () => this.leave());
    for (const line of first) this.#add(line);
  }

  bookmark(version: number): void {
    this.#add(bookmark(this.#collection, version, false));
  }

  /** A broken connection: what was on the way is lost. */
  cut(): void {
    this.leave();
    this.stream.destroy(broken('ECONNRESET'));
  }

  end(): void {
    this.leave();
    this.stream.end();
  }

  expire(): void {
    this.leave();
    this.stream.push(new Lines([new Line({ type: 'ERROR', object: expired().body })]));
    this.stream.end();
  }

  #add(line: Line): void {
    this.#lines.push(line);
    if (this.#isOnTheWay) return;
    this.#isOnTheWay = true;
    this.#cancel = this.#link.clock.arrive(() => this.#flush(), this.#link.watchLag());
  }

  /** What is on the way arrives now. */
  hurry(): void {
    if (this.#isOnTheWay) this.#flush();
  }

  #flush(): void {
    this.#cancel();
    this.#isOnTheWay = false;
    const lines = this.#lines;
    this.#lines = [];
    this.stream.push(new Lines(lines));
  }

  leave(): void {
    this.#collection.listeners.delete(this.#listener);
    this.#link.watches.delete(this);
  }
}

export interface LinkDeps {
  api: ApiServer;
  time: VirtualTime;
  chance: Chance;
  clock: ProcessClock;
  /** Hears of a write that is sent while another replica has the lease of the controllers, or without a look at its own. */
  onStray: (what: string) => void;
}

/** The way of one process to the API server: a connection, as the client of src/kube takes it. */
export class Link {
  readonly clock: ProcessClock;
  readonly watches = new Set<Watch>();
  weather: Weather = FAIR;
  /** Calls that were carried out. */
  calls = 0;
  /** When its process last renewed the lease of the controllers; -1: never. */
  ledAt = -1;
  readonly #api: ApiServer;
  readonly #time: VirtualTime;
  readonly #chance: Chance;
  readonly #onStray: LinkDeps['onStray'];
  /** Who this process is in the lease of the controllers; undefined before it had that. */
  #identity: string | undefined;
  #isMarking = false;
  /** What it wrote to instances last, and how often it was refused since, by uid. */
  readonly #wrote = new Map<string, { version: string; at: number; refused: number }>();
  /** What happens right before a write is sent, and at which. */
  #before: { moment: Moment; call: () => Fate } | undefined;
  /** Nothing comes by its watches until then. */
  #stalledUntil = 0;

  constructor({ api, time, chance, clock, onStray }: LinkDeps) {
    this.clock = clock;
    this.#onStray = onStray;
    this.#api = api;
    this.#time = time;
    this.#chance = chance;
  }

  get connection(): KubeConnection {
    const pool = { request: (call: Call) => this.#request(call) };
    return {
      server: 'http://api',
      namespace: 'berth-system',
      tls: { rejectUnauthorized: false },
      headers: () => Promise.resolve({}),
      calls: pool,
      streams: pool,
      close: () => Promise.resolve(),
    } as unknown as KubeConnection;
  }

  watchLag(): number {
    return Math.max(this.#stalledUntil - this.#time.elapsed, this.#chance.between(...this.weather.watchLagMs));
  }

  /** Its watches are of an API server that hears of nothing for so long. What that has said is there. */
  stall(ms: number): void {
    for (const watch of this.watches) watch.hurry();
    this.#stalledUntil = this.#time.elapsed + ms;
  }

  /** Calls once, right before a write of anything but a lease is sent. */
  beforeWrite(moment: Moment, call: () => Fate): void {
    this.#before = { moment, call };
  }

  #fateOfWrite(write: Call): Fate {
    const before = this.#before;
    if (before === undefined || !isMeant(before.moment, write)) return {};
    const { skips = 0 } = before.moment;
    if (skips > 0) {
      before.moment = { ...before.moment, skips: skips - 1 };
      return {};
    }
    this.#before = undefined;
    return before.call();
  }

  /** All watches break, end in good order, or are told that their version is too old. */
  endWatches(how: 'cut' | 'end' | 'expire'): void {
    for (const watch of this.watches) watch[how]();
  }

  /** Its process is gone: nothing comes to it any more. */
  sever(): void {
    for (const watch of this.watches) watch.leave();
  }

  #request(call: Call): Promise<Response> {
    const chance = this.#chance;
    const { weather } = this;
    return new Promise((resolve, reject) => {
      if (call.signal.aborted) {
        reject(call.signal.reason as Error);
        return;
      }
      const isLease = call.path.includes('/leases/');
      const { heldMs = 0, isLost: isCut = false } = call.method === 'GET' || isLease ? {} : this.#fateOfWrite(call);
      if (call.method !== 'GET' && !isLease) this.#mustHold(call);
      const onAbort = (): void => reject(call.signal.reason as Error);
      call.signal.addEventListener('abort', onAbort, { once: true });
      const answer = (finish: () => void, ms: number): void => {
        this.clock.arrive(() => {
          call.signal.removeEventListener('abort', onAbort);
          finish();
        }, ms);
      };
      if (weather.isAway) {
        answer(() => reject(broken('ECONNREFUSED')), 1);
        return;
      }
      const oneWay = chance.between(...weather.latencyMs) / 2;
      const delay = weather.slow > 0 && chance.is(weather.slow) ? chance.between(1_000, 8_000) : oneWay;
      // What was sent arrives, whatever becomes of its sender. A call that was cut off may be read or not.
      this.#time.afterPlain(delay + heldMs, () => {
        if (call.signal.aborted && chance.is(0.5)) return;
        const sent = this.#carryOut(call);
        sent.headers['date'] = new Date(this.#time.wall).toUTCString();
        const isLost = isCut || (weather.lost > 0 && chance.is(weather.lost));
        if (call.method === 'PATCH') this.#mustKnow(call, sent.statusCode, isLost);
        if (isLost && !(sent.body instanceof WatchStream)) answer(() => reject(broken('ECONNRESET')), oneWay);
        else answer(() => resolve(sent), oneWay);
      });
    });
  }

  #carryOut({ method, path, headers, body, signal }: Call): Response {
    const { weather } = this;
    const chance = this.#chance;
    if (weather.refused > 0 && chance.is(weather.refused)) {
      const { body: text } = new Failure(
        429,
        'TooManyRequests',
        'the server has received too many requests and has asked us to try again later',
        { retryAfterSeconds: 1 },
      );
      return { statusCode: 429, headers: { 'retry-after': '1' }, body: bodyOf(JSON.stringify(text)) };
    }
    if (weather.failed > 0 && chance.is(weather.failed)) {
      const { body: text } = new Failure(500, 'InternalError', 'Internal error occurred: etcdserver: leader changed');
      return { statusCode: 500, headers: {}, body: bodyOf(JSON.stringify(text)) };
    }
    this.calls += 1;
    if (method === 'GET' && path.includes('watch=true')) return this.#watch(path, signal);
    if (method === 'GET' && path.includes('/log?')) return { statusCode: 200, headers: {}, body: this.#log() };
    const request: Request = { method, path, headers, body };
    const { status, body: text } = carryOut(this.#api, request);
    if (method === 'PUT' && status === 200 && path.endsWith(`/${CONTROLLER_LEASE}`)) {
      this.ledAt = this.#time.elapsed;
      this.#identity = this.#holder || this.#identity;
    }
    return { statusCode: status, headers: {}, body: bodyOf(text) };
  }

  get #holder(): string {
    return this.#api.find<Lease>(LEASES, { namespace: OWN, name: CONTROLLER_LEASE })?.spec?.holderIdentity ?? '';
  }

  /** A replica that lost the lease writes nothing. Its Events say what it did, so they may follow. */
  #mustHold({ method, path }: Call): void {
    const [identity, holder] = [this.#identity, this.#holder];
    const isHeld = identity === undefined || holder === '' || holder === identity;
    if (!isHeld && !path.includes('/events')) this.#onStray(`a replica that lost the lease sends ${method} ${path}`);
  }

  /** No replica is refused again and again because of what it wrote itself, and has an answer to. */
  #mustKnow({ path, body }: Call, status: number, isLost: boolean): void {
    const [pathname = ''] = path.split('?');
    const { type, namespace, name = '' } = targetOf(pathname);
    if (type.plural !== GPU_INSTANCES.plural) return;
    const { uid = '', resourceVersion: version = '' } =
      this.#api.find(GPU_INSTANCES, { namespace, name })?.metadata ?? {};
    const known = this.#wrote.get(uid);
    // Who gives way is told by another, and looks at its own instance only when it hears of that.
    const isOfAnother = body?.includes('"Preempted"') === true;
    if (status === 200) {
      if (isLost || isOfAnother) this.#wrote.delete(uid);
      else this.#wrote.set(uid, { version, at: this.#time.elapsed, refused: 0 });
      return;
    }
    if (isOfAnother) return;
    if (status !== 422 || known?.version !== version || this.#time.elapsed > known.at + SHOWN_MS) return;
    known.refused += 1;
    if (known.refused === MANY_REFUSED)
      this.#onStray(`a replica writes to ${namespace}/${name} as if it did not know what it wrote there itself`);
  }

  #log(): WatchStream {
    const stream = new WatchStream();
    stream.push(Buffer.from(`${new Date(this.#time.wall).toISOString().slice(0, 19)}.000000000Z a line\n`));
    stream.end();
    return stream;
  }

  #watch(path: string, signal: AbortSignal): Response {
    const { pathname, searchParams } = new URL(path, 'http://api');
    const collection = this.#api.collection(targetOf(pathname).type);
    if (searchParams.has('fieldSelector')) throw new Error('The model has no watches with selectors of fields.');
    const labels = searchParams.get('labelSelector');
    const isSelected = labels === null ? undefined : selects(labels);
    const from = Number(searchParams.get('resourceVersion') ?? 0);
    const isList = searchParams.get('sendInitialEvents') === 'true';
    const missed = isList ? undefined : collection.since(from);
    const first = isList
      ? [
          ...[...collection.objects.values()]
            .filter((one) => isSelected?.(one) ?? true)
            .map((one) => Line.of('ADDED', one)),
          bookmark(collection, this.#api.version, true),
        ]
      : (missed ?? []).flatMap((change) => (isSelected ? selectedLine(change, isSelected) : change.line) ?? []);
    const watch = new Watch(this, collection, { first, selects: isSelected });
    this.watches.add(watch);
    if (!this.#isMarking) this.clock.setTimeout(() => this.#mark(), BOOKMARK_MS);
    this.#isMarking = true;
    if (!isList && missed === undefined) watch.expire();
    signal.addEventListener('abort', () => watch.stream.destroy(signal.reason as Error), { once: true });
    const endMs = Number(searchParams.get('timeoutSeconds') ?? 300) * 1000;
    const cancel = this.clock.arrive(() => watch.end(), endMs);
    watch.stream.once('close', cancel);
    return { statusCode: 200, headers: {}, body: watch.stream };
  }

  #mark(): void {
    for (const watch of this.watches) watch.bookmark(this.#api.version);
    this.clock.setTimeout(() => this.#mark(), BOOKMARK_MS);
  }
}
