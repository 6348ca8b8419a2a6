import { plain } from '../wire/plain.ts';
import { formatMoney } from '../resources/money.ts';
import type { Exported } from './export.ts';
import type { TallyLine } from './tally.ts';

const HEAD = ['month', 'currency', 'charges', 'cost', 'rows', 'cost in rows', ''];

function cells({ month, currency, cluster, sink }: TallyLine): string[] {
  const isSame = cluster.count === sink.count && cluster.cost === sink.cost;
  const sums = [cluster, sink].flatMap(({ count, cost }) => [String(count), formatMoney(cost)]);
  return [month, currency, ...sums, isSame ? 'same' : 'DIFFERS'];
}

/** Words are aligned left, numbers right. */
function table(rows: readonly (readonly string[])[]): string[] {
  const widths = HEAD.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) =>
        column > 1 && column < 6 ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd(),
  );
}

/** For people: what was read and written, and whether both sides say the same, month by month. */
export function printExport({ tally, from, read }: Exported): string {
  const { added, differing, unreadable } = tally;
  const lines = tally.lines();
  const which = from === undefined ? 'all' : `those that ended from ${from} on, and those without a month`;
  const faults = [
    differing &&
      `${differing.count} charges stand in the sink at another cost, and were left as they are. The first: ${differing.first}`,
    unreadable &&
      `${unreadable.count} records have an amount or a time that cannot be read. The first: ${unreadable.first}`,
  ].filter((one) => one !== undefined);
  return [
    `Read ${read.instances} instances, ${read.usageRecords} usage records and ${read.tokenRecords} token records: ${which}.`,
    `Added ${added} rows.`,
    ...(read.growing === 0 ? [] : [`Left for later: ${read.growing} token records of days that may still grow.`]),
    '',
    ...(lines.length === 0 ? ['There is no charge yet.'] : table([HEAD, ...lines.map(cells)])),
    '',
    ...faults.map(plain),
    tally.isSound()
      ? 'The sink has every charge that was read.'
      : 'NOT SAFE: the sink and the cluster differ. Delete no record.',
    '',
  ].join('\n');
}
