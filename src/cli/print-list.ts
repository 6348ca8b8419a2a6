import type { Input } from './options.ts';
import { printJson, type Session } from './session.ts';
import { plain, table } from './text.ts';

/** A table of the things that a list has. */
export interface Listing {
  titles: readonly string[];
  rows: readonly (readonly string[])[];
  /** Columns that go first where the screen is narrow, that are cut last, and that `-o wide` alone shows. */
  optional?: readonly string[];
  kept?: readonly string[];
  wide?: readonly string[];
  /** What is said where there is nothing. */
  empty: string;
}

/** Colours of states (ECMA-48): what runs, what is on its way, what needs somebody, what is over. */
const COLOURS: Readonly<Record<string, number>> = {
  running: 32,
  failed: 31,
  interrupted: 31,
  pending: 33,
  scheduling: 33,
  pulling: 33,
  starting: 33,
  stopping: 33,
  deleting: 33,
  stopped: 2,
};

/** The colour of a state; undefined where there are no colours. */
export function colourOf({ terminal }: Session, state: string): number | undefined {
  return terminal.colour ? COLOURS[state] : undefined;
}

/** How tables of instances are drawn. */
export function stateColours(session: Session) {
  return (title: string, cell: string): number | undefined => (title === 'STATE' ? colourOf(session, cell) : undefined);
}

/** Prints a list as --output says: a table, its ids, or the answer of the server. */
export async function printList(input: Input, session: Session, answer: unknown, listing: Listing): Promise<void> {
  if (input.flag('json')) return printJson(session, answer);
  const { titles, rows, optional = [], kept = [], wide = [], empty } = listing;
  const { terminal } = session;
  const format = input.text('output');
  if (format === 'name') return terminal.out(rows.map(([name = '']) => `${plain(name)}\n`).join(''));
  if (rows.length === 0) return terminal.say(empty);
  const isWide = format === 'wide';
  const shown = (cells: readonly string[]): string[] =>
    cells.filter((_, column) => isWide || !wide.includes(titles[column] ?? ''));
  const fit = { width: isWide ? undefined : terminal.columns.out, optional, kept, paint: stateColours(session) };
  await terminal.out(table(shown(titles), rows.map(shown), fit));
}
