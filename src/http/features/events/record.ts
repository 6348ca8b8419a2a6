import { type InstanceHistorySpec, toEventRecord } from '../../../resources/instance-history.ts';
import type { EventListRecord } from './schema.ts';

export function toRecord({ instance, endedAt, dropped, entries }: InstanceHistorySpec): EventListRecord {
  return {
    object: 'list',
    instance_id: instance,
    ended_at: endedAt ?? null,
    dropped,
    data: entries.map(toEventRecord),
  };
}
