import type { Logger } from 'pino';
import type { KubeClient } from './client/client.ts';
import type { Clock } from '../lib/clock.ts';
import { rfc3339 } from './conditions.ts';
import { NotFoundError } from './errors.ts';
import { Lru } from '../lib/lru.ts';
import { type Event, EVENTS, type KubeObject, type ResourceType } from './types.ts';

/** What happened to an object, for its owner to read. */
export interface EventFields {
  type: 'Normal' | 'Warning';
  /** CamelCase, from a documented list. */
  reason: string;
  /** Cut at 1,024 characters. */
  message: string;
}

export interface RecorderOptions {
  client: KubeClient;
  /** Shown as the source, for example `berth-controller`. */
  component: string;
  clock: Clock;
  log: Logger;
}

interface Pending {
  event: Event;
  key: string;
}

interface Sent {
  namespace: string;
  name: string;
  count: number;
}

const MAX_MESSAGE = 1_024;
const MAX_WAITING = 1_000;
const MAX_KNOWN = 4_096;
// client-go's EventSourceObjectSpamFilter: 25 at once about one object, then one in five minutes.
const BURST = 25;
const REFILL_MS = 300_000;
/** A process does not wait longer than this for its last Events when the API server does not answer. */
const LAST_MS = 2_000;

function eventFor<T extends KubeObject>(type: ResourceType<T>, object: T, fields: EventFields): Event {
  const { name, namespace, uid, resourceVersion } = object.metadata;
  const apiVersion = type.group === '' ? type.version : `${type.group}/${type.version}`;
  return {
    metadata: { name, namespace: namespace ?? 'default' },
    involvedObject: { apiVersion, kind: type.kind, name, namespace, uid, resourceVersion },
    type: fields.type,
    reason: fields.reason,
    message: fields.message.slice(0, MAX_MESSAGE),
  };
}

/** Core v1 Events with the correlation of client-go tools/record/events_cache.go: count up, and drop floods. */
export class EventRecorder {
  readonly #options: RecorderOptions;
  readonly #known = new Lru<string, Sent>(MAX_KNOWN);
  readonly #buckets = new Lru<string, { tokens: number; at: number }>(MAX_KNOWN);
  readonly #waiting: Pending[] = [];
  readonly #cutOff = new AbortController();
  #wake = Promise.withResolvers<void>();
  #serial: number;

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#serial = options.clock.now();
  }

  /** Takes the Event without waiting. Repeats of the same words count up one Event; a flood about one object is dropped. */
  record<T extends KubeObject>(type: ResourceType<T>, object: T, fields: EventFields): void {
    const event = eventFor(type, object, fields);
    const objectKey = `${type.kind}/${event.metadata.namespace}/${event.metadata.name}/${object.metadata.uid}`;
    const key = `${objectKey}/${event.type}/${event.reason}/${event.message}`;
    if (this.#waiting.length >= MAX_WAITING || !this.#takeToken(objectKey)) {
      this.#options.log.debug({ objectKey, reason: event.reason }, 'An Event was dropped');
      return;
    }
    this.#waiting.push({ event, key });
    this.#wake.resolve();
  }

  /** Sends until the signal aborts, and then for at most two seconds what is left. Never rejects. Call it once. */
  async run(stop: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    let cancel: (() => void) | undefined;
    const onStop = (): void => {
      const error = new Error('The time for the last Events is over.');
      cancel = clock.setTimeout(() => this.#cutOff.abort(error), LAST_MS);
      this.#wake.resolve();
    };
    if (stop.aborted) onStop();
    stop.addEventListener('abort', onStop, { once: true });
    while (!stop.aborted) {
      await this.#wake.promise;
      this.#wake = Promise.withResolvers<void>();
      await this.#sendAll();
    }
    await this.#sendAll();
    cancel?.();
  }

  /** False when the Events about this object are too many. */
  #takeToken(objectKey: string): boolean {
    const now = this.#options.clock.monotonic();
    const { tokens, at } = this.#buckets.get(objectKey) ?? { tokens: BURST, at: now };
    const filled = Math.min(BURST, tokens + (now - at) / REFILL_MS);
    this.#buckets.set(objectKey, { tokens: filled >= 1 ? filled - 1 : filled, at: now });
    return filled >= 1;
  }

  async #sendAll(): Promise<void> {
    const { signal } = this.#cutOff;
    for (let pending = this.#waiting.shift(); pending && !signal.aborted; pending = this.#waiting.shift()) {
      const { involvedObject, reason } = pending.event;
      await this.#send(pending).catch((error: unknown) =>
        this.#options.log.warn({ err: error, object: involvedObject.name, reason }, 'An Event could not be written'),
      );
    }
  }

  async #send(pending: Pending): Promise<void> {
    const { client, clock } = this.#options;
    const sent = this.#known.get(pending.key);
    if (!sent) return this.#create(pending);
    try {
      const next = { ...sent, count: sent.count + 1 };
      const body = { count: next.count, lastTimestamp: rfc3339(clock.now()) };
      await client.patch(EVENTS, sent, body, { type: 'merge', signal: this.#cutOff.signal });
      this.#known.set(pending.key, next);
    } catch (error) {
      // Events live for an hour by default.
      if (!(error instanceof NotFoundError)) throw error;
      await this.#create(pending);
    }
  }

  async #create({ event, key }: Pending): Promise<void> {
    const { client, clock, component } = this.#options;
    const now = rfc3339(clock.now());
    this.#serial += 1;
    const { name: object, namespace = 'default' } = event.metadata;
    // Names are at most 253 characters; client-go puts a time in hexadecimal behind the object's name.
    const name = `${object.slice(0, 230)}.${this.#serial.toString(16)}`;
    const created = {
      ...event,
      metadata: { name, namespace },
      firstTimestamp: now,
      lastTimestamp: now,
      count: 1,
      source: { component },
      reportingComponent: component,
    };
    await client.create(EVENTS, created, { signal: this.#cutOff.signal });
    this.#known.set(key, { namespace, name, count: 1 });
  }
}
