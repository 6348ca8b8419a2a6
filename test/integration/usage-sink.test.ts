import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { createKey } from '../../src/access/create-key.ts';
import { usageSchema } from '../../src/http/features/usage/schema.ts';
import { monthOf } from '../../src/ledger/month.ts';
import { intervalOf } from '../../src/ledger/interval.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../src/resources/instances/gpu-instance.ts';
import type { Interval } from '../../src/resources/instances/interval.ts';
import { addMoney, formatMoney, parseMoney } from '../../src/resources/money.ts';
import { TOKEN_RECORDS, type TokenRecord } from '../../src/resources/token-record.ts';
import { ENDED_LABEL, USAGE_RECORDS, type UsageRecord } from '../../src/resources/usage-record.ts';
import { Postgres, INSERT } from '../../src/sink/postgres.ts';
import { chargesOfRecord } from '../../src/sink/usage-charges.ts';
import { ROOT } from '../../tools/lib/paths.ts';
import { clusterAccount, tokenOf } from '../support/accounts.ts';
import { type BerthProcess, startBerth } from '../support/berth-process.ts';
import { type Call, clientOf } from '../support/http/client.ts';
import { claimOn } from '../support/inventory-world.ts';
import { hasPostgres, type Postgres as Server, startPostgres } from '../support/postgres.ts';
import { type TestNamespace, testNamespace } from '../support/test-cluster.ts';
import { waitFor } from '../support/wait-for.ts';

const MAIN = join(ROOT, 'src/main.ts');
const MINUTE = 60_000;
const DAY = 86_400_000;
/** More than two batches. */
const RECORDS = 1300;
/** Calls of the API server at a time. */
const AT_ONCE = 25;

const NOW = Date.now();
const THIS_MONTH = monthOf(NOW);
const LAST_MONTH = monthOf(THIS_MONTH.from - 1);
const text = (ms: number): string => new Date(ms).toISOString();
const day = (ms: number): string => text(ms).slice(0, 10);

interface Outcome {
  code: number | null;
  out: string;
}

function start(from: number, ms: number, claim: Parameters<typeof claimOn>[1] = {}, number = 1): Interval {
  const status = { claim: claimOn('n', claim), incarnation: number, stages: { ready: text(from) } };
  const found = intervalOf(status, from + ms);
  if (found === undefined) throw new Error('the interval is empty');
  return found;
}

function record(namespace: string, name: string, interval: Interval): UsageRecord {
  const { gpuSeconds, cost, currency, product, gpuCount, to } = interval;
  const instanceUid = `uid-${name}`;
  return {
    metadata: { namespace, name, labels: { [ENDED_LABEL]: to.slice(0, 7) } },
    spec: {
      instance: name,
      instanceUid,
      product,
      gpuCount,
      gpuSeconds,
      cost,
      currency,
      endedAt: to,
      intervals: [interval],
    },
  };
}

async function all<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  for (let index = 0; index < items.length; index += AT_ONCE)
    await Promise.all(items.slice(index, index + AT_ONCE).map(work));
}

