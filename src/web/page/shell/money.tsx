import type { InstanceRecord, LimitsRecord, List, UsageAnswer } from '../../../wire/records.ts';
import { useRead } from '../parts/use-read.ts';
import { joined, ratesOf } from '../parts/rates.ts';
import { priceText } from '../parts/words.ts';
import { note, roughly, spending } from '../state.ts';
import { periods } from '../usage/report.ts';

const EVERY_MS = 60_000;

/** What was just done or seen, which may have changed what is spent. */
function done(): string {
  return `${note.value} ${spending.value}`;
}

/** The instances of the project, as often as the header needs them. */
export function useInstances(): readonly InstanceRecord[] {
  return useRead<List<InstanceRecord>>('/instances', EVERY_MS, done()).value?.data ?? [];
}

interface Sum {
  name: string;
  amount: string;
}

/** What the project spends: what it has this month, what it does per hour, and what is left of its budget. */
export function useMoney(instances: readonly InstanceRecord[]): Sum[] {
  const [month] = periods(roughly.value);
  const { from = '', to = '' } = month?.period ?? {};
  const { value: usage } = useRead<UsageAnswer>(`/usage?from=${from}&to=${to}&group=day`, EVERY_MS, done());
  const { value: limits } = useRead<LimitsRecord>('/limits', EVERY_MS, done());
  const left = limits?.budget?.lines.filter(({ unit }) => /^[A-Z]{3}$/.test(unit)) ?? [];
  const billed = instances.filter(({ billed_since: since }) => since !== null);
  return [
    { name: 'This month', amount: joined(usage?.totals.map(({ currency, cost }) => [currency, cost]) ?? []) },
    { name: 'Per hour', amount: joined(ratesOf(billed), priceText) },
    { name: 'Left', amount: joined(left.map(({ unit, left: amount }) => [unit, amount])) },
  ].filter(({ amount }) => amount !== '');
}

export function Money({ sums }: { sums: readonly Sum[] }) {
  if (sums.length === 0) return null;
  return (
    <dl class="money">
      {sums.map(({ name, amount }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{amount}</dd>
        </div>
      ))}
    </dl>
  );
}
