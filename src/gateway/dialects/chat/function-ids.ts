import { objectsOf } from '../fields.ts';

/** Ids for calls of functions, which came before tools and have none. Each is asked for in the order of the history. */
export interface FunctionIds {
  ofCall(name: string): string;
  ofResult(name: string): string;
}

function idsIn(messages: readonly unknown[]): Set<unknown> {
  const own = objectsOf(messages);
  return new Set(own.flatMap((one) => [one.tool_call_id, ...objectsOf(one.tool_calls).map(({ id }) => id)]));
}

/** The nth result of a name answers its nth call. No id is one that the messages have themselves. */
export function idsOfFunctions(messages: readonly unknown[]): FunctionIds {
  // Few histories have such calls.
  let taken: Set<unknown> | undefined;
  const functions = new Map<string, { ids: string[]; calls: number; results: number; next: number }>();
  const numbered = (name: string, of: 'calls' | 'results'): string => {
    const known = functions.get(name) ?? { ids: [], calls: 0, results: 0, next: 1 };
    functions.set(name, known);
    const position = known[of]++;
    return (known.ids[position] ??= free(name, known));
  };
  const free = (name: string, known: { next: number }): string => {
    taken ??= idsIn(messages);
    for (;;) {
      const number = known.next++;
      const id = number === 1 ? `call_${name}` : `call_${name}_${number}`;
      if (taken.has(id)) continue;
      taken.add(id);
      return id;
    }
  };
  return { ofCall: (name) => numbered(name, 'calls'), ofResult: (name) => numbered(name, 'results') };
}