describe.skipIf(!(await hasPostgres()))('the sink of bills', { timeout: 300_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-sink-'));
  const kubeconfig = join(folder, 'kubeconfig');
  let server: Server;
  let tenant: TestNamespace;
  let berth: BerthProcess;
  let call: Call;
  let records: UsageRecord[];
  let removeRights: () => Promise<void>;
  /** All that any run has printed. */
  let printed = '';

  function begin(url: string, args: readonly string[] = []): { child: ChildProcess; done: Promise<Outcome> } {
    const env = { ...process.env, KUBECONFIG: kubeconfig, BERTH_SINK_URL: url };
    const child = spawn(process.execPath, [MAIN, 'export-usage', ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    let out = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (more: string) => (out += more));
    const done = once(child, 'close').then(([code]) => {
      printed += out;
      return { code: code as number | null, out };
    });
    return { child, done };
  }

  const run = (url: string, args: readonly string[] = []): Promise<Outcome> => begin(url, args).done;

  /** The tenant's rows: how many, and what they cost by month and currency. */
  async function rowsIn(url: string): Promise<{ count: number; sums: Record<string, string> }> {
    const found = await server.query<{ month: Date; currency: string; cost: string; count: string }>(
      url,
      `SELECT "BillingPeriodStart" AS month, "BillingCurrency" AS currency, sum("BilledCost")::text AS cost, count(*) AS count
      FROM berth_usage WHERE "BillingAccountId" = '${tenant.name}' GROUP BY 1, 2`,
    );
    const sums = found.map(({ month, currency, cost }): [string, string] => {
      const [whole = '', fraction = ''] = cost.replace('-', '').split('.');
      const exact = formatMoney(parseMoney(fraction === '' ? whole : `${whole}.${fraction}`));
      return [`${month.toISOString().slice(0, 7)} ${currency}`, cost.startsWith('-') ? `-${exact}` : exact];
    });
    return { count: found.reduce((sum, { count }) => sum + Number(count), 0), sums: Object.fromEntries(sums) };
  }

  /** What the interface says, in the same words. */
  async function usage(): Promise<Record<string, string>> {
    const sums: Record<string, string> = {};
    for (const { name, from, to } of [LAST_MONTH, THIS_MONTH]) {
      const { json } = await call('GET', `/usage?from=${day(from)}&to=${day(to - 1)}`);
      for (const { currency, cost } of usageSchema.parse(json).totals) sums[`${name} ${currency}`] = cost;
    }
    return sums;
  }

  /** A kubeconfig with the rights of the chart's CronJob, and no others. */
  async function lendRights(): Promise<void> {
    const kept = readFileSync(join(ROOT, 'charts/berth/tests/__snapshot__/usage_sink_test.yaml.snap'), 'utf8');
    const [rules] = Object.values(parse(kept) as Record<string, Record<number, string>>);
    const everywhere = parse(rules?.[1] ?? '') as Parameters<typeof clusterAccount>[3]['everywhere'];
    const { client, name } = tenant;
    const rights = await clusterAccount(client, name, 'usage-sink', { rules: [], everywhere });
    removeRights = rights.remove;
    const token = await tokenOf(client, name, 'usage-sink', []);
    const admin = parse(readFileSync(inject('cluster').kubeconfig, 'utf8')) as { users: object[] };
    const users = admin.users.map((user) => ({ ...user, user: { token } }));
    writeFileSync(kubeconfig, stringify({ ...admin, users }), { mode: 0o600 });
  }

  async function makeBills(): Promise<void> {
    const { name: namespace, client } = tenant;
    // One in ten runs over the end of the month, at prices that do not divide evenly.
    const prices = ['2.49', '0.333333', '98.765432'];
    records = Array.from({ length: RECORDS }, (_, index) => {
      const from = index % 10 === 0 ? THIS_MONTH.from - MINUTE - index : LAST_MONTH.from + index * 2 * MINUTE;
      const claim = { pricePerHour: prices[index % 3] ?? '', currency: index % 7 === 0 ? 'EUR' : 'USD' };
      return record(namespace, `bill-${index}`, start(from, MINUTE + 2 * index + 1, claim));
    });
    const { intervals: _intervals, ...spec } = record(namespace, 'credit', start(THIS_MONTH.from, 1)).spec;
    const adjustment = { type: 'Credit' as const, reason: 'The node was slow.' };
    // As the manual has it, and without a label.
    const credit = { ...spec, instanceUid: '', cost: '1.50', endedAt: text(THIS_MONTH.from + MINUTE), adjustment };
    await all([...records, { metadata: { namespace, name: 'credit' }, spec: credit }], (one) =>
      client.create(USAGE_RECORDS, one),
    );
    const entry = {
      by: 'key/ci',
      model: 'tiny',
      inputPrice: '0.333333',
      cachedInputPrice: '0.05',
      outputPrice: '1.10',
    };
    const counts = { calls: 3, unreported: 0, inputTokens: 303, cachedInputTokens: 120, outputTokens: 39 };
    const entries = [{ ...entry, ...counts, cost: '0.00011' }];
    const tokens: TokenRecord = {
      metadata: { namespace, name: 'tokens', labels: { [ENDED_LABEL]: day(NOW - 5 * DAY).slice(0, 7) } },
      spec: { day: day(NOW - 5 * DAY), replica: 'api-1', calls: 3, cost: '0.00011', currency: 'EUR', entries },
    };
    await client.create(TOKEN_RECORDS, tokens);
    const ref = { namespace, name: 'stopped' };
    const wanted = { gpu: { product: 'NVIDIA-A100-SXM4-80GB', count: 1 }, powerState: 'Stopped' };
    await client.create(GPU_INSTANCES, { metadata: ref, spec: wanted } as unknown as GpuInstance);
    const intervals = [start(LAST_MONTH.from, MINUTE, {}, 1), start(LAST_MONTH.from + DAY, MINUTE, {}, 2)];
    const cost = intervals.map((one) => one.cost).reduce(addMoney, '0.00');
    const bill = { gpuSeconds: 120, cost, currency: 'USD', until: intervals[1]?.to ?? '' };
    const status = { incarnation: 2, intervals, usage: bill, lastProduct: { product: 'A100', gpuCount: 1 } };
    await client.patch(GPU_INSTANCES, ref, { status }, { type: 'merge', subresource: 'status' });
  }

  beforeAll(async () => {
    server = await startPostgres();
    tenant = await testNamespace();
    await lendRights();
    await makeBills();
    berth = await startBerth(inject('cluster').kubeconfig, 'api', await tenant.home());
    const key = await createKey(tenant.client, { namespace: tenant.name, displayName: 'sink' });
    call = clientOf(berth.url, key.token);
    await waitFor('the key', async () => (await call('GET', '/usage')).status === 200);
  }, 300_000);
  afterAll(async () => {
    await berth[Symbol.asyncDispose]();
    await removeRights();
    await tenant[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  it('has what GET /usage says, by month and to the smallest unit, however often it is written', async () => {
    const url = await server.database('bills');
    const first = await run(url);
    expect(first.out).toContain('The sink has every charge that was read.');
    expect(first.code).toBe(0);
    const rows = await rowsIn(url);
    // One for each part of a start, three for the tokens, one for the correction, two for the instance that is there.
    const parts = records.flatMap(chargesOfRecord);
    expect(parts.length).toBeGreaterThan(RECORDS);
    expect(rows.count).toBe(parts.length + 6);
    expect(Object.keys(rows.sums).length).toBeGreaterThanOrEqual(4);
    expect(rows.sums).toEqual(await usage());
    for (const args of [[], ['--all']]) {
      expect((await run(url, args)).code).toBe(0);
      expect(await rowsIn(url)).toEqual(rows);
    }
  });

  it('goes on after it was killed in the middle', async () => {
    const url = await server.database('killed');
    await (await Postgres.open(url)).close();
    // A row that somebody else is about to write holds up the batch that it is in.
    const parts = records.flatMap(chargesOfRecord);
    const held = parts.find(({ row }) => row.ResourceName === 'bill-500');
    const holder = new Client({ connectionString: url });
    await holder.connect();
    await holder.query('BEGIN');
    await holder.query(INSERT, [JSON.stringify([held?.row])]);
    const { child, done } = begin(url);
    const waiting = `SELECT 1 FROM pg_stat_activity
      WHERE application_name = 'berth export-usage' AND datname = 'killed' AND wait_event_type = 'Lock'`;
    await waitFor('the export to be in the middle', async () => (await server.query(url, waiting)).length > 0);
    child.kill('SIGKILL');
    expect((await done).code).toBeNull();
    await holder.query('ROLLBACK');
    await holder.end();
    const before = await rowsIn(url);
    expect(before.count).toBeGreaterThan(0);
    expect(await server.query(url, 'SELECT complete_at FROM berth_sink')).toEqual([{ complete_at: null }]);
    expect((await run(url)).code).toBe(0);
    const after = await rowsIn(url);
    expect(after.count).toBeGreaterThan(before.count);
    expect(after.sums).toEqual(await usage());
  });

  it('is the same when two runs meet', async () => {
    const url = await server.database('meeting');
    const both = await Promise.all([run(url), run(url)]);
    expect(both.map(({ code }) => code)).toEqual([0, 0]);
    expect((await rowsIn(url)).sums).toEqual(await usage());
  });

  it('says that a row has another cost, and leaves it', async () => {
    const url = await server.database('changed');
    expect((await run(url)).code).toBe(0);
    const complete = 'SELECT complete_at FROM berth_sink';
    const before = await server.query(url, complete);
    await server.query(url, `UPDATE berth_usage SET "BilledCost" = 7 WHERE "ResourceName" = 'bill-1'`);
    const { code, out } = await run(url);
    expect(code).toBe(1);
    expect(out).toMatch(/USD .* DIFFERS$/m);
    expect(out).toContain(`The first: start/${tenant.name}/bill-1/1/`);
    expect(await server.query(url, `SELECT 1 FROM berth_usage WHERE "BilledCost" = 7`)).toHaveLength(1);
    expect(await server.query(url, complete)).toEqual(before);
  });

  it('says in one line why it cannot reach the database or the cluster', async () => {
    const url = await server.database('bills');
    for (const wrong of [url.replace('Sink', 'Sunk'), url.replace('sslmode=disable', ''), 'postgresql://']) {
      const { code, out } = await run(wrong);
      expect([code, out.trim().split('\n').length]).toEqual([1, 1]);
      expect(out).toContain('BERTH_SINK_URL');
    }
  });

  it('keeps the rows of a month that is deleted from the cluster', async () => {
    const url = await server.database('bills');
    const before = await rowsIn(url);
    const { client, name: namespace } = tenant;
    await all(records, ({ metadata, spec }) =>
      spec.endedAt < text(THIS_MONTH.from)
        ? client.delete(USAGE_RECORDS, { namespace, name: metadata.name })
        : Promise.resolve(),
    );
    const now = await usage();
    expect(now).not.toEqual(before.sums);
    for (const args of [[], ['--all']]) expect((await run(url, args)).code).toBe(0);
    expect(await rowsIn(url)).toEqual(before);
  });

  it('prints nothing of the password', () => {
    expect(printed).toContain('Read ');
    for (const secret of [server.password, encodeURIComponent(server.password), 'p@ss', 'postgresql://berth'])
      expect(printed).not.toContain(secret);
  });

  it('answers the question of the manual', async () => {
    const manual = readFileSync(join(ROOT, 'docs/run/usage-sink.md'), 'utf8');
    const [, question = ''] = /```\n(SELECT .*?)```/s.exec(manual) ?? [];
    const asked = question.replace('2026-11-01', day(LAST_MONTH.from));
    expect(asked).not.toBe('');
    const found = await server.query<Record<string, string>>(await server.database('bills'), asked);
    expect(found.map((row) => row['BillingAccountId'])).toContain(tenant.name);
  });
});
