import { COLUMNS } from './columns.ts';

export const SCHEMA_VERSION = 1;

const columns = Object.entries(COLUMNS).map(([name, type]) => `  "${name}" ${type},\n`);

/** What the sink makes in an empty database. docs/usage-sink.md has the same, for who makes it by hand. */
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
export const READ_BACK = `SELECT "x_ChargeId" AS id, "BillingCurrency" AS currency,
  round("BilledCost" * 1000000)::text AS cost
  FROM berth_usage WHERE "x_ChargeId" = ANY($1)`;

export const COMPLETE = 'UPDATE berth_sink SET complete_at = greatest(complete_at, $1::timestamptz)';
