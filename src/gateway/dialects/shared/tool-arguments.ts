import { isObject, type Json } from '../../../lib/json.ts';
import { parseJson } from '../fields.ts';

/** The key under which arguments that are not a JSON object travel through the messages dialect. */
const RAW = '__raw_arguments';

/**
 * Arguments as the object the messages dialect wants. Models do write invalid JSON; it must reach the client, so
 * that its tool can complain and the model correct itself, and it must survive being replayed.
 */
export function inputOf(text: string): Json {
  if (text.trim() === '') return {};
  const value = parseJson(text);
  return isObject(value) ? value : { [RAW]: text };
}

/** The text of a tool input object; key order is the client's, because re-ordering spoils KV reuse. */
export function argumentsOf(input: unknown): string {
  if (isObject(input)) {
    const raw = input[RAW];
    if (typeof raw === 'string' && Object.keys(input).length === 1) return raw;
    return JSON.stringify(input);
  }
  return input === undefined || input === null ? '{}' : JSON.stringify(input);
}

/** Arguments for a chat or responses body: an engine that decodes them blindly must not meet an empty string. */
export function argumentText(text: string): string {
  return text.trim() === '' ? '{}' : text;
}
