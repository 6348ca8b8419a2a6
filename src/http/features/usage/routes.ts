import type { Stores } from '../../../caches/caches.ts';
import type { KubeClient } from '../../../kube/client/client.ts';
import { everyObject } from '../../../kube/client/every.ts';
import type { KubeObject, ResourceType } from '../../../kube/types.ts';
import { UnreadableError } from '../../../ledger/amount.ts';
import { Bills } from '../../../ledger/bills.ts';
import { endedFrom } from '../../../ledger/month.ts';
import { type Line, totalsOf, UsageReport } from '../../../ledger/report.ts';
import { tokenBillsOf, type TokenCounts } from '../../../ledger/tokens.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { FairShares } from '../../../lib/shares.ts';
import { createdByKey } from '../../../resources/api-key.ts';
import { formatMoney } from '../../../resources/money.ts';
import { TOKEN_RECORDS } from '../../../resources/token-record.ts';
import { USAGE_RECORDS } from '../../../resources/usage-record.ts';
import { validationFailed } from '../../interface/errors/api-error.ts';
import { overloaded } from '../../interface/errors/busy.ts';
import { type Call, route } from '../../interface/route.ts';
import { sendJson, sendText } from '../../interface/send.ts';
import { parseQuery } from '../../interface/validate.ts';
import { type Days, daysOf } from './days.ts';
import { type UsageAnswer, type UsageQuery, usageQuerySchema, usageSchema } from './schema.ts';

export interface UsageContext {
  client: KubeClient;
  clock: Clock;
  usageReads: FairShares;
  stores: Stores<'tenantLimits' | 'instances' | 'apiKeys'>;
}

/** Milliseconds for one answer. */
const READ_MS = 30_000;
/** Items of one answer. */
const MOST_ITEMS = 10_000;
/** Records of one page of the API server. One has 16 KiB at most in practice, and a page is parsed in one go. */
const PAGE = 25;

/** Names of records that cannot be read in one answer. */
const MOST_UNREADABLE = 100;

const CSV_TYPE = 'text/csv; charset=utf-8';

const NO_TOKENS: TokenCounts = { calls: 0, input: 0, cached: 0, output: 0 };

function amountOf({ gpuMs, cost, currency, open, tokens = NO_TOKENS }: Omit<Line, 'group' | 'product'>) {
  return {
    gpu_seconds: Number(gpuMs) / 1000,
    cost: formatMoney(cost),
    currency,
    open,
    calls: tokens.calls,
    input_tokens: tokens.input,
    cached_input_tokens: tokens.cached,
    output_tokens: tokens.output,
  };
}

function tooMuch(): Error {
  return validationFailed([
    { path: 'from', expected: 'expected fewer days: the usage of these is too much for one answer' },
  ]);
}

/** What the lines say nothing of: records that cannot be read. */
class Unreadable {
  readonly names: string[] = [];

  /** Adds a record by `add`, or its name where it cannot be read. */
  try({ kind }: ResourceType, { metadata }: KubeObject, add: () => void): void {
    try {
      add();
    } catch (error) {
      if (!(error instanceof UnreadableError)) throw error;
      if (this.names.length < MOST_UNREADABLE) this.names.push(`${kind}/${metadata.name}`);
    }
  }
}

/** What the tenant used. It reads the instances before the records: see Bills. */
async function read(
  { client, stores }: UsageContext,
  namespace: string,
  { from, to, group, now, signal }: Days & Pick<UsageQuery, 'group'> & { now: number; signal: AbortSignal },
): Promise<Found> {
  const unreadable = new Unreadable();
  const report = new UsageReport({ from, to, group, most: MOST_ITEMS });
  const bills = new Bills(stores.instances.by('namespace', namespace), now, (billed) => report.add(billed));
  const pages = { namespace, labelSelector: endedFrom(from), signal, page: PAGE };
  const recorded = new Map<string, string>();
  try {
    for await (const record of everyObject(client, USAGE_RECORDS, pages))
      unreadable.try(USAGE_RECORDS, record, () => {
        bills.addRecord(record);
        const { instance, displayName } = record.spec;
        if (group === 'instance' && displayName) recorded.set(instance, displayName);
      });
    for await (const record of everyObject(client, TOKEN_RECORDS, pages))
      unreadable.try(TOKEN_RECORDS, record, () => {
        for (const bill of tokenBillsOf(record)) report.addTokens(bill);
      });
    bills.addUnrecorded();
  } catch (error) {
    if (error instanceof RangeError || signal.aborted) throw tooMuch();
    throw error;
  }
  const names = new Map([...recorded, ...namesOf(stores, namespace, group)]);
  return { lines: report.lines(), unreadable: unreadable.names, names };
}

