import { hash } from 'node:crypto';
import { rfc3339 } from '../kube/conditions.ts';
import { type HistoryEntry, type InstanceHistory, toEventRecord } from '../resources/instance-history.ts';
import type { TenantLimit } from '../resources/tenants/tenant-limit.ts';
import { type BudgetStatus, WARNINGS } from '../resources/tenants/budget.ts';
import { type Cursor, MAX_SENT, type Webhook } from '../resources/webhook.ts';

/** Characters of an id, 6 bits each. */
const ID_LENGTH = 16;
/** Milliseconds for which an event is tried. */
const KEPT_MS = 3 * 24 * 60 * 60_000;

/** Something to tell a webhook. */
export interface NotifierEvent {
  /** The same for every delivery of the event, from every replica. */
  id: string;
  type: string;
  /** Where it stands among the events of instances. Text that sorts; the first part is when it was recorded. */
  position: string;
  /** When it was recorded, RFC 3339 in UTC. */
  at: string;
  data: Readonly<Record<string, unknown>>;
}

function idOf(...facts: readonly (string | number)[]): string {
  return hash('sha256', facts.join(' '), 'base64url').slice(0, ID_LENGTH);
}

/** GPUBecameUnhealthy -> instance.gpu_became_unhealthy. */
export function typeOf(reason: string): string {
  const words = reason.replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2').replaceAll(/([A-Z])([A-Z][a-z])/g, '$1_$2');
  return `instance.${words.toLowerCase()}`;
}

/** In whole seconds, as all of these times: so they sort as texts. */
function recordedAt({ recordedAt: at, lastAt, at: first }: HistoryEntry): string {
  return at ?? rfc3339(Date.parse(lastAt ?? first));
}

/** An entry of a history, with where it stands among those of its tenant. */
export class RankedEntry {
  readonly at: string;
  readonly uid: string;
  /** Entries that give way are counted, so the number of an entry stays. */
  readonly number: number;
  #history: InstanceHistory;
  #entry: HistoryEntry;
  #position: string | undefined;
  #id: string | undefined;

  constructor(history: InstanceHistory, entry: HistoryEntry, index: number) {
    this.at = recordedAt(entry);
    this.uid = history.spec.instanceUid;
    this.number = history.spec.dropped + index;
    this.#history = history;
    this.#entry = entry;
  }

  get reason(): string {
    return this.#entry.reason;
  }

  /** As that of its event. Made when it is asked for: most entries differ in their times. */
  get position(): string {
    const { at, lastAt } = this.#entry;
    // Some times have milliseconds, and some have not.
    this.#position ??= [
      this.at,
      new Date(lastAt ?? at).toISOString(),
      this.uid,
      String(this.number).padStart(9, '0'),
    ].join(' ');
    return this.#position;
  }

  get id(): string {
    const { at, count, reason, start } = this.#entry;
    this.#id ??= idOf(this.uid, reason, start, count, at);
    return this.#id;
  }

  /** The same entry of a later version of the history, when it stands where it stood. */
  renewed(later: RankedEntry): this | undefined {
    const [mine, theirs] = [this.#entry, later.#entry];
    const isSame =
      this.uid === later.uid &&
      this.number === later.number &&
      this.at === later.at &&
      (mine.lastAt ?? mine.at) === (theirs.lastAt ?? theirs.at) &&
      mine.reason === theirs.reason;
    if (!isSame) return undefined;
    if (mine.at !== theirs.at || mine.start !== theirs.start || mine.count !== theirs.count) this.#id = undefined;
    this.#history = later.#history;
    this.#entry = theirs;
    return this;
  }

  toEvent(): NotifierEvent {
    const { id, position, at } = this;
    const { instance, displayName } = this.#history.spec;
    const data = { instance_id: instance, instance_name: displayName ?? '', ...toEventRecord(this.#entry) };
    return { id, type: typeOf(this.reason), position, at, data };
  }
}

export function rankEntries(history: InstanceHistory): RankedEntry[] {
  return history.spec.entries.map((entry, index) => new RankedEntry(history, entry, index));
}

/** Whether a type of events is asked for. */
export type Wants = (type: string) => boolean;

function budgetType(percent: number): string {
  return percent < 100 ? 'budget.near' : 'budget.spent';
}

function budgetData({ month, renewsAt, percent, lines }: BudgetStatus) {
  return {
    month,
    renews_at: renewsAt,
    percent,
    lines: lines.map(({ unit, max, spent }) => ({ unit, limit: max, spent })),
  };
}

/**
 * What to tell of the budget of the month, beside what was told: that half, four fifths or all of it are
 * spent, the most of these.
 *
 * @param told the month and the per cent of the last event, as a cursor has them: `2026-11 80`
 */
function budgetEvents(limit: TenantLimit | undefined, told: string | undefined): NotifierEvent[] {
  const budget = limit?.status?.budget;
  if (limit === undefined || budget === undefined) return [];
  const { month, percent, at } = budget;
  const [toldMonth = '', toldPercent = ''] = told?.split(' ') ?? [];
  // What an earlier month says that is read late is nothing new.
  if (month < toldMonth) return [];
  const toldUpTo = month === toldMonth ? Number(toldPercent) : 0;
  const reached = WARNINGS.findLast((from) => percent >= from && from > toldUpTo);
  if (reached === undefined) return [];
  const id = idOf(limit.metadata.uid ?? '', month, reached);
  return [{ id, type: budgetType(reached), position: `${month} ${reached}`, at, data: budgetData(budget) }];
}

/** What the stores say of the tenant of a webhook. */
interface Recorded {
  /** The wanted entries behind a position, oldest first. */
  entriesAfter: (position: string, wants: Wants) => Iterable<RankedEntry>;
  limit: TenantLimit | undefined;
}

/** Where a new webhook begins: what is recorded from its creation on. */
export function firstCursor({ metadata }: Pick<Webhook, 'metadata'>): Cursor {
  return { before: rfc3339(new Date(metadata.creationTimestamp ?? 0).getTime()), sent: [] };
}

/** Where events that were delivered stand, by their ids: a cursor has the ids alone. */
export type Positions = ReadonlyMap<string, string>;

interface Due {
  /** The oldest events that the webhook has not, in the order of their delivery. */
  events: NotifierEvent[];
  /** Of the events that the cursor has. */
  positions: Positions;
}

interface DueOptions {
  /** So many events at most. */
  most: number;
  /** Of events that the cursor had at an earlier look: what is known is not looked for. */
  known: Positions;
}

export function findDue(
  { spec }: Pick<Webhook, 'spec'>,
  cursor: Cursor,
  { entriesAfter, limit }: Recorded,
  { most, known }: DueOptions,
): Due {
  const wants = (type: string): boolean => spec.events === undefined || spec.events.includes(type);
  const positions = new Map(cursor.sent.map((id) => [id, known.get(id) ?? '']));
  const missing = new Set(cursor.sent.filter((id) => !known.has(id)));
  const events = budgetEvents(limit, cursor.budget).filter(({ type }) => wants(type));
  for (const one of entriesAfter(cursor.before, wants)) {
    if (positions.has(one.id)) {
      positions.set(one.id, one.position);
      missing.delete(one.id);
    } else if (events.length < most) events.push(one.toEvent());
    // One that the cursor has and no history any more is looked for once.
    if (events.length >= most && missing.size === 0) break;
  }
  return { events, positions };
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
