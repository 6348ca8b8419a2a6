import { mayUseModel, type Principal } from '../../access/principal.ts';
import { DialectError, invalid, renderItems, type HistoryItem } from '../dialects/index.ts';
import { indexOfItem, linesById, readItems, sliceLines } from './item-lines.ts';
import type { Part, ResponseStore, StoredPart } from './response-store.ts';

/** A conversation with more turns cannot be continued by id. */
const MAX_TURNS = 1000;

/** Holds what a stored text takes in memory, before it is parsed. Throws what its client gets when there is no room. */
export type HoldText = (text: string) => void;

/** A part of a stored answer of the key, unless it is by a model that the key may no longer use. */
export async function readStored(
  store: ResponseStore,
  principal: Principal,
  id: string,
  part: Part,
): Promise<StoredPart | undefined> {
  const stored = await store.get(principal, id, part);
  return stored !== undefined && mayUseModel(principal, stored.model) ? stored : undefined;
}

/** The chain that ends with `id`, oldest item first. Throws DialectError when one is not stored or no longer. */
export async function readHistory(
  store: ResponseStore,
  principal: Principal,
  id: string,
  hold: HoldText,
): Promise<HistoryItem[]> {
  const turns: HistoryItem[][] = [];
  // Engines choose the ids, so a chain may be a circle. Reading each once bounds it by what the store has of a key.
  const seen = new Set<string>();
  let next: string | undefined = id;
  while (next !== undefined) {
    if (seen.has(next) || seen.size >= MAX_TURNS) throw notFound(id);
    seen.add(next);
    const stored = await readStored(store, principal, next, 'items');
    if (stored === undefined) throw notFound(id);
    hold(stored.text);
    turns.push(readItems(stored.text));
    next = stored.previous;
  }
  return turns.toReversed().flat();
}

/** The stored items that a body refers to, by their ids. */
export async function readReferences(
  store: ResponseStore,
  principal: Principal,
  ids: readonly string[],
  hold: HoldText,
): Promise<Map<string, HistoryItem[]>> {
  const found = new Map<string, HistoryItem[]>();
  if (ids.length === 0) return found;
  const answers = await store.findAnswers(principal, ids);
  for (const [answer, pairs] of Map.groupBy(answers, ([, one]) => one)) {
    const stored = await readStored(store, principal, answer, 'items');
    const wanted = new Set(pairs.map(([item]) => item));
    for (const [item, lines] of linesById(stored?.text ?? '', wanted)) {
      const text = lines.join('\n');
      hold(text);
      found.set(item, readItems(text));
    }
  }
  return found;
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

/** Parameters of a URL. */
type Query = Readonly<Record<string, string>>;

/**
 * A page of a response's own input, newest first by default, as OpenAI lists it. Parses the items of the page alone.
 * Throws DialectError 400.
 */
export function listInputItems(id: string, { text, inputs }: StoredPart, query: Query): object {
  const { after, order = 'desc' } = query;
  if (order !== 'asc' && order !== 'desc') throw invalid('order', "expected 'asc' or 'desc'");
  const limit = query.limit === undefined ? LIMIT : Number(query.limit);
  if (!Number.isInteger(limit) || limit < 1 || limit > MOST) throw invalid('limit', `expected 1 to ${MOST}`);
  const last = after === undefined ? undefined : positionOf(after, id, text);
  if (last !== undefined && (last < 0 || last >= inputs))
    throw invalid('after', 'expected the id of an item of this response');
  const isUp = order === 'asc';
  const from = isUp ? (last ?? -1) + 1 : Math.max(0, (last ?? inputs) - limit);
  const to = isUp ? Math.min(inputs, from + limit) : (last ?? inputs);
  const items = readItems(sliceLines(text, from, to).join('\n'));
  const data = renderItems(items).map((item, index) => ({
    ...item,
    id: 'id' in item ? (items[index]?.id ?? listedId(id, from + index)) : listedId(id, from + index),
  }));
  if (!isUp) data.reverse();
  return {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: isUp ? to < inputs : from > 0,
  };
}

/** What an item without an id of its own is called. */
function listedId(response: string, index: number): string {
  return `item_${response}_${index}`;
}

/** The index of the item that was listed under this id; -1 when there is none. */
function positionOf(listed: string, response: string, text: string): number {
  const index = Number(listed.slice(listed.lastIndexOf('_') + 1));
  return listed === listedId(response, index) ? index : indexOfItem(text, listed);
}
