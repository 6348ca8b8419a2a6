import { useMemo, useState } from 'preact/hooks';
import type { UsageAnswer, UsageQuery } from '../../../wire/records.ts';
import { download } from '../calls/download.ts';
import { Alert, Choice, Empty, Link, Table } from '../parts/controls.tsx';
import { useRead } from '../parts/use-read.ts';
import { money, shortUser } from '../parts/words.ts';
import { attempt, tenant, today } from '../state.ts';
import { BudgetCard } from './budget.tsx';
import { DayChart } from './chart.tsx';
import { gpuHours, isModel, ownerOf, type Period, periods, seriesOf, tokens } from './report.ts';

/** Decimals of what is not less than a cent. */
const CENTS = 2;

/** Digits that show a small amount, too: the first minutes of a cheap GPU cost less than a cent. */
function digitsOf(amount: number): number {
  return Math.abs(amount) < 1 ? 4 : 2;
}

function amountText(amount: number, least = 0): string {
  const most = Math.max(least, digitsOf(amount));
  return amount.toLocaleString(undefined, { minimumFractionDigits: least, maximumFractionDigits: most });
}

function costText(cost: number | string, currency: string, least?: number): string {
  return money(cost, currency, digitsOf(Number(cost)), least);
}

const COLUMNS = ['Model', 'Calls', 'Input', 'Cached', 'Output', 'Cost'] as const;

/** Calls and tokens of models, those that cost most first. */
function ModelTable({ items }: { items: UsageAnswer['items'] }) {
  return (
    <Table title="Models" columns={COLUMNS}>
      {items
        .toSorted((a, b) => Number(b.cost) - Number(a.cost))
        .map((item) => (
          <tr key={`${item.group} ${item.currency}`}>
            <th scope="row">{item.group.slice('model/'.length)}</th>
            {[item.calls, item.input_tokens, item.cached_input_tokens, item.output_tokens].map((count, index) => (
              <td key={COLUMNS[index + 1]} data-label={COLUMNS[index + 1]} class="number">
                {amountText(count)}
              </td>
            ))}
            <td data-label="Cost" class="number">
              {costText(item.cost, item.currency)}
            </td>
          </tr>
        ))}
    </Table>
  );
}

type Grouping = UsageQuery['group'];
type Item = UsageAnswer['items'][number];

const EVERY_MS = 60_000;

function pathOf({ from, to }: Period, group: Grouping): string {
  return `/usage?from=${from}&to=${to}&group=${group}`;
}

function hours(used: Pick<Item, 'gpu_seconds'>): string {
  return amountText(gpuHours(used));
}

function downloadCsv(period: Period): Promise<void> {
  const file = `berth-${tenant.value}-${period.from}-${period.to}.csv`;
  return download(pathOf(period, 'instance'), 'text/csv', file);
}

function Total({ total: { cost, currency, open, ...used } }: { total: UsageAnswer['totals'][number] }) {
  return (
    <div class="total">
      <p class="price">{costText(cost, currency)}</p>
      <p class="soft">
        for {hours(used)} GPU-hours{used.calls > 0 && ` and ${amountText(tokens(used))} tokens`}
        {open && ' so far'}
      </p>
    </div>
  );
}

/** What a group is called: a day, `key/ci`, `person/ann`, or an instance, which is a link. */
function Name({ item: { group, name: given }, grouping }: { item: Item; grouping: Grouping }) {
  if (grouping === 'instance') return <Link to={`/dashboard/instances/${group}`}>{given ?? group}</Link>;
  if (given !== null) return <span title={group}>{given}</span>;
  const [kind, name] = ownerOf(group);
  return <>{name === '' ? kind : `${kind}/${shortUser(name)}`}</>;
}

