import { Client, DatabaseError } from 'pg';
import { type Charge, COLUMNS } from './columns.ts';
import { type Place, readSinkUrl, SinkError } from './sink-url.ts';

const CONNECT_MS = 10_000;
const STATEMENT_MS = 60_000;
/** Of advisory locks: any number that others are unlikely to take. */
const LOCK = 0x62657274;

const SCHEMA_VERSION = 1;

const columns = Object.entries(COLUMNS).map(([name, type]) => `  "${name}" ${type},\n`);

/** What the sink makes in an empty database. docs/run/usage-sink.md has the same, for who makes it by hand. */
export const SCHEMA = `CREATE TABLE berth_usage (
${columns.join('')}  "x_ExportedAt" timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX berth_usage_by_month ON berth_usage ("BillingPeriodStart", "BillingAccountId");
CREATE TABLE berth_sink (
  schema_version integer PRIMARY KEY,
  complete_at timestamptz
);
INSERT INTO berth_sink (schema_version) VALUES (${SCHEMA_VERSION});
`;

const names = Object.keys(COLUMNS)
  .map((name) => `"${name}"`)
  .join(', ');

/** Rows come as JSON, so a statement has one parameter however many there are. What is there stays as it is. */
export const INSERT = `INSERT INTO berth_usage (${names})
SELECT ${names} FROM jsonb_populate_recordset(NULL::berth_usage, $1::jsonb)
ON CONFLICT ("x_ChargeId") DO NOTHING`;

/** What the table says of some charges, in millionths. */
const READ_BACK = `SELECT "x_ChargeId" AS id, "BillingCurrency" AS currency,
  round("BilledCost" * 1000000)::text AS cost
  FROM berth_usage WHERE "x_ChargeId" = ANY($1)`;

const COMPLETE = 'UPDATE berth_sink SET complete_at = greatest(complete_at, $1::timestamptz)';

/** What the sink says of a charge. */
export interface Stored {
  currency: string;
  /** Millionths. */
  cost: bigint;
}

/** A place outside of the cluster that keeps charges. */
export interface Sink {
  /** The time of the last complete run, milliseconds since the epoch. */
  completeAt(): Promise<number | undefined>;
  /** Adds the charges that are not there, and says what is there of all of them, by id. It changes none. */
  write(charges: readonly Charge[]): Promise<{ added: number; stored: ReadonlyMap<string, Stored> }>;
  complete(at: number): Promise<void>;
  close(): Promise<void>;
}

/** Errors of TLS that another authority would mend. */
const UNKNOWN_AUTHORITY = new Set([
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

function remedyOf(error: Error & { code?: string }): string {
  const { code = '' } = error;
  if (UNKNOWN_AUTHORITY.has(code))
    return 'Nobody known signed its certificate: set NODE_EXTRA_CA_CERTS to the file of your authority (in the chart: usageSink.existingSecretAuthority).';
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'Name the database in the URL as its certificate does.';
  if (error.message === 'The server does not support SSL connections')
    return 'Switch TLS on in the database, or write sslmode=disable for a database on the same node.';
  if (code === '42501')
    return 'Give the user of the URL CREATE on the schema, or make the tables and give the rights of docs/run/usage-sink.md.';
  if (error instanceof DatabaseError) return 'The log of the database says more.';
  return 'Check that the database runs, the host and port of the URL, and network policies between (in the chart: usageSink.networks and usageSink.ports).';
}

/** The API server stores texts with it, and PostgreSQL none. */
function withoutNul(_key: string, value: unknown): unknown {
  return typeof value === 'string' ? value.replaceAll('\0', '') : value;
}

function explained(error: unknown, what: string): SinkError {
  if (!(error instanceof Error)) return new SinkError(what);
  return new SinkError(`${what}: ${error.message}. ${remedyOf(error)}`);
}

export class Postgres implements Sink {
  readonly #client: Client;

  private constructor(place: Place) {
    this.#client = new Client({
      ...place,
      application_name: 'berth export-usage',
      connectionTimeoutMillis: CONNECT_MS,
      statement_timeout: STATEMENT_MS,
      // Also when nothing answers any more.
      query_timeout: 2 * STATEMENT_MS,
      keepAlive: true,
    });
    // The query under way rejects with the same.
    this.#client.on('error', () => undefined);
  }

  /** Connects, and makes the tables where they are absent. Throws SinkError. */
  static async open(url: string | undefined): Promise<Postgres> {
    const sink = new Postgres(readSinkUrl(url));
    try {
      await sink.#client.connect();
    } catch (error) {
      throw explained(error, 'The database of BERTH_SINK_URL takes no connection');
    }
    try {
      await sink.#prepare();
      return sink;
    } catch (error) {
      await sink.close();
      throw error;
    }
  }

  async completeAt(): Promise<number | undefined> {
    const [row] = await this.#query<{ at: Date | null }>('SELECT complete_at AS at FROM berth_sink', []);
    return row?.at?.getTime();
  }

  async write(charges: readonly Charge[]): Promise<{ added: number; stored: ReadonlyMap<string, Stored> }> {
    // In one order everywhere, so that two that write at once wait for each other and never in a circle.
    const rows = charges.map(({ row }) => row).toSorted((a, b) => (a.x_ChargeId < b.x_ChargeId ? -1 : 1));
    const ids = rows.map(({ x_ChargeId: id }) => id);
    const { rowCount } = await this.#send(INSERT, [JSON.stringify(rows, withoutNul)]);
    const found = await this.#query<{ id: string; currency: string; cost: string }>(READ_BACK, [ids]);
    const stored = new Map(found.map(({ id, currency, cost }) => [id, { currency, cost: BigInt(cost) }]));
    return { added: rowCount ?? 0, stored };
  }

  async complete(at: number): Promise<void> {
    await this.#send(COMPLETE, [new Date(at).toISOString()]);
  }

  async close(): Promise<void> {
    await this.#client.end().catch(() => undefined);
  }

  async #prepare(): Promise<void> {
    await this.#send('BEGIN', []);
    // Two that start at once would both make the tables.
    await this.#send('SELECT pg_advisory_xact_lock($1)', [LOCK]);
    const [there] = await this.#query<{ made: boolean }>(`SELECT to_regclass('berth_sink') IS NOT NULL AS made`, []);
    if (there?.made !== true) await this.#client.query(SCHEMA).catch((error: unknown) => this.#fail(error));
    await this.#send('COMMIT', []);
    const versions = await this.#query<{ version: number }>('SELECT schema_version AS version FROM berth_sink', []);
    if (versions.length !== 1 || versions[0]?.version !== SCHEMA_VERSION)
      throw new SinkError(
        `The tables of BERTH_SINK_URL have version ${versions.map(({ version }) => version).join(', ') || 'none'}, and this Berth writes version ${SCHEMA_VERSION}. Run the version of Berth that made them.`,
      );
  }

  #fail(error: unknown): never {
    throw explained(error, 'The database of BERTH_SINK_URL refused a statement');
  }

  #send(text: string, values: unknown[]): Promise<{ rowCount: number | null; rows: unknown[] }> {
    return this.#client.query(text, values).catch((error: unknown) => this.#fail(error));
  }

  async #query<T>(text: string, values: unknown[]): Promise<T[]> {
    return (await this.#send(text, values)).rows as T[];
  }
}
