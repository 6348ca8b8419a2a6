import { DialectError, type HistoryItem } from '../dialects/index.ts';
import type { ResponseStore } from './response-store.ts';

/** A conversation of more turns than this is not continued by id. */
const MAX_TURNS = 1000;

/**
 * The items of the whole chain that ends in the response `id`, oldest first.
 *
 * @throws DialectError when the response or one it continues is not kept (any more)
 */
export async function readHistory(store: ResponseStore, keyId: string, id: string): Promise<HistoryItem[]> {
  const turns: (readonly HistoryItem[])[] = [];
  // Engines choose the ids. Each read once, they hold what the store keeps of a key at most.
  const seen = new Set<string>();
  let next: string | undefined = id;
  while (next !== undefined) {
    if (seen.has(next) || seen.size >= MAX_TURNS) throw notFound(id);
    seen.add(next);
    const stored = await store.get(keyId, next);
    if (stored === undefined) throw notFound(id);
    turns.push(stored.items);
    next = stored.previous;
  }
  return turns.toReversed().flat();
}

function notFound(id: string): DialectError {
  return new DialectError({
    status: 400,
    message: `Previous response with id '${id.slice(0, 100)}' not found. It was not stored, was deleted or has expired: send the whole conversation as input.`,
    code: 'previous_response_not_found',
    param: 'previous_response_id',
  });
}
