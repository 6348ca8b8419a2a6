import { isObject, type Json } from '../../../lib/json.ts';
import { objectsOf, optionalString, textValue } from '../fields.ts';
import { GAVE_UP, stopOfResponses } from '../stop-reason.ts';
import { DialectError } from '../errors/dialect-error.ts';
import type { HistoryItem, IrResponse, OutputItem } from '../types.ts';
import { argumentsOf, withoutNull } from '../tool-arguments.ts';
import { parseUsage } from '../usage.ts';
import { givenItem, parseReasoningItem } from './parse-items.ts';
import { wireName } from './tools.ts';
import { parseVendorItem } from './vendor-items.ts';

/** A response resource in the internal form. Skips output items of hosted tools. */
export function parseResponsesResponse(body: Json): IrResponse | undefined {
  if (!Array.isArray(body.output)) return undefined;
  if (isGivenUpResponse(body)) throw new DialectError(GAVE_UP);
  const items = objectsOf(body.output).flatMap(parseOutputItem);
  const hasCalls = items.some((item) => item.kind === 'call');
  const details = isObject(body.incomplete_details) ? body.incomplete_details : {};
  return {
    items,
    stop: stopOfResponses(details.reason, hasCalls, body.status !== 'incomplete'),
    usage: parseUsage('responses', body.usage),
  };
}

export function isGivenUpResponse({ status }: Json): boolean {
  return status === 'failed' || status === 'cancelled';
}

/** One output item. A message becomes one item per content part, each with its id. */
export function parseOutputItem(item: Json): OutputItem[] {
  const id = typeof item.id === 'string' ? { id: item.id } : {};
  switch (item.type) {
    case 'message':
      return objectsOf(item.content).map((part) =>
        part.type === 'refusal'
          ? { kind: 'refusal', text: textValue(part.refusal), ...id }
          : { kind: 'text', text: textValue(part.text), ...id },
      );
    case 'reasoning':
      return [parseReasoningItem(item)];
    case 'function_call':
    case 'custom_tool_call':
      return [
        {
          kind: 'call',
          callId: optionalString(item.call_id) ?? textValue(item.id),
          name: wireName(optionalString(item.namespace), textValue(item.name)),
          arguments: argumentsIn(item),
          ...id,
        },
      ];
    default:
      return [];
  }
}

/** Some engines write the arguments as an object. */
function argumentsIn({ type, arguments: given, input }: Json): string {
  if (type !== 'function_call') return JSON.stringify({ input: textValue(input) });
  return isObject(given) ? argumentsOf(given) : withoutNull(textValue(given));
}

const OF_ANSWERS = new Set(['message', 'reasoning', 'function_call', 'custom_tool_call']);

/** An output item that is to be stored, also one of a tool of OpenAI's: what the client answers belongs to it. */
export function parseStoredItem(item: Json): HistoryItem[] {
  const output = parseOutputItem(item);
  if (output.length > 0 || typeof item.type !== 'string' || OF_ANSWERS.has(item.type)) return output;
  try {
    return parseVendorItem(item, 'output') ?? [givenItem(item)];
  } catch (error) {
    if (error instanceof DialectError) return [givenItem(item)];
    throw error;
  }
}
