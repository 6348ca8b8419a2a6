import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROOT } from '../../../tools/lib/paths.ts';
import { createAuthority, issue } from '../../../tools/lib/x509.ts';
import type { Interval } from '../../../src/resources/instances/interval.ts';
import type { Charge } from '../../../src/sink/columns.ts';
import { Postgres, INSERT, SCHEMA } from '../../../src/sink/postgres.ts';
import { chargesOfInstance } from '../../../src/sink/usage-charges.ts';
import { gpuInstance } from '../../support/inventory-world.ts';
import { hasPostgres, type Postgres as Server, startPostgres } from '../../support/postgres.ts';
import { waitFor } from '../../support/wait-for.ts';

const authority = await createAuthority('test');

/** Charges of so many starts, each of a minute. */
function charges(count: number, cost = '0.10'): Charge[] {
  const intervals = Array.from({ length: count }, (_, index): Interval => {
    const from = Date.UTC(2026, 10, 1) + index * 120_000;
    const [begin, end] = [from, from + 60_000].map((ms) => new Date(ms).toISOString());
    const bill = { product: 'L4', gpuCount: 1, currency: 'USD', pricePerHour: '6.00', gpuSeconds: 60, cost };
    return { start: index + 1, from: begin ?? '', to: end ?? '', ...bill };
  });
  return chargesOfInstance(gpuInstance('run-7', {}, { intervals }));
}

