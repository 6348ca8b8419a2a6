import { pino } from 'pino';
import { afterEach, expect, it } from 'vitest';
import { BudgetRecords } from '../../../src/controllers/budgets/records.ts';
import { TENANT } from '../../../src/budgets/spending.ts';
import { monthOf } from '../../../src/ledger/month.ts';
import type { Interval } from '../../../src/resources/instances/interval.ts';
import { formatMoney } from '../../../src/resources/money.ts';
import type { TokenRecord } from '../../../src/resources/token-record.ts';
import type { UsageRecord } from '../../../src/resources/usage-record.ts';
import { fakeClock, settle } from '../../support/fake-clock.ts';
import { scriptedClient } from '../../support/scripted-client.ts';

const DAY = 86_400_000;
const HOUR = 3_600_000;

/** A start of an hour that ended at a moment, with a dollar to pay. */
function record(name: string, endedAt: number, version: number, namespace = 'a'): UsageRecord {
  const to = new Date(endedAt).toISOString();
  const sum = { product: 'A100', gpuCount: 1, gpuSeconds: 3600, cost: '1.00', currency: 'USD' };
  const interval = { ...sum, start: 7, from: new Date(endedAt - HOUR).toISOString(), to, pricePerHour: '1.00' };
  const own = { instance: name, instanceUid: `uid-${name}`, endedAt: to };
  return {
    metadata: { namespace, name, resourceVersion: String(version) },
    spec: { ...own, ...sum, intervals: [{ ...interval, createdBy: 'key/ci' }] },
  };
}

/** What a replica has counted on a day. */
function tokens(day: string, cost: string, version: number): TokenRecord {
  const counts = { calls: 1, unreported: 0, inputTokens: 1, cachedInputTokens: 0, outputTokens: 1 };
  const prices = { inputPrice: '1', cachedInputPrice: '1', outputPrice: '1' };
  const entries = [{ by: 'key/ci', model: 'm', ...prices, ...counts, cost }];
  return {
    metadata: { namespace: 'a', name: 'tokens', resourceVersion: String(version) },
    spec: { day, replica: 'r', calls: 1, cost, currency: 'USD', entries },
  };
}

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

function world() {
  const clock = fakeClock();
  clock.jumpWall(40 * DAY);
  const script = scriptedClient<UsageRecord>();
  // What else the caller has: none of it is for the watch.
  const beside = { metrics: () => undefined };
  const logged: unknown[] = [];
  const log = pino({ level: 'error' }, { write: (line: string) => logged.push(JSON.parse(line).record) });
  const deps = { ...beside, client: script.client, clock, random: () => 0, log };
  const records = new BudgetRecords(deps);
  closing.push(() => records.close());
  const changed: (string | undefined)[] = [];
  records.onChange((namespace) => changed.push(namespace));
  const end = (version: number) => {
    const annotations = { 'k8s.io/initial-events-end': 'true' };
    return { type: 'BOOKMARK', object: { metadata: { resourceVersion: String(version), annotations } } };
  };
  const spent = (namespace: string, owner = TENANT): string | undefined => {
    const cost = records.at(clock.now())?.spending.of(namespace, owner)?.costs.get('USD');
    return cost === undefined ? undefined : formatMoney(cost);
  };
  /** The watches of usage records, or of token records, in their order. */
  const watchesOf = (kind: 'usagerecords' | 'tokenrecords') =>
    script.watches.filter(({ path }) => path.endsWith(`/${kind}`));
  return { clock, records, changed, logged, spent, end, watchesOf, ...script };
}

