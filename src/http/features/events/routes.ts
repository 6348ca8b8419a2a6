import { keyOf } from '../../../kube/types.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { FairShares } from '../../../lib/shares.ts';
import { fold } from '../../../resources/history-fold.ts';
import { type InstanceHistorySpec, toEventRecord } from '../../../resources/instance-history.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { ApiError } from '../../interface/errors/api-error.ts';
import { overloaded } from '../../interface/errors/busy.ts';
import { lastEventId, limitLife, wantsEvents } from '../../interface/events/event-stream.ts';
import type { StreamRegistry } from '../../interface/events/stream-registry.ts';
import { type Call, route } from '../../interface/route.ts';
import { sendJson } from '../../interface/send.ts';
import { instanceNotFound, instanceOf, type InstanceSource } from '../instances/find.ts';
import { findHistory } from '../instances/histories.ts';
import { type FollowedHistory, followHistory } from './follow.ts';
import { type EventListRecord, eventListSchema } from './schema.ts';

export interface EventsContext extends InstanceSource {
  clock: Clock;
  streams: StreamRegistry;
  logReads: FairShares;
  logFollows: FairShares;
}

/**
 * The history that is stored, with what the instance says since; of the newest instance of this name. Throws 404 when
 * there is none.
 */
async function read(
  context: EventsContext,
  { request, caller: { namespace } }: Call,
  instance: GpuInstance | undefined,
): Promise<InstanceHistorySpec> {
  const { client, clock, logReads } = context;
  // Each reading asks the API server.
  if (logReads.take(namespace, 1) !== 'taken') throw overloaded('readings of histories');
  try {
    const id = String(request.params['instanceId']);
    const stored = await findHistory(client, { namespace, id, uid: instance?.metadata.uid });
    const history =
      instance === undefined ? stored?.spec : fold(stored?.spec, instance, { gone: false, now: clock.now() });
    if (history === undefined) throw instanceNotFound();
    return history;
  } finally {
    logReads.give(namespace, 1);
  }
}

function follow(
  { clock, logFollows, stores, streams }: EventsContext,
  { request, response, caller: { namespace } }: Call,
  found: Pick<FollowedHistory, 'history' | 'instance' | 'wasCached'>,
): void {
  // It closed while the history was read: nothing would give back what it holds.
  if (response.destroyed) return;
  if (logFollows.take(namespace, 1) !== 'taken') throw overloaded('followed histories');
  response.once('close', () => logFollows.give(namespace, 1));
  const stream = streams.open(request, response);
  const ended = new AbortController();
  response.once('close', () => ended.abort());
  const alive = limitLife(stream, clock, ended);
  const unfollow = followHistory(
    {
      instances: stores.instances,
      clock,
      send: (event) => {
        alive();
        stream.send(event);
      },
      end: () => {
        ended.abort();
        stream.end();
      },
    },
    { namespace, ...found, lastId: lastEventId(request) },
  );
  ended.signal.addEventListener('abort', unfollow);
}

export const readEventsRoute = route({
  method: 'get',
  path: '/instances/{instanceId}/events',
  id: 'getInstanceEvents',
  tag: 'Instances',
  scope: 'compute:read',
  compressed: true,
  summary: 'Read or follow the history of an instance',
  description:
    'The history of the instance, in words. It answers for a week after the instance is gone, too. With Accept: ' +
    'text/event-stream: event (one that the client has not, or that happened again), end (the instance is gone: the ' +
    'last event). A stream ends after an hour, and after 15 minutes without an event; it continues at any replica with ' +
    'the last id as Last-Event-ID.',
  success: { status: 200, schema: eventListSchema, description: 'The history, oldest first: at most 100 events.' },
  events: 'event, end',
  errors: ['instance_not_found'],
  async handle(context: EventsContext, call) {
    const { request, response } = call;
    const instance = await instanceOf(context, request).catch((error: unknown) => {
      if (error instanceof ApiError && error.code === 'instance_not_found') return undefined;
      throw error;
    });
    const wasCached = instance !== undefined && context.stores.instances.get(keyOf(instance.metadata)) !== undefined;
    const history = await read(context, call, instance);
    if (wantsEvents(request)) follow(context, call, { history, instance, wasCached });
    else sendJson(response, JSON.stringify(toRecord(history)));
  },
});

export function toRecord({ instance, endedAt, dropped, entries }: InstanceHistorySpec): EventListRecord {
  return {
    object: 'list',
    instance_id: instance,
    ended_at: endedAt ?? null,
    dropped,
    data: entries.map(toEventRecord),
  };
}
