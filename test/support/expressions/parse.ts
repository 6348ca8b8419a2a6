/** What an expression may read next, as bits of `SYMBOLS`. */
export type Symbols = bigint;

export type Node =
  | { type: 'read'; symbols: Symbols }
  | { type: 'sequence'; nodes: readonly Node[] }
  | { type: 'choice'; nodes: readonly Node[] }
  | { type: 'repeat'; node: Node; least: number; most: number }
  /** `^`. */
  | { type: 'start' }
  /** Reads nothing and may fail: `$`, `\b` and what looks behind. */
  | { type: 'guard' }
  | { type: 'lookahead'; node: Node };

/** All of ASCII, and characters that only `i`, `s`, `u`, `\s` or a property of Unicode tell apart. */
export const SYMBOLS: readonly string[] = [
  ...Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)),
  '\u0085',
  '\u00a0',
  'é',
  'ſ',
  '\u061c',
  '\u200e',
  '\u2028',
  '\u212a',
  '中',
  '\ud800',
  '\ufeff',
];

const known = new Map<string, Symbols>();

/** What an atom such as `.` or `[^a-z]` reads. */
export function symbolsOf(atom: string, flags: string): Symbols {
  const text = `${flags}${atom}`;
  const earlier = known.get(text);
  if (earlier !== undefined) return earlier;
  const expression = new RegExp(`^(?:${atom})$`, flags);
  const symbols = SYMBOLS.reduce(
    (bits, symbol, at) => (expression.test(symbol) ? bits | (1n << BigInt(at)) : bits),
    0n,
  );
  known.set(text, symbols);
  return symbols;
}

/** Reads the source of an expression. Throws on what cannot be judged by an automaton, such as a backreference. */
export function parseExpression({ source, flags }: RegExp): Node {
  const reading = flags.replaceAll(/[^isu]/g, '');
  let at = 0;

  function take(text: string): boolean {
    if (!source.startsWith(text, at)) return false;
    at += text.length;
    return true;
  }

  function matched(pattern: RegExp): string {
    const sticky = new RegExp(pattern, 'y');
    sticky.lastIndex = at;
    const text = sticky.exec(source)?.[0];
    if (text === undefined) throw new Error(`${source} cannot be judged at ${at}: ${source.slice(at, at + 10)}`);
    at += text.length;
    return text;
  }

  function choice(): Node {
    const nodes = [sequence()];
    while (take('|')) nodes.push(sequence());
    return nodes.length === 1 && nodes[0] !== undefined ? nodes[0] : { type: 'choice', nodes };
  }

  function sequence(): Node {
    const nodes: Node[] = [];
    while (at < source.length && source[at] !== '|' && source[at] !== ')') nodes.push(repeated(atom()));
    return { type: 'sequence', nodes };
  }

  function repeated(node: Node): Node {
    const [, mark, least, comma, most] = /^(?:([*+?])|\{(\d+)(,?)(\d*)\})\??/.exec(source.slice(at, at + 24)) ?? [];
    if (mark === undefined && least === undefined) return node;
    matched(/(?:[*+?]|\{[\d,]+\})\??/);
    if (mark !== undefined) {
      return { type: 'repeat', node, least: mark === '+' ? 1 : 0, most: mark === '?' ? 1 : Infinity };
    }
    return {
      type: 'repeat',
      node,
      least: Number(least),
      most: comma === '' ? Number(least) : Number(most || Infinity),
    };
  }

  function group(close: (node: Node) => Node): Node {
    const inner = choice();
    matched(/\)/);
    return close(inner);
  }

  function behind(inner: Node): Node {
    if (isEndless(inner)) throw new Error(`${source} looks behind without an end`);
    return { type: 'guard' };
  }

  function atom(): Node {
    if (take('^')) return { type: 'start' };
    if (take('$') || take(String.raw`\b`) || take(String.raw`\B`)) return { type: 'guard' };
    if (take('(?=') || take('(?!')) return group((node) => ({ type: 'lookahead', node }));
    if (take('(?<=') || take('(?<!')) return group(behind);
    if (take('(?:')) return group((node) => node);
    if (source.startsWith('(', at)) {
      matched(/\((?:\?<\w+>|(?!\?))/);
      return group((node) => node);
    }
    const text = matched(
      /\\(?:[pP]\{[^}]+\}|u\{[^}]+\}|u[\da-fA-F]{4}|x[\da-fA-F]{2}|c[A-Za-z]|[^1-9k])|\[(?:\\.|[^\]\\])*\]|[^\\[]/su,
    );
    return { type: 'read', symbols: symbolsOf(text, reading) };
  }

  const node = choice();
  if (at < source.length) throw new Error(`${source} cannot be judged at ${at}`);
  return node;
}

function isEndless(node: Node): boolean {
  if (node.type === 'repeat') return node.most === Infinity || isEndless(node.node);
  if (node.type === 'sequence' || node.type === 'choice') return node.nodes.some(isEndless);
  return node.type === 'lookahead';
}
