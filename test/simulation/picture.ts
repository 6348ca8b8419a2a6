import type { Outcome } from './episode.ts';
import { type Act, textOf } from './people/acts.ts';

const AROUND_MS = 120_000;

function clockOf(ms: number): string {
  return `${String(Math.floor(ms / 60_000)).padStart(3)}:${((ms / 1000) % 60).toFixed(3).padStart(6, '0')}`;
}

/** A failure for people: what went wrong, what leads to it, and what the nodes did in the minutes before. */
export function pictureOf({ seed, violations, history }: Outcome, acts: readonly Act[]): string {
  const [first] = violations;
  if (first === undefined) return `Seed ${seed}: nothing went wrong.`;
  const lines = history
    .filter(({ at }) => at >= first.at - AROUND_MS && at <= first.at + 1)
    .map(({ at, text }) => `  ${clockOf(at)}  ${text}`);
  return [
    `Seed ${seed} breaks invariant ${first.invariant} at ${clockOf(first.at)}: ${first.what}`,
    ...violations.slice(1, 4).map(({ invariant, what }) => `  and ${invariant}: ${what}`),
    `${acts.length} acts are enough:`,
    ...acts.map((act) => `  ${clockOf(act.at)}  ${textOf(act)}`),
    'What was seen in the two minutes before:',
    ...lines.slice(-80),
  ].join('\n');
}
