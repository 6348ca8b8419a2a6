import { fold } from '../../resources/history/fold.ts';
import {
  HISTORY_OF,
  INSTANCE_HISTORIES,
  type InstanceHistory,
  type InstanceHistorySpec,
} from '../../resources/history/instance-history.ts';
import type { GpuInstance } from '../../resources/instances/gpu-instance.ts';
import type { ApiContext } from '../context.ts';
import { ApiError } from '../errors/api-error.ts';
import { overloaded } from '../errors/busy.ts';
import { route } from '../routes/route.ts';
import type { EventListRecord } from '../schemas/event.ts';
import { sendJson } from '../send.ts';
import { instanceNotFound, instanceOf } from '../tenant.ts';

/** A label's value, which the names of instances are. */
const ID = /^[a-z0-9](?:[-a-z0-9.]{0,61}[a-z0-9])?$/;

async function histories({ client }: ApiContext, namespace: string, id: string): Promise<InstanceHistory[]> {
  if (!ID.test(id)) return [];
  return (await client.list(INSTANCE_HISTORIES, { namespace, labelSelector: `${HISTORY_OF}=${id}` })).items;
}

/** The history that is stored, with what the instance says since; of the newest instance of this name. */
function historyOf(
  stored: readonly InstanceHistory[],
  instance: GpuInstance | undefined,
  now: number,
): InstanceHistorySpec | undefined {
  if (instance !== undefined) {
    const own = stored.find(({ spec }) => spec.instanceUid === instance.metadata.uid);
    return fold(own?.spec, instance, { gone: false, now });
  }
  const created = ({ metadata }: InstanceHistory): string => String(metadata.creationTimestamp);
  const [newest] = stored.toSorted((a, b) => (created(a) < created(b) ? 1 : -1));
  return newest?.spec;
}

function toRecord({ instance, endedAt, dropped, entries }: InstanceHistorySpec): EventListRecord {
  const data = entries.map(({ at, lastAt, type, reason, message, count, start }) => ({
    at,
    last_at: lastAt ?? null,
    type: type === 'Warning' ? ('warning' as const) : ('normal' as const),
    reason,
    message,
    count,
    start,
  }));
  return { object: 'list', instance_id: instance, ended_at: endedAt ?? null, dropped, data };
}

export const readEventsRoute = route({
  method: 'get',
  path: '/instances/{instanceId}/events',
  id: 'getInstanceEvents',
  tag: 'Instances',
  scope: 'compute:read',
  compressed: true,
  summary: 'Read the history of an instance',
  description: 'What happened to it, in words. It answers for a week after the instance is gone, too.',
  success: { status: 200, schema: 'EventList', description: 'The history, oldest first: at most 100 events.' },
  errors: ['instance_not_found'],
  async handle(context, { request, response, caller: { namespace } }) {
    const { clock, logReads } = context;
    const instance = await instanceOf(context, request).catch((error: unknown) => {
      if (error instanceof ApiError && error.code === 'instance_not_found') return undefined;
      throw error;
    });
    // Each reading asks the API server.
    if (logReads.take(namespace, 1) !== 'taken') throw overloaded('readings of histories');
    try {
      const stored = await histories(context, namespace, String(request.params['instanceId']));
      const history = historyOf(stored, instance, clock.now());
      if (history === undefined) throw instanceNotFound();
      sendJson(response, JSON.stringify(toRecord(history)));
    } finally {
      logReads.give(namespace, 1);
    }
  },
});
