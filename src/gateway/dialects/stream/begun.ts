import { isObject, type Json } from '../../../lib/json.ts';
import { optionalNumber, optionalString, parseJson } from '../fields.ts';
import { SseReader } from './sse-reader.ts';

/** What a client was told of an answer that broke off, beside its text. */
export interface Begun {
  /** The head of its text. */
  hasHead: boolean;
  /** Responses only: as it was when its engine began. */
  response: Json;
  /** Responses only: under which the client knows the text. */
  itemId: string | undefined;
  /** Responses only: the number of the next event. */
  sequence: number;
}

function readEvents(told: Uint8Array, read: (event: Json) => void): void {
  const reader = new SseReader((data) => {
    const event = parseJson(data);
    if (isObject(event)) read(event);
  });
  reader.push(told);
}

/** Undefined where the client was told of anything but a text. */
export function begunMessage(told: Uint8Array): Pick<Begun, 'hasHead'> | undefined {
  const blocks: unknown[] = [];
  readEvents(told, ({ type, content_block: block }) => {
    if (type === 'content_block_start' && isObject(block)) blocks.push(block.type);
  });
  return blocks.every((type) => type === 'text') ? { hasHead: blocks.length > 0 } : undefined;
}

/** Undefined where the client was told of anything but the whole start of one text. */
export function begunResponse(told: Uint8Array): Begun | undefined {
  let response: Json | undefined;
  let isOther = false;
  let sequence = 0;
  const items: Json[] = [];
  let parts = 0;
  readEvents(told, (event) => {
    sequence = (optionalNumber(event.sequence_number) ?? sequence) + 1;
    if (event.type === 'response.created') return;
    if (event.type === 'response.in_progress' && isObject(event.response)) ({ response } = event);
    else if (event.type === 'response.output_item.added' && isObject(event.item)) items.push(event.item);
    else if (event.type === 'response.content_part.added') parts += 1;
    else isOther ||= event.type !== 'response.output_text.delta' || parts === 0;
  });
  const [item] = items;
  const isText = items.length < 2 && parts === items.length && (item === undefined || item.type === 'message');
  if (isOther || !isText || typeof response?.id !== 'string') return undefined;
  return { hasHead: item !== undefined, response, itemId: optionalString(item?.id), sequence };
}