it('reads nothing before it is asked, then the records of the month, and follows them', async () => {
  const { clock, records, changed, spent, end, watches, watchesOf } = world();
  await settle();
  expect(watches).toEqual([]);
  expect(records.at(clock.now())).toBeUndefined();
  await settle();
  for (const { query } of watches)
    expect(query['labelSelector']).toMatch(/^berth\.dev\/ended notin \(2026-01,2025-12,/);
  const now = clock.now();
  watchesOf('usagerecords')[0]?.send({ type: 'ADDED', object: record('one', now, 5) }, end(6));
  await settle();
  expect(spent('a')).toBeUndefined();
  watchesOf('tokenrecords')[0]?.send(end(6));
  await settle();
  expect([spent('a'), spent('a', 'key/ci'), spent('b')]).toEqual(['1.00', '1.00', undefined]);
  // All that wait for the records learn that they are there.
  expect(changed).toContain(undefined);
  const known = records.at(now);
  expect([known?.isRecorded('uid-one', 7), known?.isRecorded('uid-one', 8), known?.isRecorded('uid-two', 7)]).toEqual([
    true,
    false,
    false,
  ]);
  changed.length = 0;
  watchesOf('usagerecords')[1]?.send({ type: 'ADDED', object: record('two', now, 8, 'b') });
  await settle();
  expect([changed, spent('b')]).toEqual([['b'], '1.00']);
  watchesOf('usagerecords')[1]?.send({ type: 'DELETED', object: record('one', now, 9) });
  await settle();
  expect(spent('a')).toBeUndefined();
});

it('leaves out a record that cannot be read, as a whole, and the instance counts for itself', async () => {
  const { clock, records, spent, end, watchesOf, logged } = world();
  records.at(clock.now());
  await settle();
  const now = clock.now();
  const good = record('one', now, 4);
  const bad = record('two', now, 5);
  const half = { ...bad, spec: { ...bad.spec, intervals: [...(bad.spec.intervals ?? [])] } };
  half.spec.intervals.push({ ...(half.spec.intervals[0] as Interval), start: 8, cost: '12,50' });
  const today = new Date(now).toISOString().slice(0, 10);
  watchesOf('usagerecords')[0]?.send({ type: 'ADDED', object: good }, { type: 'ADDED', object: half }, end(6));
  watchesOf('tokenrecords')[0]?.send({ type: 'ADDED', object: tokens(today, '-5', 5) }, end(6));
  await settle();
  expect([spent('a'), spent('a', 'key/ci')]).toEqual(['1.00', '1.00']);
  const known = records.at(now);
  expect([known?.isRecorded('uid-one', 7), known?.isRecorded('uid-two', 7)]).toEqual([true, false]);
  expect(logged).toEqual(['a/two', 'a/tokens']);
  watchesOf('usagerecords')[1]?.send({
    type: 'DELETED',
    object: { ...half, metadata: { ...half.metadata, resourceVersion: '9' } },
  });
  await settle();
  expect(spent('a')).toBe('1.00');
});

it.each([
  ['a month begins', 31 * DAY],
  ['a clock goes back by months', -60 * DAY],
  ['a clock jumps ahead by years', 800 * DAY],
])('reads anew when %s', async (_what, jump) => {
  const { clock, records, spent, end, watchesOf } = world();
  records.at(clock.now());
  await settle();
  watchesOf('usagerecords')[0]?.send({ type: 'ADDED', object: record('one', clock.now(), 5) }, end(6));
  watchesOf('tokenrecords')[0]?.send(end(6));
  await settle();
  expect(spent('a')).toBe('1.00');
  clock.jumpWall(jump);
  expect(records.at(clock.now())).toBeUndefined();
  await settle();
  const [known, old] = [watchesOf('tokenrecords'), watchesOf('usagerecords')];
  expect([...known.slice(0, -1), ...old.slice(0, -1)].every(({ closed }) => closed)).toBe(true);
  watchesOf('usagerecords')
    .at(-1)
    ?.send({ type: 'ADDED', object: record('one', clock.now() - jump, 5) }, end(6));
  watchesOf('tokenrecords').at(-1)?.send(end(6));
  await settle();
  expect([records.at(clock.now()) !== undefined, spent('a')]).toEqual([true, undefined]);
});

it('leaves out the silences of a node on both sides of the beginning of a month', async () => {
  const { clock, records, spent, end, watchesOf } = world();
  const month = monthOf(clock.now()).from;
  records.at(clock.now());
  await settle();
  const time = (hours: number): string => new Date(month + hours * HOUR).toISOString();
  const whole = record('one', month + 12 * HOUR, 5);
  const sums = { gpuSeconds: 24 * 3600, cost: '24.00' };
  const silences = [{ from: time(-18), to: time(-6) }];
  const intervals = whole.spec.intervals?.map((one) => ({ ...one, ...sums, from: time(-24), silences }));
  const spec = { ...whole.spec, ...sums, ...(intervals && { intervals }) };
  watchesOf('usagerecords')[0]?.send({ type: 'ADDED', object: { ...whole, spec } }, end(6));
  watchesOf('tokenrecords')[0]?.send(end(6));
  await settle();
  expect(spent('a')).toBe('12.00');
});

it('counts what calls to models cost as their records grow, in the month of their day', async () => {
  const { clock, records, changed, spent, end, watchesOf } = world();
  records.at(clock.now());
  await settle();
  watchesOf('usagerecords')[0]?.send(end(6));
  const today = new Date(clock.now()).toISOString().slice(0, 10);
  watchesOf('tokenrecords')[0]?.send({ type: 'ADDED', object: tokens(today, '0.10', 5) }, end(6));
  await settle();
  expect([spent('a'), spent('a', 'key/ci'), spent('a', 'key/other')]).toEqual(['0.10', '0.10', undefined]);
  changed.length = 0;
  const last = watchesOf('tokenrecords').at(-1);
  last?.send({ type: 'MODIFIED', object: tokens(today, '0.30', 7) });
  await settle();
  expect([changed, spent('a')]).toEqual([['a'], '0.30']);
  last?.send({
    type: 'ADDED',
    object: { ...tokens('1970-01-31', '5.00', 8), metadata: { namespace: 'a', name: 'old' } },
  });
  await settle();
  expect(spent('a')).toBe('0.30');
});
