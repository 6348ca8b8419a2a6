import type { KeyDays } from '../../key-life.ts';

const OFFERED = [7, 30, 90, 365];
/** Days that are chosen at first where the operator sets none. */
const CHOSEN = 90;
const WORDS: Readonly<Record<number, string>> = { 1: 'in a day', 365: 'in a year' };

/** How long a new key may live: the values and texts of a list, and the value that is chosen at first. An empty value is for ever. */
export function keyLives({ default: usual, max }: KeyDays): { choices: [string, string][]; chosen: string } {
  const isAllowed = (days: number): boolean => days > 0 && (max === 0 || days <= max);
  const days = [...new Set([...OFFERED, usual, max])].filter(isAllowed).toSorted((a, b) => a - b);
  const choices = days.map((one): [string, string] => [String(one), WORDS[one] ?? `in ${one} days`]);
  const never: [string, string][] = usual === 0 && max === 0 ? [['', 'never']] : [];
  const first = usual > 0 ? usual : isAllowed(CHOSEN) ? CHOSEN : max;
  return { choices: [...choices, ...never], chosen: String(first) };
}
