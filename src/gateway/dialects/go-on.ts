import { isObject, type Json } from '../../lib/json.ts';
import { objectsOf } from './fields.ts';
import { withoutBillingBlock } from './inspect/billing-line.ts';
import type { Quirks } from './quirks.ts';
import type { ClientError } from './types.ts';

// OpenCode sends a call again only where an error inside a stream has such words as its first two.
export const BROKE_OFF: ClientError = {
  status: 502,
  message: 'Connection lost: the model server broke off in the middle of the answer. Try again.',
};

/** What a client has of an answer that broke off. */
export interface Told {
  text: string;
  /** How many the text has: one for each event of its engine, or by its length where events have several. */
  tokens: number;
  /** How many of them, at its end, are white space. */
  blank: number;
}

/** How an engine goes on with an answer. */
export interface GoingOn {
  /** Tokens of the answer that it is given, which it counts as part of its prompt. */
  given: number;
  /** White space that the client has, and the engine is to write again. */
  repeated: string;
}

/**
 * What a body may have, with any value: it says the same of the rest of an answer as of the whole. Whatever is not here,
 * such as a seed, a grammar or what counts tokens of the answer, may depend on where the answer began.
 */
const SAME_FOR_THE_REST = new Set([
  'model',
  'messages',
  'stream',
  'stream_options',
  'max_tokens',
  'max_completion_tokens',
  'stop',
  'temperature',
  'top_p',
  'top_k',
  'min_p',
  'repetition_penalty',
  'logit_bias',
  'tools',
  'parallel_tool_calls',
  'chat_template_kwargs',
  'reasoning_effort',
  'continue_final_message',
  'add_generation_prompt',
  'user',
  'metadata',
  'store',
  'service_tier',
  'safety_identifier',
  'prompt_cache_key',
  'cache_salt',
]);

/** What bodies of messages and responses may have beside: their translation says as much. */
const SAID_IN_CHAT = new Set([
  ...SAME_FOR_THE_REST,
  'system',
  'stop_sequences',
  'tool_choice',
  'thinking',
  'output_config',
  'cache_control',
  'input',
  'instructions',
  'max_output_tokens',
  'reasoning',
  'text',
  'include',
  'previous_response_id',
  'truncation',
  'background',
]);

/**
 * Whether a chat body says to an engine what a body of messages or responses says. Engines read other members there, too,
 * and each joins texts of the system in its own way.
 *
 * @param joinsSystem what the engine put between them in a body of messages
 */
export function isSaidInChat(body: Json, joinsSystem: Quirks['joinsSystem']): boolean {
  const { system, input } = withoutBillingBlock(body);
  const isJoined =
    (joinsSystem === undefined && objectsOf(system).length > 1) ||
    objectsOf(input).some(({ role }) => OF_SYSTEM.has(role));
  return !isJoined && Object.keys(body).every((name) => SAID_IN_CHAT.has(name));
}

const OF_SYSTEM = new Set<unknown>(['system', 'developer']);

/** The values with which other members say nothing. */
const NEUTRAL = new Map<string, (value: unknown) => boolean>(
  Object.entries({
    n: (value: unknown) => value === 1,
    logprobs: (value: unknown) => value === false,
    frequency_penalty: (value: unknown) => value === 0,
    presence_penalty: (value: unknown) => value === 0,
    tool_choice: (value: unknown) => value === 'auto' || value === 'none',
    response_format: (value: unknown) => isObject(value) && value.type === 'text',
  }),
);

/** Whether a chat body says nothing that depends on where the answer begins. */
function isSameForTheRest(body: Json): boolean {
  return Object.entries(body).every(
    ([name, value]) => value === null || SAME_FOR_THE_REST.has(name) || NEUTRAL.get(name)?.(value) === true,
  );
}

/** Characters of all strings that stop an answer. Clients send a few words. Where they are longer, nothing goes on. */
const STOP_MAX = 65_536;

/** Whether a text ends with the start of what ends the answer: who gets that start does not know the rest when it writes it. */
function mayBeWithinStop(text: string, stop: unknown): boolean {
  const all = [stop].flat().filter((one) => typeof one === 'string');
  return all.reduce((sum, one) => sum + one.length, 0) > STOP_MAX || all.some((one) => endsWithStart(text, one));
}

/** Reads each character of the start and of the end once (Knuth, Morris and Pratt, SIAM Journal on Computing 6(2), 1977). */
function endsWithStart(text: string, whole: string): boolean {
  if (whole.length < 2) return false;
  /** How much of the start of `whole` is the end of its first characters. */
  const borders = [0];
  const matchedWith = (matched: number, char: string | undefined): number => {
    let length = matched;
    while (length > 0 && whole[length] !== char) length = borders[length - 1] ?? 0;
    return whole[length] === char ? length + 1 : 0;
  };
  for (let at = 1; at < whole.length; at += 1) borders.push(matchedWith(borders[at - 1] ?? 0, whole[at]));
  let matched = 0;
  for (let at = Math.max(0, text.length - whole.length + 1); at < text.length; at += 1)
    matched = matchedWith(matched, text[at]);
  return matched > 0;
}

/**
 * The chat body that has an engine go on with an answer, and write what the engine that began it would have written;
 * undefined where that cannot be exact.
 *
 * @param body as the engine would get it for the whole answer
 */
export function bodyToGoOn(body: Json, told: Told, quirks: Quirks): (GoingOn & { body: Json }) | undefined {
  if (!quirks.goesOn || !isSameForTheRest(body) || mayBeWithinStop(told.text, body.stop)) return undefined;
  // Where vLLM gets a last message, it may lose the white space at its end (transformers, `continue_final_message`).
  const isTrimmed = quirks.engine === 'vllm';
  const text = isTrimmed ? told.text.trimEnd() : told.text;
  const given = isTrimmed ? told.tokens - told.blank : told.tokens;
  const limited = withRest(body, given);
  const messages = limited && withAnswer(objectsOf(body.messages), text, body, quirks);
  if (messages === undefined) return undefined;
  const field = quirks.continuesAnswer && text !== '' && { continue_final_message: true, add_generation_prompt: false };
  return { body: { ...limited, messages, ...field }, given, repeated: told.text.slice(text.length) };
}

/** A body whose limit is of what is left of the answer; undefined where nothing is. */
function withRest(body: Json, tokens: number): Json | undefined {
  const rest = { ...body };
  for (const name of ['max_tokens', 'max_completion_tokens']) {
    const limit = body[name];
    if (typeof limit !== 'number') continue;
    if (limit <= tokens) return undefined;
    rest[name] = limit - tokens;
  }
  return rest;
}

function withAnswer(messages: readonly Json[], text: string, body: Json, quirks: Quirks): Json[] | undefined {
  const last = messages.at(-1);
  if (last?.role !== 'assistant')
    return text === '' ? [...messages] : [...messages, { role: 'assistant', content: text }];
  // The client itself wrote the start of the answer. Where that is no more than a turn of its own, nothing can follow it.
  const isStart = body.continue_final_message === true || quirks.engine === 'llama.cpp';
  if (!isStart || typeof last.content !== 'string') return undefined;
  return [...messages.slice(0, -1), { ...last, content: last.content + text }];
}
