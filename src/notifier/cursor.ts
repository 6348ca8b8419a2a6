import { rfc3339 } from '../kube/conditions.ts';
import type { InstanceHistory } from '../resources/instance-history.ts';
import type { TenantLimit } from '../resources/tenants/tenant-limit.ts';
import { type Cursor, MAX_SENT, type Webhook } from '../resources/webhook.ts';
import { budgetEvents, instanceEvents, type NotifierEvent } from './events.ts';

/** Milliseconds for which an event is tried. */
export const KEPT_MS = 3 * 24 * 60 * 60_000;

/** What the stores say of the tenant of a webhook. */
export interface Recorded {
  histories: Iterable<InstanceHistory>;
  limit: TenantLimit | undefined;
}

/** Where a new webhook begins: what is recorded from its creation on. */
export function firstCursor({ metadata }: Pick<Webhook, 'metadata'>): Cursor {
  return { before: rfc3339(new Date(metadata.creationTimestamp ?? 0).getTime()), sent: [] };
}

/** Where events that were delivered stand, by their ids: a cursor has the ids alone. */
export type Positions = ReadonlyMap<string, string>;

export interface Due {
  /** The events that the webhook has not, in the order of their delivery. */
  events: NotifierEvent[];
  positions: Positions;
}

export function findDue({ spec }: Pick<Webhook, 'spec'>, cursor: Cursor, { histories, limit }: Recorded): Due {
  const wants = (type: string): boolean => spec.events === undefined || spec.events.includes(type);
  const sent = new Set(cursor.sent);
  const ofInstances = instanceEvents(histories, cursor.before, wants);
  const ofBudget = budgetEvents(limit, cursor.budget).filter(({ type }) => wants(type));
  return {
    events: [...ofBudget, ...ofInstances.filter(({ id }) => !sent.has(id))],
    positions: new Map(ofInstances.map(({ id, position }) => [id, position])),
  };
}

function isOfBudget({ type }: NotifierEvent): boolean {
  return type.startsWith('budget.');
}

/**
 * The cursor after an event, which was delivered or dropped. What another writer records late stands before events that
 * were delivered already: so the last ones are kept by their ids, and only what is older than all of them is settled.
 *
 * @param positions of events that still stand in a history
 */
export function pass(cursor: Cursor, event: NotifierEvent, positions: Positions): Cursor {
  if (isOfBudget(event)) return { ...cursor, budget: event.position, last: event.id };
  const sent = [...cursor.sent, event.id];
  const settled = sent.splice(0, Math.max(0, sent.length - MAX_SENT));
  const before = settled
    .map((id) => positions.get(id) ?? '')
    .reduce((newest, position) => (position > newest ? position : newest), cursor.before);
  return { ...cursor, before, sent, last: event.id };
}

/** Whether the time of an event is over. `now`: milliseconds since the epoch. */
export function isTooOld({ at }: NotifierEvent, now: number): boolean {
  return Date.parse(at) + KEPT_MS <= now;
}
