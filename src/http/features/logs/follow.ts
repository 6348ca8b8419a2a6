import type { KubeClient } from '../../../kube/client/client.ts';
import { KubeError } from '../../../kube/errors.ts';
import { logLines, openPodLog } from '../../../kube/streams/pod-log.ts';
import { keyOf, type ObjectRef, type Pod } from '../../../kube/types.ts';
import type { ReadStore } from '../../../kube/watch/store.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { instanceState } from '../../../resources/instances/instance-state.ts';
import type { LogEventType, StreamEvent } from '../../interface/events/event-stream.ts';
import { loggedContainer, type LoggedContainer, saysNoPrevious } from '../instances/container.ts';
import { idOf, LineCursor, type Position } from './position.ts';
import type { KeptLog } from './kept.ts';
import { charactersOf, chooseLines, isOfSource, secondOf, sinceOf } from './read.ts';
import { LOG_LIMITS, type LogQuery, logQuerySchema } from './schema.ts';

/** Milliseconds: before a log is opened again that ended though its container runs. */
const REOPEN_MS = 2000;
const MAX_WAIT_MS = 30_000;

/** Readings of the log before a restart that fail one after the other until it counts as removed. */
const MAX_FAILURES = 3;

/** Every line. */
const ALL: LogQuery = { ...logQuerySchema.parse({}), tail: LOG_LIMITS.tail.max };

/** In the place of the id of a container that the cache does not show. */
const BEFORE = 'before';

interface Reading {
  /** The container before the restart, when its log is read first. */
  previous: string | undefined;
  /** Whether to go on, and say so, when the last line of the client is not found. */
  mayMiss: boolean;
}

/** The last line that the client has is not in the log. */
class MissingLine extends Error {
  override name = 'MissingLine';
}

export interface FollowDeps {
  client: KubeClient;
  instances: ReadStore<GpuInstance>;
  pods: ReadStore<Pod>;
  clock: Clock;
  /** What was kept of the log of a start; undefined when nothing was. */
  kept: (start: number) => Promise<KeptLog | undefined>;
  /** Resolves when the tenant may read on, who has read so many characters more. */
  pace: (characters: number) => Promise<void>;
  /** Where the events go: resolves when more may be sent. */
  send: (events: readonly StreamEvent[]) => Promise<void>;
  /** Ends the following. */
  signal: AbortSignal;
}

export interface Following {
  instance: ObjectRef;
  query: LogQuery;
  /** The last line that the client has. */
  after: Position | undefined;
}

/** Follows the log of one instance through restarts of its container and new starts of the instance, to its end. */
export class LogFollower {
  readonly #deps: FollowDeps;
  readonly #key: string;
  readonly #query: LogQuery;
  #after: Position | undefined;
  /** Whether only the last lines are asked for, and those since a time: at the first reading. */
  #first: boolean;
  /** The container whose lines came last. */
  #shown: string | undefined;
  /** What was read to its end: a container while it ran, or after. */
  #done = '';
  /** Monotonic: when a log is opened again that ended though the container seems to run. */
  #reopenAt = 0;
  #failures = 0;
  #waitsFor = '';
  /** The start that was seen last. */
  #last = 0;
  /** The start of which was read what was kept. */
  #kept: number | undefined;

  constructor(deps: FollowDeps, { instance, query, after }: Following) {
    this.#deps = deps;
    this.#key = keyOf(instance);
    this.#query = query;
    this.#after = after;
    this.#first = after === undefined;
  }