describe.skipIf(!(await hasPostgres()))('a PostgreSQL', { timeout: 60_000 }, () => {
  let server: Server;
  beforeAll(async () => {
    const { certificate, key } = await issue(authority, { commonName: 'db', hosts: ['localhost'] });
    server = await startPostgres({ tls: { certificate, key } });
  }, 120_000);
  afterAll(() => server[Symbol.asyncDispose]());

  async function opened<T>(url: string, use: (sink: Postgres) => Promise<T>): Promise<T> {
    const sink = await Postgres.open(url);
    try {
      return await use(sink);
    } finally {
      await sink.close();
    }
  }

  it('gets its tables once, however many make them at the same time', async () => {
    const url = await server.database('together');
    const sinks = await Promise.all(Array.from({ length: 4 }, () => Postgres.open(url)));
    await Promise.all(sinks.map((sink) => sink.close()));
    expect(await server.query(url, 'SELECT schema_version, complete_at FROM berth_sink')).toEqual([
      { schema_version: 1, complete_at: null },
    ]);
  });

  it('keeps numbers and times as they are', async () => {
    const url = await server.database('exact');
    const [charge] = charges(1, '12345678901234567890.123456');
    if (charge === undefined) throw new Error('no charge');
    await opened(url, async (sink) => {
      const { added, stored } = await sink.write([charge]);
      expect(added).toBe(1);
      expect(stored.get(charge.row.x_ChargeId)).toEqual({ currency: 'USD', cost: 12345678901234567890123456n });
    });
    const [row] = await server.query<object>(
      url,
      `SELECT "BilledCost" AS cost, "ChargePeriodEnd" AS until, "PricingQuantity" AS hours,
        "SkuPriceDetails" AS details, "ChargeClass" AS class, "x_ExportedAt" > now() - interval '1 minute' AS new
      FROM berth_usage`,
    );
    expect(row).toEqual({
      cost: '12345678901234567890.123456',
      until: new Date(Date.UTC(2026, 10, 1, 0, 1)),
      hours: '0.016666666667',
      details: { GpuCount: 1 },
      class: null,
      new: true,
    });
  });

  it('adds what is missing, changes nothing, and says what is there', async () => {
    const url = await server.database('twice');
    await opened(url, async (sink) => {
      expect((await sink.write(charges(3))).added).toBe(3);
      const { added, stored } = await sink.write(charges(5, '0.20'));
      expect(added).toBe(2);
      expect([...stored.values()].map(({ cost }) => Number(cost)).toSorted((a, b) => a - b)).toEqual([
        100_000, 100_000, 100_000, 200_000, 200_000,
      ]);
    });
    const [sum] = await server.query<object>(url, 'SELECT sum("BilledCost")::text AS sum FROM berth_usage');
    expect(sum).toEqual({ sum: '0.70' });
  });

  it('takes the same charges from two at once, in whatever order, without a deadlock', async () => {
    const url = await server.database('race');
    const all = charges(9);
    // Both come to a row in the middle that somebody else is about to write.
    const middle = all[4];
    await opened(url, () => Promise.resolve());
    const holder = new Client({ connectionString: url });
    await holder.connect();
    await holder.query('BEGIN');
    await holder.query(INSERT, [JSON.stringify([middle?.row])]);
    const writers = [all, all.toReversed()].map((some) => opened(url, async (sink) => (await sink.write(some)).added));
    const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = 'race' AND wait_event_type = 'Lock'`;
    await waitFor('both to wait', async () => (await server.query(url, waiting)).length === 2);
    await holder.query('ROLLBACK');
    await holder.end();
    expect((await Promise.all(writers)).toSorted((a, b) => a - b)).toEqual([0, 9]);
  });

  it('remembers when the last complete run began, and never an earlier one', async () => {
    const url = await server.database('complete');
    await opened(url, async (sink) => {
      expect(await sink.completeAt()).toBeUndefined();
      await sink.complete(Date.UTC(2026, 10, 23, 1, 2, 3, 4));
      await sink.complete(Date.UTC(2026, 9, 1));
      expect(await sink.completeAt()).toBe(Date.UTC(2026, 10, 23, 1, 2, 3, 4));
    });
  });

  it('stores a text with a NUL, which it cannot keep, without that', async () => {
    const url = await server.database('nul');
    const [charge] = charges(1);
    if (charge === undefined) throw new Error('no charge');
    const row = { ...charge.row, ChargeDescription: 'a\0b' };
    await opened(url, (sink) => sink.write([{ ...charge, row }]));
    expect(await server.query(url, 'SELECT "ChargeDescription" AS text FROM berth_usage')).toEqual([{ text: 'ab' }]);
  });

  it('refuses tables of another version', async () => {
    const url = await server.database('newer');
    await server.query(url, 'CREATE TABLE berth_sink (schema_version integer); INSERT INTO berth_sink VALUES (2)');
    await expect(Postgres.open(url)).rejects.toThrow(
      'The tables of BERTH_SINK_URL have version 2, and this Berth writes version 1.',
    );
  });

  it('needs no more rights than the manual gives, and names those that are missing', async () => {
    const owner = await server.database('rights');
    const reader = await server.database('rights', 'reader');
    await expect(Postgres.open(reader)).rejects.toThrow(/permission denied for schema public\. Give the user/);
    const manual = readFileSync(join(ROOT, 'docs/run/usage-sink.md'), 'utf8');
    const [made = '', grants = ''] = [...manual.matchAll(/```sql\n(.*?)```/gs)].map(([, text]) => text);
    // What the manual shows is what the command would make.
    expect(made).toBe(SCHEMA);
    await server.query(owner, made + grants.replaceAll('USER', 'reader'));
    await opened(reader, async (sink) => {
      expect((await sink.write(charges(2))).added).toBe(2);
      await sink.complete(1);
    });
    await expect(server.query(reader, 'DELETE FROM berth_usage')).rejects.toThrow('permission denied');
    await expect(server.query(reader, 'UPDATE berth_usage SET "BilledCost" = 0')).rejects.toThrow('permission denied');
  });

  it('says what is wrong with a connection, and nothing of the password', async () => {
    const url = await server.database('wrong');
    const other = (from: string, to: string): string => url.replace(from, to);
    for (const [wrong, why] of [
      [other('Sink', 'Sunk'), 'password authentication failed for user "berth". The log of the database says more.'],
      [other('/wrong?', '/none?'), 'database "none" does not exist'],
      [other(`:${server.port}`, ':1'), 'connect ECONNREFUSED 127.0.0.1:1. Check that the database runs'],
      [other('disable', 'verify-full'), 'set NODE_EXTRA_CA_CERTS to the file of your authority'],
    ] as const) {
      const failed = await Postgres.open(wrong).catch((error: unknown) => String(error));
      expect(failed).toContain('The database of BERTH_SINK_URL takes no connection: ');
      expect(failed).toContain(why);
      expect(failed).not.toMatch(/p@ss|p%40ss|word#1/);
    }
  });

  it('is trusted with verify-full by its authority and its name alone', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'berth-sink-'));
    try {
      const authorityFile = join(folder, 'ca.crt');
      await writeFile(authorityFile, authority.certificate);
      const plain = await server.database('tls');
      const module = JSON.stringify(join(ROOT, 'src/sink/postgres.ts'));
      const script = `const { Postgres } = await import(${module});
        const sink = await Postgres.open(process.env.BERTH_SINK_URL).catch((error) => error);
        console.log(sink instanceof Error ? sink.message : 'open');
        process.exit();`;
      // Node reads the variable when it starts.
      const open = async (url: string, env: NodeJS.ProcessEnv = {}): Promise<string> => {
        const all = { ...process.env, BERTH_SINK_URL: url, NODE_TLS_REJECT_UNAUTHORIZED: '0', ...env };
        const args = ['--no-warnings', '--input-type=module', '--eval', script];
        return (await promisify(execFile)(process.execPath, args, { env: all })).stdout.trim();
      };
      const checked = plain.replace('disable', 'verify-full');
      const named = checked.replace('127.0.0.1', 'localhost');
      const known = { NODE_EXTRA_CA_CERTS: authorityFile };
      expect(await open(named, known)).toBe('open');
      expect(await open(checked, known)).toContain('Name the database in the URL as its certificate does.');
      expect(await open(named)).toContain('set NODE_EXTRA_CA_CERTS');
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

it.skipIf(!(await hasPostgres()))('a PostgreSQL without TLS is refused where the URL asks for it', async () => {
  await using server = await startPostgres();
  const url = (await server.database('plain')).replace('disable', 'verify-full');
  await expect(Postgres.open(url)).rejects.toThrow('Switch TLS on in the database, or write sslmode=disable');
});