/** The names that people gave to instances and keys that are there, by their ids. */
function namesOf(stores: UsageContext['stores'], namespace: string, group: UsageQuery['group']): Map<string, string> {
  const named =
    group === 'instance'
      ? stores.instances
          .by('namespace', namespace)
          .map(({ metadata, spec }) => [metadata.name, spec.displayName] as const)
      : stores.apiKeys
          .by('namespace', namespace)
          .map(({ metadata, spec }) => [createdByKey(metadata.name), spec.displayName] as const);
  return new Map(named.flatMap(([id, name]) => (name ? [[id, name] as const] : [])));
}

interface Found {
  lines: readonly Line[];
  unreadable: string[];
  names: ReadonlyMap<string, string>;
}

function toAnswer(
  { lines, unreadable, names }: Found,
  { first, last }: Days,
  group: UsageQuery['group'],
  now: number,
): UsageAnswer {
  const totals = totalsOf(lines);
  return {
    object: 'usage',
    from: first,
    to: last,
    at: new Date(now).toISOString(),
    group,
    currency: totals.length === 1 ? (totals[0]?.currency ?? null) : null,
    items: lines.map((line) => ({
      group: line.group,
      name: names.get(line.group) ?? null,
      product: line.product || null,
      ...amountOf(line),
    })),
    totals: totals.map(amountOf),
    ...(unreadable.length > 0 && { unreadable }),
  };
}

async function answer(context: UsageContext, { request, response, caller: { namespace } }: Call): Promise<void> {
  const { clock, usageReads } = context;
  const query = parseQuery(usageQuerySchema, request.originalUrl);
  const now = clock.now();
  const days = daysOf(query, now);
  // Each reading asks the API server for many records.
  if (usageReads.take(namespace, 1) !== 'taken') throw overloaded('readings of usage');
  const over = new AbortController();
  const cancel = clock.setTimeout(() => over.abort(), READ_MS);
  response.once('close', () => over.abort());
  try {
    const sums = await read(context, namespace, { ...days, group: query.group, now, signal: over.signal });
    const found = toAnswer(sums, days, query.group, now);
    const asCsv = query.format === undefined ? request.accepts(['json', 'csv']) === 'csv' : query.format === 'csv';
    if (asCsv) sendText(response, toCsv(found), CSV_TYPE);
    else sendJson(response, JSON.stringify(found));
  } catch (error) {
    if (!response.destroyed) throw error;
  } finally {
    cancel();
    usageReads.give(namespace, 1);
  }
}

export const readUsageRoute = route({
  method: 'get',
  path: '/usage',
  id: 'getUsage',
  tag: 'Usage',
  scope: 'compute:read',
  compressed: true,
  summary: 'Read what you used and what it cost',
  description:
    'Sums of the starts of instances and of the calls to models with a price, by day, instance, key, starter, or model, to the ' +
    'second and the smallest unit. A start counts from the first run of its container until that has ended; one ' +
    'that still runs counts until now. Days are those of UTC: a start over midnight is split. A call counts when it has ended, some seconds later.',
  query: usageQuerySchema,
  success: { status: 200, schema: usageSchema, description: 'The usage of these days.' },
  csv: 'The items, with the names of the columns in the first line.',
  errors: ['validation_failed'],
  handle: answer,
});

const COLUMNS = [
  'group',
  'product',
  'gpu_seconds',
  'cost',
  'currency',
  'open',
  'calls',
  'input_tokens',
  'cached_input_tokens',
  'output_tokens',
  'name',
] as const;

// A person chooses the name that a group may have. A spreadsheet takes text that begins so for a formula.
const FORMULA = /^[=+\-@\t\r]/;
// Such as a credit: a sum leaves out what is text.
const AMOUNT = /^-[0-9]+(\.[0-9]+)?$/;

function cell(value: string | number | boolean | null): string {
  const isFormula = typeof value === 'string' && FORMULA.test(value) && !AMOUNT.test(value);
  const text = isFormula ? `'${value}` : String(value ?? '');
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * The items as CSV (RFC 4180), with the names of the columns in the first line. A record that cannot be read is a line
 * without amounts, which no sum counts.
 */
export function toCsv({ items, unreadable = [] }: Pick<UsageAnswer, 'items' | 'unreadable'>): string {
  const lines = items.map((item) => COLUMNS.map((name) => cell(item[name])).join(','));
  const others = unreadable.map((name) => [`unreadable/${name}`, ...COLUMNS.slice(1).map(() => '')].join(','));
  return [COLUMNS.join(','), ...lines, ...others].map((line) => `${line}\r\n`).join('');
}
