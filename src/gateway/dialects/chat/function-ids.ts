import { objectsOf } from '../fields.ts';

/** Ids for calls of functions, which came before tools and have none. Each is asked for in the order of the history. */
export interface FunctionIds {
  ofCall(name: string): string;
  ofResult(name: string): string;
}

/** The nth result of a name answers its nth call. No id is one that the messages have themselves. */
export function idsOfFunctions(messages: readonly unknown[]): FunctionIds {
  const taken = new Set<unknown>();
  for (const message of objectsOf(messages)) {
    taken.add(message.tool_call_id);
    for (const { id } of objectsOf(message.tool_calls)) taken.add(id);
  }
  const functions = new Map<string, { ids: string[]; calls: number; results: number; next: number }>();
  const numbered = (name: string, of: 'calls' | 'results'): string => {
    const known = functions.get(name) ?? { ids: [], calls: 0, results: 0, next: 1 };
    functions.set(name, known);
    const position = known[of]++;
    return (known.ids[position] ??= free(name, known));
  };
  const free = (name: string, known: { next: number }): string => {
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
