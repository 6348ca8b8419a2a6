import { withExactNumbers } from '../../lib/exact-json.ts';
import { isObject, type Json } from '../../lib/json.ts';
import { parseJson } from './fields.ts';

/** The key for arguments that are not a JSON object, which the messages dialect cannot carry otherwise. */
const RAW = '__raw_arguments';

/**
 * Arguments as the object that the messages dialect requires. Models sometimes write invalid JSON. It must reach the
 * client, whose tool complains for the model to correct itself, and it must survive a replay.
 */
export function inputOf(text: string): Json {
  if (text.trim() === '') return {};
  const value = parseJson(text);
  return isObject(value) ? (withExactNumbers(value, text, () => true) as Json) : { [RAW]: text };
}

/** The text of a tool input object. Keeps the client's order of keys, because another order spoils the prefix cache. */
export function argumentsOf(input: unknown): string {
  if (isObject(input)) {
    const raw = input[RAW];
    if (typeof raw === 'string' && Object.keys(input).length === 1) return raw;
    return JSON.stringify(input);
  }
  return input === undefined || input === null ? '{}' : JSON.stringify(input);
}

/** Arguments without the `null` that models write for none, and engines pass on: tools take objects. */
export function withoutNull(text: string): string {
  return text.trim() === 'null' ? '' : text;
}

/** Arguments for a chat or responses body, where engines decode them and fail on an empty string. */
export function argumentText(text: string): string {
  return text.trim() === '' ? '{}' : text;
}

/** An answer or event of a server, in which the inputs of calls have their numbers as the model wrote them. */
export function withExactInputs(value: unknown, json: string): unknown {
  return withExactNumbers(value, json, (name) => name === 'input' || name === 'arguments');
}
