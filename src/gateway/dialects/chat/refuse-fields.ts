import { isObject, type Json } from '../../../lib/json.ts';
import { unsupported } from '../errors/dialect-error.ts';
import { optionalNumber } from '../fields.ts';

/** What a client of chat asks for and no other dialect has a field for, with what it should do instead. */
const REFUSALS: Readonly<Record<string, { isAsked: (value: unknown) => boolean; words: string }>> = {
  n: {
    isAsked: (value) => (optionalNumber(value) ?? 1) > 1,
    words: 'This engine gives one choice per request. Send n = 1.',
  },
  logprobs: {
    isAsked: (value) => value === true,
    words: 'This engine gives no log probabilities. Remove the field.',
  },
  functions: { isAsked: isSet, words: "This engine takes 'tools' alone. Send the functions as tools." },
  function_call: { isAsked: isSet, words: "This engine takes 'tool_choice' alone. Send the choice there." },
  audio: { isAsked: isSet, words: 'This engine answers with text alone. Remove the field.' },
  modalities: {
    isAsked: (value) => Array.isArray(value) && value.some((one) => one !== 'text'),
    words: "This engine answers with text alone. Send ['text'].",
  },
  web_search_options: {
    isAsked: isSet,
    words: 'Web search runs at OpenAI and is not available here. Remove the field, or declare a function.',
  },
  logit_bias: {
    isAsked: (value) => isObject(value) && Object.keys(value).length > 0,
    words: 'This engine takes no bias of tokens. Remove the field.',
  },
};

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** Refuses a chat body that cannot be said in another dialect without a loss. Throws DialectError. */
export function refuseFields(body: Json): void {
  for (const [field, { isAsked, words }] of Object.entries(REFUSALS))
    if (isAsked(body[field])) throw unsupported(field, words);
}
