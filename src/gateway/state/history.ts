import { mayUseModel, type Principal } from '../../access/principal.ts';
import { isObject } from '../../lib/json.ts';
import { DialectError, type HistoryItem } from '../dialects/index.ts';
import type { ResponseStore, StoredResponse } from './response-store.ts';

/** A conversation with more turns cannot be continued by id. */
const MAX_TURNS = 1000;

/** A stored answer of the key, unless it is by a model that the key may no longer use. */
export async function readStored(
  store: ResponseStore,
  principal: Principal,
  id: string,
): Promise<StoredResponse | undefined> {
  const stored = await store.get(principal, id);
  const model = isObject(stored?.response) ? stored.response.model : undefined;
  return typeof model === 'string' && !mayUseModel(principal, model) ? undefined : stored;
}

/** The chain that ends with `id`, oldest item first. Throws DialectError when one is not stored or no longer. */
export async function readHistory(store: ResponseStore, principal: Principal, id: string): Promise<HistoryItem[]> {
  const turns: (readonly HistoryItem[])[] = [];
  // Engines choose the ids, so a chain may be a circle. Reading each once bounds it by what the store has of a key.
  const seen = new Set<string>();
  let next: string | undefined = id;
  while (next !== undefined) {
    if (seen.has(next) || seen.size >= MAX_TURNS) throw notFound(id);
    seen.add(next);
    const stored = await readStored(store, principal, next);
    if (stored === undefined) throw notFound(id);
    turns.push(stored.items);
    next = stored.previous;
  }
  return turns.toReversed().flat();
}

function notFound(id: string): DialectError {
  return new DialectError({
    status: 400,
    message: `Previous response with id '${id.slice(0, 100)}' not found. It was not stored, was deleted, or has expired. Send the whole conversation as input.`,
    code: 'previous_response_not_found',
    param: 'previous_response_id',
  });
}
