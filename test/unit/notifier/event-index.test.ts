import { hash } from 'node:crypto';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { INDEXES } from '../../../src/caches/indexes.ts';
import { rfc3339 } from '../../../src/kube/conditions.ts';
import { Cache } from '../../../src/kube/watch/cache.ts';
import { EventIndex } from '../../../src/notifier/event-index.ts';
import { findDue, type NotifierEvent, typeOf } from '../../../src/notifier/events.ts';
import { type HistoryEntry, type InstanceHistory, toEventRecord } from '../../../src/resources/instance-history.ts';
import type { Cursor } from '../../../src/resources/webhook.ts';
import { entry, history, TENANT } from '../../support/notifier-world.ts';

const REASONS = ['Accepted', 'Claimed', 'GPUBecameUnhealthy', 'Ready', 'Stopped'];
const ALL = 10_000;

/** What the index is to find, by looking at every entry of every history and sorting what it finds. */
function slowly(histories: Iterable<InstanceHistory>, after: string, wants: (type: string) => boolean) {
  const found: NotifierEvent[] = [];
  for (const { spec } of histories) {
    const { instanceUid: uid, instance, displayName = '', dropped } = spec;
    for (const [index, one] of spec.entries.entries()) {
      const { at: first, count, lastAt, reason, start } = one;
      const at = one.recordedAt ?? rfc3339(Date.parse(lastAt ?? first));
      const number = String(dropped + index).padStart(9, '0');
      const position = [at, new Date(lastAt ?? first).toISOString(), uid, number].join(' ');
      const facts = [uid, reason, start, count, first].join(' ');
      const id = hash('sha256', facts, 'base64url').slice(0, 16);
      const data = { instance_id: instance, instance_name: displayName, ...toEventRecord(one) };
      if (position > after && wants(typeOf(reason))) found.push({ id, type: typeOf(reason), position, at, data });
    }
  }
  return found.toSorted((a, b) => (a.position < b.position ? -1 : 1));
}

function slowlyDue(histories: Iterable<InstanceHistory>, cursor: Cursor, wants: (type: string) => boolean) {
  const all = slowly(histories, cursor.before, wants);
  return {
    events: all.filter(({ id }) => !cursor.sent.includes(id)),
    positions: new Map(cursor.sent.map((id) => [id, all.find((one) => one.id === id)?.position ?? ''])),
  };
}

function store() {
  const cache = new Cache<InstanceHistory>({
    indexers: INDEXES.histories,
    onListenerError: (error) => {
      throw error;
    },
  });
  cache.replace([], '1');
  return cache;
}

const anyEntry = fc
  .record({
    second: fc.nat(6),
    reason: fc.constantFrom(...REASONS),
    count: fc.integer({ min: 1, max: 3 }),
    start: fc.nat(2),
    again: fc.option(fc.nat(9), { nil: undefined }),
    recorded: fc.boolean(),
  })
  .map(({ second, reason, count, start, again, recorded }) => {
    const { recordedAt, ...rest } = entry(second, reason, { count, start });
    const lastAt = again === undefined ? {} : { lastAt: entry(again, reason).at };
    return { ...rest, ...lastAt, ...(recorded && { recordedAt }) };
  });

/** What makes an entry another one: no history has it twice. */
const selector = ({ at, count, reason, start }: HistoryEntry): string => [at, count, reason, start].join(' ');

/** A history as one write leaves it; undefined: it is removed. */
const anyWrite = fc.record({
  name: fc.constantFrom('a', 'b', 'c'),
  entries: fc.option(fc.uniqueArray(anyEntry, { maxLength: 80, selector }), { nil: undefined }),
  dropped: fc.nat(3),
});

it('finds what a look at every entry finds, whatever was written and removed', () => {
  fc.assert(
    fc.property(
      fc.array(anyWrite, { maxLength: 12 }),
      fc.option(fc.uniqueArray(fc.constantFrom(...REASONS.map(typeOf)), { minLength: 1 }), { nil: undefined }),
      fc.integer({ min: 1, max: 20 }),
      fc.nat(8),
      (writes, types, most, second) => {
        const cache = store();
        const index = new EventIndex(cache.store);
        const spec = { url: '', displayName: '', secretVersion: 1, ...(types && { events: types }) } as never;
        const wants = (type: string): boolean => types === undefined || types.includes(type);
        const recorded = {
          entriesAfter: (position: string) => index.after(TENANT, position, wants),
          limit: undefined,
        };
        const stored = new Map<string, InstanceHistory>();
        for (const { name, entries, dropped } of writes) {
          if (entries === undefined) stored.delete(name);
          else stored.set(name, history(name, entries, dropped));
          cache.replace([...stored.values()], '1');
          const before = entry(second, '').at;
          const all = slowly(stored.values(), before, wants);
          for (const sent of [[], all.filter((_, at) => at % 3 === 0).map(({ id }) => id), ['gone']]) {
            const cursor = { before, sent };
            const expected = slowlyDue(stored.values(), cursor, wants);
            const ids = (events: readonly NotifierEvent[]): string[] => events.map(({ id }) => id);
            const whole = findDue({ spec }, cursor, recorded, { most: ALL, known: new Map() });
            expect(whole.events).toEqual(expected.events);
            const turn = findDue({ spec }, cursor, recorded, { most, known: new Map() });
            expect(ids(turn.events)).toEqual(ids(expected.events).slice(0, most));
            for (const [id, position] of turn.positions)
              expect([id, position]).toEqual([id, expected.positions.get(id)]);
          }
        }
      },
    ),
    { numRuns: 150 },
  );
});

it('looks at no more entries than it gives, however many there are', () => {
  const cache = store();
  const many = Array.from({ length: 300 }, (_, h) =>
    history(
      `h${h}`,
      Array.from({ length: 100 }, (_entry, at) => entry(at, REASONS[at % REASONS.length] ?? '', { start: h })),
    ),
  );
  cache.replace(many, '1');
  const index = new EventIndex(cache.store);
  let looked = 0;
  const recorded = {
    *entriesAfter(position: string) {
      for (const one of index.after(TENANT, position, () => true)) {
        looked += 1;
        yield one;
      }
    },
    limit: undefined,
  };
  const webhook = { spec: { url: '', displayName: '', secretVersion: 1 } };
  const { events } = findDue(webhook, { before: '', sent: [] }, recorded, { most: 65, known: new Map() });
  expect([events.length, looked]).toEqual([65, 65]);
  // A cursor has ids that stand in no history any more: known as such, they are looked for no more.
  const sent = [...events.slice(0, 64).map(({ id }) => id), 'gone'];
  const first = findDue(webhook, { before: '', sent }, recorded, { most: 65, known: new Map() });
  looked = 0;
  const again = findDue(webhook, { before: '', sent }, recorded, { most: 65, known: first.positions });
  expect([again.events, looked]).toEqual([first.events, 129]);
});

it('remembers nothing of a tenant without histories', () => {
  const cache = store();
  const index = new EventIndex(cache.store);
  const all = (): number => [...index.after(TENANT, '', () => true)].length;
  expect(all()).toBe(0);
  cache.replace([history('a', [entry(1, 'Ready')])], '1');
  expect(all()).toBe(1);
  cache.replace([], '2');
  expect(all()).toBe(0);
  cache.replace([history('a', [entry(1, 'Ready')])], '3');
  expect(all()).toBe(1);
});
