import { isObject, type Json } from '../../../lib/json.ts';
import { tidy } from '../shared/output-items.ts';
import { objectsOf, optionalString, parseJson } from '../fields.ts';
import { parseOutputItem } from '../responses/parse-response.ts';
import type { Dialect, HistoryItem, Usage } from '../types.ts';
import { parseUsage } from '../shared/usage.ts';

export interface ObservedBody {
  usage: Usage | undefined;
  /** Responses only: the output, to be stored. */
  items: HistoryItem[];
  /** Responses only: the id to store it under. */
  responseId: string | undefined;
}

const NOTHING_OBSERVED: ObservedBody = { usage: undefined, items: [], responseId: undefined };
const USAGE = Buffer.from('"usage":');
/** Far above the usage object of any engine. */
const USAGE_MAX_BYTES = 4096;
/** A body has one usage object. The text of the answer may name the field a few more times. */
const USAGE_TRIES = 8;

/** What the gateway needs of a response resource. */
export function observeResponse(response: Json): ObservedBody {
  const items = tidy(objectsOf(response.output).flatMap(parseOutputItem), false);
  return { usage: parseUsage('responses', response.usage), items, responseId: optionalString(response.id) };
}

/** Reads usage, in the responses dialect also items and id, of a body that is forwarded as it is. Never throws. */
export function observeBody(dialect: Dialect, bytes: Uint8Array): ObservedBody {
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (dialect === 'responses') {
    const body = parseJson(data.toString('utf8'));
    return isObject(body) ? observeResponse(body) : NOTHING_OBSERVED;
  }
  // Usage is near the end of a body. Only that object is decoded.
  let at = data.lastIndexOf(USAGE);
  for (let tries = 0; at > 0 && tries < USAGE_TRIES; tries++, at = data.lastIndexOf(USAGE, at - 1)) {
    const usage = parseUsage(dialect, parseJson(objectAfter(data, at + USAGE.length)));
    if (usage !== undefined) return { ...NOTHING_OBSERVED, usage };
  }
  return NOTHING_OBSERVED;
}

/** The text of the JSON object that starts at or soon after `from`. Usage objects have no strings with braces. */
function objectAfter(data: Buffer, from: number): string {
  const end = Math.min(data.length, from + USAGE_MAX_BYTES);
  let depth = 0;
  for (let at = from; at < end; at++) {
    if (data[at] === 0x7b) depth++;
    else if (data[at] === 0x7d) {
      depth--;
      if (depth <= 0) return data.toString('utf8', from, at + 1);
    }
  }
  return '';
}
