import { quote } from '../lib/quote.ts';
import type { Facts } from './facts.ts';
import type { Objects, SourceName } from './sources.ts';

/** `unknown`: the check could not be made, and nothing is said about what it checks. */
export type Severity = 'error' | 'warning' | 'unknown';

/** Something that is wrong, for as many objects as have it. */
export interface Problem {
  severity: Severity;
  /** In CamelCase, for programs. */
  reason: string;
  /** As kubectl names them: kind/name, and namespace/kind/name in a namespace. */
  objects: readonly string[];
  /** What is wrong. */
  message: string;
  /** Why it matters. */
  why: string;
  /** A command line that mends it, or shows more. */
  remedy: string;
}

export interface Finding extends Problem {
  /** Name of the check. */
  check: string;
}

/** One thing to look at. It reads nothing: it gets what was read of the kinds that it needs. */
export interface Check {
  name: string;
  /** What holds when nothing is found. */
  title: string;
  needs: readonly SourceName[];
  find(objects: Objects, facts: Facts): readonly Problem[];
}

/** A check that sees the kinds that it names, and no others. */
export function check<N extends SourceName>(definition: {
  name: string;
  title: string;
  needs: readonly N[];
  find(objects: Pick<Objects, N>, facts: Facts): readonly Problem[];
}): Check {
  return definition;
}

const MOST_NAMED = 5;

/** The first names as words of a command line, and how many were left out. */
export function firstOf(names: readonly string[]): { words: string; more: string } {
  const rest = names.length - MOST_NAMED;
  return { words: names.slice(0, MOST_NAMED).join(' '), more: rest > 0 ? ` and ${rest} more` : '' };
}

/** The names, with commas, and how many more there are. */
export function named(names: readonly string[]): string {
  return names.slice(0, MOST_NAMED).join(', ') + firstOf(names).more;
}

/** A word of a POSIX shell. */
export function quoted(word: string): string {
  return /^[\w./:=@%+,-]+$/.test(word) ? word : quote(word);
}

/** Groups objects by what is wrong with them, so that a thousand nodes with one fault are one finding. */
export function byFault<T>(items: Iterable<readonly [fault: string, item: T]>): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const [fault, item] of items) groups.set(fault, [...(groups.get(fault) ?? []), item]);
  return groups;
}
