import { automatonOf, type Place } from './automaton.ts';
import { parseExpression, SYMBOLS } from './parse.ts';

/**
 * A text whose repeats the expression reads in more than linear time, or undefined when there is none. A backtracking
 * engine reads a part of a text twice if two loops of the expression can share it (A. Weber and H. Seidl, "On the degree
 * of ambiguity of finite automata", 1991, criteria EDA and IDA). The search for a start is a loop too.
 *
 * A loop in which the expression has matched already costs nothing: the engine goes on behind the match.
 */
export function growingText(expression: RegExp): string | undefined {
  const places = automatonOf(parseExpression(expression), expression);
  const loops = loopsOf(places);
  for (const own of loops) {
    const twice = twiceIn(places, own);
    if (twice !== undefined) return twice;
    for (const other of loops) {
      const text = sharedText(places, own, other);
      if (text !== undefined) return text;
    }
  }
  return undefined;
}

type Loop = ReadonlySet<number>;

interface Walk {
  at: number;
  symbols: readonly bigint[];
}

/** Walks from a place, with the symbols that each step reads, through those that are a part. The shortest come first. */
function* walksFrom(places: readonly Place[], from: number, isPart: (at: number) => boolean): Generator<Walk> {
  const seen = new Set<number>();
  const open: Walk[] = [{ at: from, symbols: [] }];
  for (const { at, symbols } of open) {
    for (const next of places[at]?.next.keys() ?? []) {
      if (seen.has(next) || !isPart(next)) continue;
      seen.add(next);
      const walk = { at: next, symbols: [...symbols, places[next]?.symbols ?? 0n] };
      yield walk;
      open.push(walk);
    }
  }
}

/** The loops before the expression has matched: sets of places of which each leads to each. */
function loopsOf(places: readonly Place[]): Loop[] {
  const reached = places.map(({ accepts }, from) => {
    const isOpen = (at: number): boolean => places[at]?.accepts === false;
    return new Set(accepts ? [] : Array.from(walksFrom(places, from, isOpen), ({ at }) => at));
  });
  const loops: Loop[] = [];
  for (const [at, those] of reached.entries()) {
    if (!those.has(at) || loops.some((loop) => loop.has(at))) continue;
    loops.push(new Set([...those].filter((other) => reached[other]?.has(at))));
  }
  return loops;
}

/** A text that leads around the loop in two ways through the same places. */
function twiceIn(places: readonly Place[], loop: Loop): string | undefined {
  for (const from of loop) {
    for (const [to, ways] of places[from]?.next ?? []) {
      if (ways === 1 || !loop.has(to)) continue;
      const back = [...walksFrom(places, to, (at) => loop.has(at))].find(({ at }) => at === from);
      return textOf([...(from === to ? [] : (back?.symbols ?? [])), places[to]?.symbols ?? 0n]);
    }
  }
  return undefined;
}

function symbolsOf(places: readonly Place[], loop: Loop): bigint {
  return [...loop].reduce((bits, at) => bits | (places[at]?.symbols ?? 0n), 0n);
}

/** A text that leads around one loop, around the other, and from the one to the other. */
function sharedText(places: readonly Place[], own: Loop, other: Loop): string | undefined {
  const common = symbolsOf(places, own) & symbolsOf(places, other);
  const isRead = (at: number): boolean => ((places[at]?.symbols ?? 0n) & common) !== 0n;
  for (const p of own) {
    const between = new Set(Array.from(walksFrom(places, p, isRead), ({ at }) => at));
    for (const q of other) {
      const text = p !== q && between.has(q) ? wordOf(places, { p, own, q, other, between }) : undefined;
      if (text !== undefined) return text;
    }
  }
  return undefined;
}

interface Pair {
  p: number;
  own: Loop;
  q: number;
  other: Loop;
  between: ReadonlySet<number>;
}

/** The word that leads from p to p, from p to q, and from q to q. */
function wordOf(places: readonly Place[], { p, own, q, other, between }: Pair): string | undefined {
  const seen = new Set<number>();
  const open: { a: number; b: number; c: number; symbols: readonly bigint[] }[] = [{ a: p, b: p, c: q, symbols: [] }];
  for (const walk of open) {
    for (const a of places[walk.a]?.next.keys() ?? []) {
      for (const c of own.has(a) ? (places[walk.c]?.next.keys() ?? []) : []) {
        const both = other.has(c) ? (places[a]?.symbols ?? 0n) & (places[c]?.symbols ?? 0n) : 0n;
        for (const b of both === 0n ? [] : (places[walk.b]?.next.keys() ?? [])) {
          const read = both & (places[b]?.symbols ?? 0n);
          const key = (a * places.length + b) * places.length + c;
          if (read === 0n || !between.has(b) || seen.has(key)) continue;
          seen.add(key);
          const symbols = [...walk.symbols, read];
          if (a === p && b === q && c === q) return textOf(symbols);
          open.push({ a, b, c, symbols });
        }
      }
    }
  }
  return undefined;
}

function textOf(symbols: readonly bigint[]): string {
  return symbols
    .map((bits) => {
      const found = SYMBOLS.filter((_, at) => (bits & (1n << BigInt(at))) !== 0n);
      return found.find((symbol) => /[!-~]/.test(symbol)) ?? found[0];
    })
    .join('');
}
