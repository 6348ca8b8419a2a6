import type { Step } from './types.ts';

/** Calls of one id that nothing came between, and how many of them have a result. */
interface Parallel {
  turn: number;
  ids: string[];
  answered: number;
}

/**
 * Ids for the calls of a history, each once. Servers number the calls of each answer anew, give parallel ones the same id, or
 * leave it empty, and Anthropic refuses two of one id.
 */
export class CallIds {
  readonly #taken: Set<string>;
  readonly #last = new Map<string, Parallel>();
  readonly #numbers = new Map<string, number>();
  #turn = 0;

  /** @param given all ids of the history */
  constructor(given: ReadonlySet<string>) {
    this.#taken = new Set(given);
  }

  /** Something other than a call comes. */
  next(): void {
    this.#turn += 1;
  }

  ofCall(given: string): string {
    const last = this.#last.get(given);
    const id = last === undefined && given !== '' ? given : this.#free(given || 'call');
    if (last?.turn === this.#turn) last.ids.push(id);
    else this.#last.set(given, { turn: this.#turn, ids: [id], answered: 0 });
    return id;
  }

  /** A result is of the first call that has none. What is left over belongs to the last one. */
  ofResult(given: string): string {
    const last = this.#last.get(given);
    if (last === undefined) return given;
    const id = last.ids[Math.min(last.answered, last.ids.length - 1)];
    last.answered += 1;
    return id ?? given;
  }

  #free(base: string): string {
    for (;;) {
      const number = (this.#numbers.get(base) ?? 1) + 1;
      this.#numbers.set(base, number);
      const id = `${base}_${number}`;
      if (this.#taken.has(id)) continue;
      this.#taken.add(id);
      return id;
    }
  }
}

/** Undefined where each call has an id of its own. */
export function idsFor(calls: readonly string[]): CallIds | undefined {
  const given = new Set(calls);
  return given.size === calls.length && !given.has('') ? undefined : new CallIds(given);
}

/** A history in which each call has an id of its own. */
export function withOwnCallIds(items: readonly Step[]): readonly Step[] {
  const ids = idsFor(items.flatMap((item) => (item.kind === 'call' ? [item.callId] : [])));
  if (ids === undefined) return items;
  return items.map((item) => {
    if (item.kind === 'call') return { ...item, callId: ids.ofCall(item.callId) };
    if (item.kind === 'message' || item.kind === 'result') ids.next();
    return item.kind === 'result' ? { ...item, callId: ids.ofResult(item.callId) } : item;
  });
}
