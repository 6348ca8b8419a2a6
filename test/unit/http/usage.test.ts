import { afterEach, expect, it } from 'vitest';
import { toCsv } from '../../../src/http/features/usage/routes.ts';
import { daysOf } from '../../../src/http/features/usage/days.ts';
import { monthsBefore } from '../../../src/ledger/month.ts';
import { usageSchema } from '../../../src/http/features/usage/schema.ts';
import { usageRecords } from '../../../src/controllers/gpu-instance/decide/usage.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { intervalOf } from '../../../src/ledger/interval.ts';
import type { Claim, GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { TOKEN_RECORDS, type TokenRecord } from '../../../src/resources/token-record.ts';
import { usageRecordSpecSchema, type UsageRecord } from '../../../src/resources/usage-record.ts';
import { type LoneApi, startLoneApi } from '../../support/http/lone-api.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';
import { waitFor } from '../../support/wait-for.ts';

const START = Date.UTC(2026, 0, 1);
const NO_TOKENS = { calls: 0, input_tokens: 0, cached_input_tokens: 0, output_tokens: 0 };
const HEAD = 'group,product,gpu_seconds,cost,currency,open,calls,input_tokens,cached_input_tokens,output_tokens,name';
const at = (ms: number): string => new Date(START + ms).toISOString();

let api: LoneApi | undefined;
afterEach(() => api?.close());

function of(namespace: string, instance: GpuInstance): GpuInstance {
  return { ...instance, metadata: { ...instance.metadata, namespace } };
}

/** An instance that is up since the first of January. */
function running(name: string, claim: Partial<Claim> = {}): GpuInstance {
  return gpuInstance(name, {}, { claim: claimOn('n', claim), incarnation: 1, stages: { ready: at(0) } });
}

/** The record of an instance that ran for so long. */
function record(name: string, ms: number, claim: Partial<Claim> = {}): UsageRecord[] {
  const instance = running(name, claim);
  const interval = intervalOf(instance.status ?? {}, START + ms);
  return usageRecords({ ...instance, status: { incarnation: 1, intervals: interval ? [interval] : [] } }, START);
}

async function serve(
  instances: readonly GpuInstance[],
  pages: readonly (readonly UsageRecord[])[],
  {
    beforeList = () => Promise.resolve(),
    tokens = [],
  }: { beforeList?: () => Promise<void>; tokens?: readonly TokenRecord[] } = {},
) {
  // The timers of the server are real ones.
  const clock = { ...systemClock(), now: () => START + 10_000 };
  const asked: unknown[] = [];
  api = await startLoneApi({
    tenants: ['a', 'b', 'models'],
    keys: { models: { scopes: ['models'] }, a: { displayName: 'audit' } },
    instances,
    clock,
    client: {
      async list(type, options = {}) {
        await beforeList();
        asked.push([options.namespace, options.limit, options.labelSelector]);
        if (type.kind === TOKEN_RECORDS.kind) {
          const found = tokens.filter(({ metadata }) => metadata.namespace === options.namespace);
          return { items: found as never[], resourceVersion: '1' };
        }
        const page = Number(options.continue ?? 0);
        const items = (options.namespace === 'a' ? (pages[page] ?? []) : []) as never[];
        const next = page + 1 < pages.length ? { continue: String(page + 1) } : {};
        return { items, resourceVersion: '1', ...next };
      },
    },
  });
  const { port } = api.address;
  const get = async (query: string, { tenant = 'a', accept = '*/*' } = {}) => {
    const headers = { authorization: `Bearer ${tenant}`, accept };
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/usage${query}`, { headers });
    return { status: answer.status, type: answer.headers.get('content-type'), text: await answer.text() };
  };
  return { get, asked };
}

it('adds up what runs and what is recorded on all pages, of the tenant alone', async () => {
  const own = [of('a', running('up', { createdBy: 'key/ci' })), of('b', running('other'))];
  const pages = [record('one', 3000), record('two', 4000, { gpuCount: 2 })];
  const { get, asked } = await serve(own, pages);
  const answer = usageSchema.parse(JSON.parse((await get('?group=instance')).text));
  expect(answer).toMatchObject({ from: '2026-01-01', to: '2026-01-01', at: at(10_000), currency: 'USD' });
  expect(answer.items.map(({ group, gpu_seconds: seconds, open }) => [group, seconds, open])).toEqual([
    ['one', 3, false],
    ['two', 8, false],
    ['up', 10, true],
  ]);
  expect(answer.totals).toEqual([{ gpu_seconds: 21, cost: '0.004722', currency: 'USD', open: true, ...NO_TOKENS }]);
  const byKey = usageSchema.parse(JSON.parse((await get('?group=key')).text));
  expect(byKey.items.map(({ group }) => group)).toEqual(['key/ci', 'kubernetes']);
  expect(byKey.totals[0]).toMatchObject({ gpu_seconds: 21 });
  const theirs = usageSchema.parse(JSON.parse((await get('', { tenant: 'b' })).text));
  expect(theirs.items).toMatchObject([{ group: '2026-01-01', gpu_seconds: 10 }]);
  expect(asked[0]).toEqual(['a', 25, expect.stringMatching(/^berth\.dev\/ended notin \(2025-12,2025-11,.*2024-01\)$/)]);
  expect(new Set(asked.map((one) => (one as string[])[0]))).toEqual(new Set(['a', 'b']));
});

it('has the names that people gave instances and keys, beside their ids', async () => {
  const named = running('up', { createdBy: 'key/key' });
  const { get } = await serve(
    [of('a', { ...named, spec: { ...named.spec, displayName: 'train' } })],
    [record('one', 3000)],
  );
  const names = async (group: string) =>
    usageSchema.parse(JSON.parse((await get(`?group=${group}`)).text)).items.map(({ group: id, name }) => [id, name]);
  expect(await names('instance')).toEqual([
    ['one', null],
    ['up', 'train'],
  ]);
  expect(await names('key')).toEqual([
    ['key/key', 'audit'],
    ['kubernetes', null],
  ]);
  expect(await names('day')).toEqual([['2026-01-01', null]]);
});

it('is the same as CSV', async () => {
  const { get } = await serve([], [record('one', 3000)]);
  const csv = `${HEAD}\r\n`;
  const line = '2026-01-01,NVIDIA-A100-SXM4-80GB,3,0.000833,USD,false,0,0,0,0,\r\n';
  for (const answer of [await get('?format=csv'), await get('', { accept: 'text/csv' })]) {
    expect(answer).toEqual({ status: 200, type: 'text/csv; charset=utf-8', text: csv + line });
  }
  expect((await get('?format=json', { accept: 'text/csv' })).type).toContain('application/json');
});

it('names what cannot be read, counts nothing of it, and tells the rest right', async () => {
  const [good] = record('one', 3000);
  if (good === undefined) throw new Error('no record');
  const broken = (name: string, spec: Partial<UsageRecord['spec']>): UsageRecord => {
    const { intervals: _none, ...sum } = good.spec;
    const adjustment = { type: 'Credit' as const, reason: 'The node was slow.' };
    return { metadata: { name }, spec: { ...sum, adjustment, ...spec } };
  };
  const [first] = good.spec.intervals ?? [];
  const halves = first && { adjustment: undefined, intervals: [first, { ...first, start: 2, cost: '1e3' }] };
  const records = [
    broken('comma', { cost: '12,50' }),
    broken('sign', { cost: '-5' }),
    broken('soon', { endedAt: 'soon' }),
    broken('endless', { gpuSeconds: 1e308 }),
    broken('half', { ...halves }),
  ];
  const entry = tokenRecord('a', 'bad', 'key/ci');
  const tokens = [
    tokenRecord('a', 'one', 'key/ci'),
    { ...entry, spec: { ...entry.spec, entries: entry.spec.entries.map((one) => ({ ...one, cost: 'much' })) } },
    { ...entry, metadata: { name: 'noday', namespace: 'a' }, spec: { ...entry.spec, day: '2026-99-99' } },
  ];
  const { get } = await serve([], [[...records, good]], { tokens });
  const { status, text } = await get('');
  const answer = usageSchema.parse(JSON.parse(text));
  expect([status, answer.totals.map(({ cost }) => cost)]).toEqual([200, ['0.000911']]);
  const names = ['UsageRecord/comma', 'UsageRecord/sign', 'UsageRecord/soon', 'UsageRecord/endless'];
  names.push('UsageRecord/half', 'TokenRecord/tokens-bad', 'TokenRecord/noday');
  expect(answer.unreadable).toEqual(names);
  const csv = (await get('?format=csv')).text.split('\r\n');
  expect(csv.filter((line) => line.startsWith('unreadable/'))).toEqual(
    names.map((name) => `unreadable/${name},,,,,,,,,,`),
  );
});

it.each(['12,50', '-5', '+5', '1e3', '.5', '5.', '', '1.1234567'])(
  'no record can be made with "%s" as an amount',
  (cost) => {
    const [good] = record('one', 3000);
    const [first] = good?.spec.intervals ?? [];
    expect(usageRecordSpecSchema.safeParse(good?.spec).success).toBe(true);
    expect(usageRecordSpecSchema.safeParse({ ...good?.spec, cost }).error?.issues[0]?.message).toMatch(
      /^write a decimal/,
    );
    const intervals = [{ ...first, pricePerHour: cost }];
    expect(usageRecordSpecSchema.safeParse({ ...good?.spec, intervals }).success).toBe(false);
  },
);

/** What one replica counted for a tenant on the first of January. */
function tokenRecord(namespace: string, replica: string, by: string): TokenRecord {
  const prices = { inputPrice: '1.00', cachedInputPrice: '0.10', outputPrice: '2.00' };
  const counts = { calls: 2, unreported: 1, inputTokens: 100, cachedInputTokens: 40, outputTokens: 7 };
  const entry = { by, model: 'qwen', ...prices, ...counts, cost: '0.000078' };
  return {
    metadata: { name: `tokens-${replica}`, namespace },
    spec: { day: '2026-01-01', replica, calls: 2, cost: entry.cost, currency: 'USD', entries: [entry] },
  };
}

it('adds up what all replicas counted of the calls to models, beside what instances cost', async () => {
  const tokens = [
    tokenRecord('a', 'one', 'key/ci'),
    tokenRecord('a', 'two', 'person/ann'),
    tokenRecord('b', 'one', 'key/ci'),
  ];
  const { get } = await serve([of('a', running('up', { createdBy: 'key/ci' }))], [], { tokens });
  const read = async (query: string) => usageSchema.parse(JSON.parse((await get(query)).text));
  const counts = { calls: 4, input_tokens: 200, cached_input_tokens: 80, output_tokens: 14 };
  const total = { gpu_seconds: 10, cost: '0.002934', currency: 'USD', open: true, ...counts };
  for (const group of ['day', 'instance', 'key', 'model'])
    expect((await read(`?group=${group}`)).totals).toEqual([total]);
  expect((await read('?group=model')).items).toEqual([
    { ...total, ...NO_TOKENS, group: 'instances', name: null, product: 'NVIDIA-A100-SXM4-80GB', cost: '0.002778' },
    { ...total, group: 'model/qwen', name: null, product: null, gpu_seconds: 0, cost: '0.000156', open: false },
  ]);
  expect((await read('?group=key')).items.map(({ group, calls, cost }) => [group, calls, cost])).toEqual([
    ['key/ci', 2, '0.002856'],
    ['person/ann', 2, '0.000078'],
  ]);
  const csv = (await get('?group=model&format=csv')).text.split('\r\n');
  expect(csv[2]).toBe('model/qwen,,0,0.000156,USD,false,4,200,80,14,');
});

it('names instances that are gone as their records do, and those that are there as they are called now', async () => {
  const named = (name: string, displayName: string): UsageRecord[] =>
    record(name, 3000).map((one) => ({ ...one, spec: { ...one.spec, displayName } }));
  const there = running('there');
  const { get } = await serve(
    [of('a', { ...there, spec: { ...there.spec, displayName: 'renamed' } })],
    [[...named('gone', 'training'), ...named('there', 'once'), ...record('nameless', 3000)]],
  );
  const { items } = usageSchema.parse(JSON.parse((await get('?group=instance')).text));
  expect(Object.fromEntries(items.map(({ group, name }) => [group, name]))).toEqual({
    gone: 'training',
    there: 'renamed',
    nameless: null,
  });
  const byDay = usageSchema.parse(JSON.parse((await get('?group=day')).text));
  expect(byDay.items.map(({ name }) => name)).toEqual([null]);
});

it('refuses days that make no sense, other groups, and keys without the scope', async () => {
  const { get, asked } = await serve([], []);
  const wrong = ['?from=2026-02-30', '?from=yesterday', '?group=node', '?format=xml'];
  for (const query of [...wrong, '?day=1']) {
    const { status, text } = await get(query);
    expect([query, status, (JSON.parse(text) as { error: { code: string } }).error.code]).toEqual([
      query,
      422,
      'validation_failed',
    ]);
  }
  expect((await get('', { tenant: 'models' })).status).toBe(403);
  expect(asked).toEqual([]);
});

it('a tenant that reads again and again leaves room for another', async () => {
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => (release = resolve));
  let reads = 0;
  const { get } = await serve([], [], {
    beforeList: () => {
      reads += 1;
      return held;
    },
  });
  const many = Array.from({ length: 12 }, () => get(''));
  await waitFor('the readings', () => reads >= 4);
  const theirs = get('', { tenant: 'b' });
  await waitFor('the reading of the other', () => reads >= 5);
  release();
  const statuses = new Set((await Promise.all(many)).map(({ status }) => status));
  expect([(await theirs).status, statuses]).toEqual([200, new Set([200, 503])]);
});

it('the days are those of this month, unless the query names others', () => {
  const now = Date.UTC(2026, 10, 23, 12);
  expect(daysOf({}, now)).toMatchObject({ first: '2026-11-01', last: '2026-11-23', to: Date.UTC(2026, 10, 24) });
  expect(daysOf({ to: '2026-10-15' }, now)).toMatchObject({ first: '2026-10-01', last: '2026-10-15' });
  expect(daysOf({ from: '2026-12-05' }, now)).toMatchObject({ first: '2026-12-05', last: '2026-12-05' });
  expect(daysOf({ from: '2026-12-05', to: '2026-12-01' }, now)).toMatchObject({ from: Date.UTC(2026, 11, 5) });
  for (const day of ['0000-01-01', '0020-02-29', '9999-12-31']) {
    const { from, to } = daysOf({ from: day, to: day }, now);
    expect(to - from).toBe(86_400_000);
    expect(monthsBefore(from).every((month) => /^\d{4}-\d{2}$/.test(month))).toBe(true);
  }
  expect(monthsBefore(Date.UTC(2026, 0, 31)).slice(0, 2)).toEqual(['2025-12', '2025-11']);
});

it('a credit is a number for a spreadsheet', () => {
  const item = { group: 'adjustment', name: '-5', product: null, gpu_seconds: -1.5, currency: 'USD', open: false };
  const text = toCsv({ items: [{ ...item, cost: '-7.25', ...NO_TOKENS }] });
  expect(text.split('\r\n')[1]).toBe('adjustment,,-1.5,-7.25,USD,false,0,0,0,0,-5');
});

it('a spreadsheet runs no formula that a person chose as a name', () => {
  const item = { name: null, product: null, gpu_seconds: 1, cost: '1.00', currency: 'USD', open: false, ...NO_TOKENS };
  const text = toCsv({
    items: [
      { ...item, group: '=HYPERLINK("http://x")' },
      { ...item, group: 'person/a,b', name: '+1' },
    ],
  });
  expect(text.split('\r\n').slice(1, 3)).toEqual([
    `"'=HYPERLINK(""http://x"")",,1,1.00,USD,false,0,0,0,0,`,
    `"person/a,b",,1,1.00,USD,false,0,0,0,0,'+1`,
  ]);
});
