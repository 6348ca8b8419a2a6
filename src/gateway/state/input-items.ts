import { invalid, renderItems } from '../dialects/index.ts';
import type { StoredResponse } from './response-store.ts';

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
