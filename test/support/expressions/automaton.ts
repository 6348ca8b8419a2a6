import { type Node, type Symbols, symbolsOf } from './parse.ts';

/** A place of an expression that reads one character. */
export interface Place {
  symbols: Symbols;
  /** Where the next character may be read, and in how many ways one gets there: 1, or 2 for more than one. */
  next: ReadonlyMap<number, number>;
  /** The whole expression has matched here, whatever follows. */
  accepts: boolean;
}

/** What is counted out, outside of loops and in them. A longer count is read as one without an end. */
const COUNTED = 100;
const COUNTED_IN_LOOP = 5;
const NEW_LINES = symbolsOf(String.raw`[\n\r\u2028]`, '');
const OTHERS = symbolsOf('.', '');

interface Step {
  to: number;
  kind: 'free' | 'guard' | 'start';
}

/** The places of an expression. The last two are those of the search for a start: they read what is before a match. */
export function automatonOf(pattern: Node, { sticky, multiline }: RegExp): Place[] {
  const steps: Step[][] = [];
  const reads: { from: number; to: number; symbols: Symbols }[] = [];
  let loops = 0;

  function state(): number {
    return steps.push([]) - 1;
  }

  function step(from: number, to: number, kind: Step['kind'] = 'free'): void {
    steps[from]?.push({ to, kind });
  }

  function repeat(node: Node, least: number, most: number, from: number): number {
    const counted = loops === 0 ? COUNTED : COUNTED_IN_LOOP;
    if (least > counted || (most !== Infinity && most > counted))
      return repeat(node, Math.min(least, 1), Infinity, from);
    let at = from;
    for (let count = most === Infinity ? 1 : 0; count < least; count += 1) at = after(node, at);
    if (most === Infinity) {
      const [inside, done] = [state(), state()];
      step(at, inside);
      loops += 1;
      const end = after(node, inside);
      loops -= 1;
      step(end, inside);
      step(end, done);
      if (least === 0) step(at, done);
      return done;
    }
    const done = state();
    for (let count = least; count < most; count += 1) {
      step(at, done);
      at = after(node, at);
    }
    step(at, done);
    return done;
  }

  /** Adds the node behind a state, and returns the state behind the node. */
  function after(node: Node, from: number): number {
    if (node.type === 'sequence') return node.nodes.reduce((at, each) => after(each, at), from);
    if (node.type === 'repeat') return repeat(node.node, node.least, node.most, from);
    const to = state();
    if (node.type === 'read') reads.push({ from, to, symbols: node.symbols });
    else if (node.type === 'start') step(from, to, 'start');
    else if (node.type === 'guard') step(from, to, 'guard');
    else if (node.type === 'choice') {
      for (const each of node.nodes) {
        const inside = state();
        step(from, inside);
        step(after(each, inside), to);
      }
    } else {
      const inside = state();
      step(from, inside);
      after(node.node, inside);
      step(from, to, 'guard');
    }
    return to;
  }

  const first = state();
  const last = after(pattern, first);
  const readsAt = Map.groupBy(reads.keys(), (at) => reads[at]?.from ?? -1);

  /** Follows every way without a character that takes no step twice. */
  function ways(from: number, isLineStart: boolean): Pick<Place, 'accepts'> & { next: Map<number, number> } {
    const next = new Map<number, number>();
    const taken = new Set<Step>();
    let accepts = false;
    const walk = (at: number, isFree: boolean): void => {
      if (at === last && isFree) accepts = true;
      for (const read of readsAt.get(at) ?? []) next.set(read, Math.min(2, (next.get(read) ?? 0) + 1));
      for (const each of steps[at] ?? []) {
        if (taken.has(each) || (each.kind === 'start' && !isLineStart)) continue;
        taken.add(each);
        walk(each.to, isFree && each.kind === 'free');
        taken.delete(each);
      }
    };
    walk(from, true);
    return { next, accepts };
  }

  const places: Place[] = reads.map(({ to, symbols }) => ({
    symbols,
    ...ways(to, multiline && (symbols & NEW_LINES) !== 0n),
  }));
  if (sticky) return places;
  const search = [reads.length, reads.length + 1].map((at): [number, number] => [at, 1]);
  for (const symbols of [OTHERS, NEW_LINES]) {
    const { next } = ways(first, multiline && symbols === NEW_LINES);
    places.push({ symbols, next: new Map([...next, ...search]), accepts: false });
  }
  return places;
}
