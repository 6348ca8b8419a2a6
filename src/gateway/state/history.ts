import { mayUseModel, type Principal } from '../../access/principal.ts';
import { isObject } from '../../lib/json.ts';
import { DialectError, invalid, renderItems, type HistoryItem } from '../dialects/index.ts';
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

const LIMIT = 20;
const MOST = 100;

type Query = Readonly<Record<string, unknown>>;

/** A page of a response's own input, newest first by default, as OpenAI lists it. Throws DialectError 400. */
export function listInputItems(id: string, { items, inputs = 0 }: StoredResponse, query: Query): object {
  const { after, order = 'desc' } = query;
  if (order !== 'asc' && order !== 'desc') throw invalid('order', "expected 'asc' or 'desc'");
  const limit = query.limit === undefined ? LIMIT : Number(query.limit);
  if (!Number.isInteger(limit) || limit < 1 || limit > MOST) throw invalid('limit', `expected 1 to ${MOST}`);
  const listed = renderItems(items.slice(0, inputs)).map((item, index) => ({
    ...item,
    id: typeof item.id === 'string' ? item.id : `item_${id}_${index}`,
  }));
  if (order === 'desc') listed.reverse();
  const from = after === undefined ? 0 : listed.findIndex((item) => item.id === after) + 1;
  if (after !== undefined && from === 0) throw invalid('after', 'expected the id of an item of this response');
  const data = listed.slice(from, from + limit);
  return {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: from + limit < listed.length,
  };
}
