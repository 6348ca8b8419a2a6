import type { HistoryEntry, InstanceHistorySpec } from '../../resources/history/instance-history.ts';
import type { EventListRecord } from '../schemas/event.ts';

/** One event as the API shows it. */
export function toEventRecord({ at, lastAt, type, reason, message, count, start }: HistoryEntry) {
  return {
    at,
    last_at: lastAt ?? null,
    type: type === 'Warning' ? ('warning' as const) : ('normal' as const),
    reason,
    message,
    count,
    start,
  };
}

export function toRecord({ instance, endedAt, dropped, entries }: InstanceHistorySpec): EventListRecord {
  return {
    object: 'list',
    instance_id: instance,
    ended_at: endedAt ?? null,
    dropped,
    data: entries.map(toEventRecord),
  };
}
