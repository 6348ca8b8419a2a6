import type { Logger } from 'pino';
import type { KubeClient } from './client/client.ts';
import type { Clock } from '../lib/clock.ts';
import { rfc3339 } from './conditions.ts';
import { NotFoundError } from './errors.ts';
import { createLru } from '../lib/lru.ts';
import { type Event, EVENTS, type KubeObject, type ResourceType } from './types.ts';

/** What happened to an object, in words for its owner. */
export interface Happening {
  type: 'Normal' | 'Warning';
  /** CamelCase, from a documented list. */
  reason: string;
  /** Cut at 1,024 characters. */
  message: string;
}

export interface EventRecorder {
  /** Notes it without waiting. Repeats of the same words count up one Event; a flood about one object is dropped. */
  record<T extends KubeObject>(type: ResourceType<T>, object: T, happening: Happening): void;
  /**
   * Sends until the signal aborts and what was noted before is sent, or cannot be within two seconds. Never rejects.
   * Call it once.
   */
  run(signal: AbortSignal): Promise<void>;
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
/** An Event is not worth holding up the end of a process whose API server does not answer. */
const LAST_MS = 2_000;

function eventFor<T extends KubeObject>(type: ResourceType<T>, object: T, happening: Happening): Event {
  const { name, namespace, uid, resourceVersion } = object.metadata;
  const apiVersion = type.group === '' ? type.version : `${type.group}/${type.version}`;
  return {
    metadata: { name, namespace: namespace ?? 'default' },
    involvedObject: { apiVersion, kind: type.kind, name, namespace, uid, resourceVersion },
    type: happening.type,
    reason: happening.reason,
    message: happening.message.slice(0, MAX_MESSAGE),
  };
}

/** Core v1 Events with the correlation of client-go tools/record/events_cache.go: count up, and drop floods. */
export function createEventRecorder(options: RecorderOptions): EventRecorder {
  const { client, component, clock, log } = options;
  const known = createLru<string, Sent>(MAX_KNOWN);
  const buckets = createLru<string, { tokens: number; at: number }>(MAX_KNOWN);
  const waiting: Pending[] = [];
  let wake = Promise.withResolvers<void>();
  let serial = clock.now();
  const lastMoment = new AbortController();
  const { signal } = lastMoment;

  /** False when this object has had its share. */
  function takeToken(objectKey: string): boolean {
    const now = clock.monotonic();
    const { tokens, at } = buckets.get(objectKey) ?? { tokens: BURST, at: now };
    const filled = Math.min(BURST, tokens + (now - at) / REFILL_MS);
    buckets.set(objectKey, { tokens: filled >= 1 ? filled - 1 : filled, at: now });
    return filled >= 1;
  }

  async function create({ event, key }: Pending): Promise<void> {
    const now = rfc3339(clock.now());
    serial += 1;
    const { name: object, namespace = 'default' } = event.metadata;
    // Names are at most 253 characters; client-go puts a time in hexadecimal behind the object's name.
    const name = `${object.slice(0, 230)}.${serial.toString(16)}`;
    const made = {
      ...event,
      metadata: { name, namespace },
      firstTimestamp: now,
      lastTimestamp: now,
      count: 1,
      source: { component },
      reportingComponent: component,
    };
    await client.create(EVENTS, made, { signal });
    known.set(key, { namespace, name, count: 1 });
  }

  async function send(pending: Pending): Promise<void> {
    const sent = known.get(pending.key);
    if (!sent) return create(pending);
    try {
      const next = { ...sent, count: sent.count + 1 };
      const body = { count: next.count, lastTimestamp: rfc3339(clock.now()) };
      await client.patch(EVENTS, sent, body, { type: 'merge', signal });
      known.set(pending.key, next);
    } catch (error) {
      // Events live for an hour by default.
      if (!(error instanceof NotFoundError)) throw error;
      await create(pending);
    }
  }

  async function sendAll(): Promise<void> {
    for (let pending = waiting.shift(); pending && !signal.aborted; pending = waiting.shift()) {
      const { involvedObject, reason } = pending.event;
      await send(pending).catch((error: unknown) =>
        log.warn({ err: error, object: involvedObject.name, reason }, 'An Event could not be written'),
      );
    }
  }

  return {
    record(type, object, happening) {
      const event = eventFor(type, object, happening);
      const objectKey = `${type.kind}/${event.metadata.namespace}/${event.metadata.name}/${object.metadata.uid}`;
      const key = `${objectKey}/${event.type}/${event.reason}/${event.message}`;
      if (waiting.length >= MAX_WAITING || !takeToken(objectKey)) {
        log.debug({ objectKey, reason: event.reason }, 'An Event was dropped');
        return;
      }
      waiting.push({ event, key });
      wake.resolve();
    },
    async run(stop) {
      let cancel: (() => void) | undefined;
      const onStop = (): void => {
        cancel = clock.setTimeout(() => lastMoment.abort(new Error('The time for the last Events is over.')), LAST_MS);
        wake.resolve();
      };
      if (stop.aborted) onStop();
      stop.addEventListener('abort', onStop, { once: true });
      while (!stop.aborted) {
        await wake.promise;
        wake = Promise.withResolvers<void>();
        await sendAll();
      }
      await sendAll();
      cancel?.();
    },
  };
}