function UsageTable({ title, grouping, items }: { title: string; grouping: Grouping; items: readonly Item[] }) {
  return (
    <Table title={title} columns={[title, 'GPU', 'GPU-hours', 'Cost']}>
      {items.map((item) => (
        <tr key={`${item.group} ${item.currency}`}>
          <th scope="row">
            <Name item={item} grouping={grouping} /> {item.open && <span class="chip">runs</span>}
          </th>
          <td data-label="GPU">
            {item.product ?? <span class="soft">{item.gpu_seconds === 0 ? 'none' : 'several'}</span>}
          </td>
          <td data-label="GPU-hours" class="number">
            {hours(item)}
          </td>
          <td data-label="Cost" class="number">
            {costText(item.cost, item.currency)}
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** A table that is read by itself: the first that cost most. */
function Grouped({ title, grouping, period }: { title: string; grouping: Grouping; period: Period }) {
  const { value: report, trouble } = useRead<UsageAnswer>(pathOf(period, grouping), EVERY_MS);
  const id = `usage-${grouping}`;
  // Models have a table of their own.
  const shown = report?.items.filter(({ group }) => grouping !== 'instance' || !isModel(group)) ?? [];
  const items = shown.toSorted((a, b) => Number(b.cost) - Number(a.cost));
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>By {title.toLowerCase()}</h2>
      <Alert text={trouble} />
      {items.length > 0 && (
        <div class="card flush">
          <UsageTable title={title} grouping={grouping} items={items} />
        </div>
      )}
    </section>
  );
}

/** What models cost, where they cost anything. */
function Models({ period }: { period: Period }) {
  const { value: report, trouble } = useRead<UsageAnswer>(pathOf(period, 'model'), EVERY_MS);
  const items = report?.items.filter(({ group }) => isModel(group)) ?? [];
  if (items.length === 0 && trouble === '') return null;
  return (
    <section aria-labelledby="usage-model">
      <h2 id="usage-model">By model</h2>
      <Alert text={trouble} />
      <div class="card flush">
        <ModelTable items={items} />
      </div>
    </section>
  );
}

function Charts({ report, currency }: { report: UsageAnswer; currency: string }) {
  const [costs, gpu, counts] = useMemo(
    () => [
      seriesOf(report, currency, ({ cost }) => Number(cost)),
      seriesOf(report, currency, gpuHours),
      seriesOf(report, currency, tokens),
    ],
    [report, currency],
  );
  const hasTokens = report.totals.some((total) => total.currency === currency && total.calls > 0);
  return (
    <>
      <div class="columns">
        <section class="card" aria-labelledby="cost-title">
          <h2 id="cost-title">{currency} per day</h2>
          <DayChart
            title={`${currency} per day`}
            days={costs[0]}
            values={costs[1]}
            show={(value, decimals) => costText(value, currency, decimals > CENTS ? decimals : undefined)}
          />
        </section>
        <section class="card" aria-labelledby="hours-title">
          <h2 id="hours-title">GPU-hours per day</h2>
          <DayChart title={`GPU-hours per day in ${currency}`} days={gpu[0]} values={gpu[1]} show={amountText} />
        </section>
        {hasTokens && (
          <section class="card" aria-labelledby="tokens-title">
            <h2 id="tokens-title">Tokens per day</h2>
            <DayChart title={`Tokens per day in ${currency}`} days={counts[0]} values={counts[1]} show={amountText} />
          </section>
        )}
      </div>
      <details>
        <summary>The days as a table</summary>
        <div class="card flush">
          <UsageTable title="Day" grouping="day" items={report.items.filter((item) => item.currency === currency)} />
        </div>
      </details>
    </>
  );
}

function unreadableText(report: UsageAnswer | undefined): string {
  if (report?.unreadable === undefined) return '';
  return `Not counted, because an amount or a time in it cannot be read: ${report.unreadable.join(', ')}. Tell the operator.`;
}

/** What the tenant used, and what it costs. */
export function UsageView() {
  const known = periods(today.value);
  const [name, setName] = useState('month');
  const [refusal, setRefusal] = useState('');
  const period = (known.find((one) => one.name === name) ?? known[0])?.period ?? { from: '', to: '' };
  const { value: report, trouble } = useRead<UsageAnswer>(pathOf(period, 'day'), EVERY_MS);
  return (
    <section aria-labelledby="usage-title" class="usage">
      <div class="title">
        <div>
          <h1 id="usage-title">Usage</h1>
          <p>GPU time while containers run, at the price of the place, and tokens of models. Days are in UTC.</p>
        </div>
        <button type="button" onClick={() => void attempt(() => downloadCsv(period), setRefusal)}>
          Download CSV
        </button>
      </div>
      <Choice
        legend="Time"
        name="period"
        value={name}
        options={known.map((one) => ({ value: one.name, title: one.title }))}
        onChange={setName}
      />
      <Alert text={refusal || trouble} />
      <Alert text={unreadableText(report)} />
      <BudgetCard />
      {report?.totals.length === 0 && (
        <div class="card">
          <Empty title="Nothing was used">
            <p>
              No instance of <code>{tenant.value}</code> ran in this time, and no call to a model cost anything.{' '}
              <Link to="/dashboard/rent">See what is free</Link>.
            </p>
          </Empty>
        </div>
      )}
      {report !== undefined && report.totals.length > 0 && (
        <>
          <div class="totals">
            {report.totals.map((total) => (
              <Total key={total.currency} total={total} />
            ))}
          </div>
          {report.totals.map(({ currency }) => (
            <Charts key={currency} report={report} currency={currency} />
          ))}
          <Grouped title="Instance" grouping="instance" period={period} />
          <Models period={period} />
          <Grouped title="Key" grouping="key" period={period} />
        </>
      )}
    </section>
  );
}