  /** Resolves at the end of the instance, or when the signal aborts. */
  async run(): Promise<void> {
    const { clock, instances, pods, signal } = this.#deps;
    while (!signal.aborted) {
      const instance = instances.get(this.#key);
      if (instance === undefined) {
        await this.#readKept(this.#last);
        return this.#tell('end', { reason: 'Deleted', message: 'The instance is deleted.' });
      }
      this.#last = instance.status?.incarnation ?? 0;
      const container = loggedContainer(instance, pods);
      if (container !== undefined && this.#done !== doneKey(container)) {
        await this.#read(container, instance);
        continue;
      }
      if (container === undefined && instance.status?.podName === undefined) {
        await this.#leave(this.#last);
        await this.#readKept(this.#last);
      }
      if (container?.running !== true && (await this.#wait(instance))) return;
      const left = container?.running === true ? this.#reopenAt - clock.monotonic() : MAX_WAIT_MS;
      if (left > 0) await this.#change(instance, left);
      else this.#done = '';
    }
  }

  /** Says what the instance waits for; true when nothing more will come. */
  async #wait(instance: GpuInstance): Promise<boolean> {
    const { state, reason, message } = instanceState(instance);
    if (state === 'stopped' || state === 'failed') {
      await this.#tell('end', { state, reason, message });
      return true;
    }
    if (this.#waitsFor !== reason) await this.#tell('waiting', { state, reason, message });
    this.#waitsFor = reason;
    return false;
  }

  async #read(container: LoggedContainer, instance: GpuInstance): Promise<void> {
    try {
      await this.#readAll(container);
      this.#done = doneKey(container);
      this.#reopenAt = this.#deps.clock.monotonic() + REOPEN_MS;
      this.#failures = 0;
    } catch (error) {
      if (this.#deps.signal.aborted) return;
      const away = error instanceof KubeError ? error.status === 400 || error.status === 404 : false;
      this.#failures += 1;
      if (this.#failures === 2 && !away) {
        await this.#tell('waiting', { reason: 'LogUnavailable', message: 'The node does not give the log now.' });
      }
      await this.#change(instance, Math.min(REOPEN_MS * this.#failures, MAX_WAIT_MS));
    }
  }

  /** Sends what was kept of a start and the client has not; false when nothing was kept. Once for each start. */
  async #readKept(start: number): Promise<boolean> {
    const { clock, kept, send } = this.#deps;
    if (start === 0 || this.#kept === start) return this.#kept === start;
    this.#kept = start;
    const found = await kept(start).catch(() => undefined);
    if (found === undefined) return false;
    const after = this.#after?.start === start ? this.#after : undefined;
    await send(keptEvents(found, { start, query: this.#query, after, isFirst: this.#first, now: clock.now() }));
    this.#after = undefined;
    this.#first = false;
    this.#shown = `kept ${start}`;
    return true;
  }

  /** Ends the reading of an earlier start, whose pod is gone. */
  async #leave(next: number): Promise<void> {
    if (this.#after === undefined || this.#after.start === next) return;
    const isKept = await this.#readKept(this.#after.start);
    // What this follower has read to the end is not missing.
    if (this.#shown === undefined && !isKept) await this.#gap();
    this.#after = undefined;
  }

  async #readAll(container: LoggedContainer): Promise<void> {
    const { start, previous } = container;
    await this.#leave(start);
    const knowsPrevious = previous !== undefined && this.#wantsPrevious(previous.finishedAt);
    try {
      await this.#readFrom(container, { previous: knowsPrevious ? previous.id : undefined, mayMiss: knowsPrevious });
    } catch (error) {
      if (!(error instanceof MissingLine)) throw error;
      // The cache is behind the kubelet: the container was restarted already, and the last line is in the log before.
      await this.#readFrom(container, { previous: BEFORE, mayMiss: true });
    }
    this.#first = false;
  }

  /** Reads the log before the restart, where one is named, and then the current one. */
  async #readFrom(container: LoggedContainer, { previous, mayMiss }: Reading): Promise<void> {
    const cursor = new LineCursor(container.start, this.#after);
    if (previous !== undefined) {
      try {
        await this.#pump(container, cursor, { previous: true, mayMiss });
        // The cache is behind if the last line is of the container after it: the client knows of the restart.
        if (cursor.isPlaced) this.#shown = previous;
      } catch (error) {
        if (!this.#isRemoved(error)) throw error;
        // The cursor finds out whether lines are missing.
        this.#shown = previous === BEFORE ? container.id : previous;
      }
    }
    if (this.#shown !== undefined && this.#shown !== container.id) {
      await this.#tell('restart', { start: container.start, message: 'The container was started again.' });
    }
    this.#shown = previous === BEFORE ? undefined : container.id;
    await this.#pump(container, cursor, { previous: false, mayMiss });
  }

  /** Whether the kubelet has the log before the restart no more. It answers 400 for every failure: others may pass. */
  #isRemoved(error: unknown): boolean {
    if (!(error instanceof KubeError) || error.status !== 400) return false;
    return saysNoPrevious(error) || this.#failures >= MAX_FAILURES;
  }

  /** Whether the container before the restart may have lines that the client has not. */
  #wantsPrevious(finishedAt: string): boolean {
    if (this.#after === undefined) return this.#first && this.#query.previous;
    // The end is known to the second.
    return Date.parse(finishedAt) + 1000 >= Date.parse(this.#after.time);
  }

  async #pump(
    container: LoggedContainer,
    cursor: LineCursor,
    { previous, mayMiss }: { previous: boolean; mayMiss: boolean },
  ): Promise<void> {
    const { client, clock, pace, send, signal } = this.#deps;
    const { source, tail } = this.#query;
    const asked = this.#first ? sinceOf(this.#query.since, clock.now()) : undefined;
    const since = this.#after?.time ?? asked;
    const stream = await openPodLog(client, container.target, {
      previous,
      follow: !previous && container.running,
      ...(since !== undefined && { since: secondOf(since) }),
      ...(this.#after === undefined && this.#first && source === 'container' && { tail }),
      signal,
    });
    for await (const batch of logLines(stream)) {
      const events: StreamEvent[] = [];
      for (const line of batch) {
        const admitted = cursor.admit(line);
        if (admitted === undefined || (asked !== undefined && line.time < asked)) continue;
        if (admitted.gap && !mayMiss) throw new MissingLine();
        if (admitted.gap) events.push(GAP);
        this.#after = admitted.position;
        if (!isOfSource(source, line)) continue;
        const id = idOf(admitted.position);
        events.push({ type: 'line', id, data: JSON.stringify({ id, at: line.time, text: line.text }) });
      }
      this.#waitsFor = '';
      this.#failures = 0;
      if (events.length > 0) await send(events);
      await pace(charactersOf(batch));
    }
  }

  #gap(): Promise<void> {
    return this.#deps.send([GAP]);
  }

  #tell(type: LogEventType, data: Record<string, unknown>): Promise<void> {
    return this.#deps.send([{ type, data: JSON.stringify(data) }]);
  }

  /** Resolves when the instance or its pod changes, after the time, or when the signal aborts. */
  #change({ metadata, status }: GpuInstance, ms: number): Promise<void> {
    const { clock, instances, pods, signal } = this.#deps;
    const pod = keyOf({ namespace: metadata.namespace, name: status?.podName ?? '' });
    const changed = new AbortController();
    const unwatch = [
      instances.onChange(({ key }) => key === this.#key && changed.abort()),
      pods.onChange(({ key }) => key === pod && changed.abort()),
    ];
    return clock.sleep(ms, AbortSignal.any([changed.signal, signal])).finally(() => {
      for (const one of unwatch) one();
    });
  }
}

export interface KeptEventsOptions {
  start: number;
  query: LogQuery;
  /** The last line of this start that the client has. */
  after: Position | undefined;
  /** Whether only the last lines are asked for, and those since a time. */
  isFirst: boolean;
  now: number;
}

/** What was kept of a start, as the events of a followed log. */
export function keptEvents(
  { lines, previous = [] }: KeptLog,
  { start, query, after, isFirst, now }: KeptEventsOptions,
): StreamEvent[] {
  const cursor = new LineCursor(start, after);
  const events: StreamEvent[] = [];
  const asked = after === undefined && isFirst ? query : { ...ALL, source: query.source };
  for (const [index, part] of [query.previous ? previous : [], lines].entries()) {
    if (index === 1 && events.length > 0) {
      const message = 'The container was started again.';
      events.push({ type: 'restart', data: JSON.stringify({ start, message }) });
    }
    const chosen = new Set(chooseLines(part, asked, now));
    for (const line of part) {
      const admitted = cursor.admit(line);
      if (admitted?.gap === true) events.push(GAP);
      if (admitted === undefined || !chosen.has(line)) continue;
      const id = idOf(admitted.position);
      events.push({ type: 'line', id, data: JSON.stringify({ id, at: line.time, text: line.text }) });
    }
  }
  return events;
}

const GAP: StreamEvent = {
  type: 'gap',
  data: JSON.stringify({ message: 'The log was rotated or removed since: lines may be missing here.' }),
};

/** A container is read once while it runs and once more when it has ended: the first reading may have ended early. */
function doneKey({ id, running }: LoggedContainer): string {
  return `${id} ${running}`;
}
