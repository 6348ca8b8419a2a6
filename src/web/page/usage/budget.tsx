import type { LimitsRecord } from '../../../wire/records.ts';
import { Alert } from '../parts/controls.tsx';
import { useRead } from '../parts/use-read.ts';
import { money } from '../parts/words.ts';

const EVERY_MS = 30_000;
/** Per cent from which on the page warns. */
const NEAR = 80;

type Line = NonNullable<LimitsRecord['budget']>['lines'][number];

function amount(text: string, unit: string): string {
  if (/^[A-Z]{3}$/.test(unit)) return money(text, unit);
  return `${Number(text).toLocaleString(undefined, { maximumFractionDigits: 1 })} ${unit}`;
}

function dayOf(time: string): string {
  return new Date(time).toLocaleDateString(undefined, { day: 'numeric', month: 'long', timeZone: 'UTC' });
}

function Bar({ line: { unit, limit, spent, left } }: { line: Line }) {
  // A credit may leave less than nothing spent, and a budget of nothing is spent from the start.
  const part = Number(limit) > 0 ? Math.min(1, Math.max(0, Number(spent) / Number(limit))) : 1;
  return (
    <div class="budget">
      <p>
        <strong>{amount(left, unit)} left</strong>{' '}
        <span class="soft">
          of {amount(limit, unit)}, {amount(spent, unit)} spent
        </span>
      </p>
      <meter aria-label={`Spent of the budget in ${unit}`} min={0} max={1} high={NEAR / 100} value={part} />
    </div>
  );
}

/** What the tenant may still spend this month; nothing where the operator has set no budget. */
export function BudgetCard() {
  const { value, trouble } = useRead<LimitsRecord>('/limits', EVERY_MS);
  const budget = value?.budget;
  if (budget === undefined || budget === null) return <Alert text={trouble} />;
  const { percent, lines, renews_at: renews } = budget;
  return (
    <section class="card" aria-labelledby="budget-title">
      <h2 id="budget-title">Budget of this month</h2>
      {percent >= 100 ? (
        <p class="warning">
          The budget is spent. Everything that drew on it is stopped, and nothing new starts before it renews on{' '}
          {dayOf(renews)}, unless your operator raises it.
        </p>
      ) : (
        percent >= NEAR && (
          <p class="warning">
            {percent} per cent are spent. When nothing is left, what draws on it is stopped, and nothing new starts
            before {dayOf(renews)}, unless your operator raises the budget.
          </p>
        )
      )}
      {lines.map((line) => (
        <Bar key={line.unit} line={line} />
      ))}
      <p class="help">It renews on {dayOf(renews)}, at midnight UTC.</p>
    </section>
  );
}
