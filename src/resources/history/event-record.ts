import type { HistoryEntry } from './instance-history.ts';

/** One event of an instance, as the HTTP interface and webhooks show it. */
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
