import { keyOf } from '../../../kube/types.ts';
import type { ReadStore } from '../../../kube/watch/store.ts';
import type { Clock } from '../../../lib/clock.ts';
import { type InstanceHistorySpec, toEventRecord } from '../../../resources/instance-history.ts';
import { fold } from '../../../resources/history-fold.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import type { StreamEvent } from '../../interface/events/event-stream.ts';
import { SentMarks } from './marks.ts';

export interface FollowHistoryDeps {
  instances: ReadStore<GpuInstance>;
  clock: Clock;
  send: (event: StreamEvent) => void;
  /** Is called once, when nothing more will come. */
  end: () => void;
}

export interface FollowedHistory {
  /** Of the instance. */
  namespace: string;
  history: InstanceHistorySpec;
  /** The instance as it was when the history was read; undefined when it was gone. */
  instance: GpuInstance | undefined;
  /** Whether the cache had it then. It may not have it yet. */
  wasCached: boolean;
  /** The last event that the client has. */
  lastId: string | undefined;
}

/**
 * Sends the events of one instance that the client has not, and then each as it happens, to the end of the instance. It
 * asks the API server nothing: the history goes on by what the cache shows, as the controller writes it.
 *
 * @returns what ends the following
 */
export function followHistory(
  { instances, clock, send, end }: FollowHistoryDeps,
  { namespace, history: stored, instance, wasCached, lastId }: FollowedHistory,
): () => void {
  const { instanceUid: uid, instance: name } = stored;
  const key = keyOf({ namespace, name });
  const marks = new SentMarks();
  let history = stored;
  marks.resume(lastId, history);

  function tell(): void {
    for (const { id, entry } of marks.take(history)) {
      send({ type: 'event', id, data: JSON.stringify(toEventRecord(entry)) });
    }
    if (history.endedAt === undefined) return;
    unwatch();
    send({ type: 'end', data: JSON.stringify({ reason: 'Deleted', message: 'The instance is deleted.' }) });
    end();
  }

  function see(seen: Pick<GpuInstance, 'metadata' | 'status'>, gone: boolean): void {
    history = fold(history, seen, { gone, now: clock.now() });
    tell();
  }

  const unwatch = instances.onChange(({ key: changed, before, after }) => {
    if (changed !== key) return;
    if (after?.metadata.uid === uid) see(after, false);
    else if (before?.metadata.uid === uid) see(before, true);
  });
  const now = instances.get(key);
  if (now?.metadata.uid === uid) see(now, false);
  // It went while its history was read, or before, and the controller has not written that yet.
  else if (instance === undefined || wasCached || now !== undefined)
    see(instance ?? { metadata: { namespace, name, uid } }, true);
  else tell();
  return unwatch;
}
