import { isObject, type Json } from '../../../lib/json.ts';
import { objectsOf } from '../fields.ts';

/**
 * The events of a stream that say what a whole answer of chat says, where that is more than a translation keeps: several
 * answers, the probabilities of their tokens, or members of the server's own. Undefined for any other.
 */
export function wholeAsChunks(answer: unknown): string | undefined {
  if (!isObject(answer)) return undefined;
  const { choices, usage, ...head } = answer;
  const all = objectsOf(choices);
  const hasMore = all.length > 1 || all.some(({ logprobs, message }) => isObject(logprobs) || hasOwnMembers(message));
  if (!hasMore || !all.every(({ message }) => isObject(message))) return undefined;
  const common = { ...head, object: 'chat.completion.chunk' };
  const deltas = all.map(({ message, ...rest }) => ({ ...rest, delta: deltaOf(message as Json) }));
  const chunks = [{ ...common, choices: deltas }, ...(isObject(usage) ? [{ ...common, choices: [], usage }] : [])];
  return `${chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')}data: [DONE]\n\n`;
}

/** What a translation keeps of a message and of its calls. */
const OF_MESSAGES = new Set(['role', 'content', 'refusal', 'reasoning', 'reasoning_content', 'tool_calls']);
const OF_CALLS = new Set(['id', 'index', 'type', 'function']);

/** Gemini and OpenRouter want what they put there back in the next turn. */
function hasOwnMembers(message: unknown): boolean {
  if (!isObject(message)) return false;
  return hasOthers(message, OF_MESSAGES) || objectsOf(message.tool_calls).some((call) => hasOthers(call, OF_CALLS));
}

function hasOthers(value: Json, known: ReadonlySet<string>): boolean {
  return Object.entries(value).some(([name, inner]) => !known.has(name) && !isEmpty(inner));
}

function isEmpty(value: unknown): boolean {
  return value === null || value === '' || (Array.isArray(value) && value.length === 0);
}

/** Clients join calls by their index, which a whole answer has not. */
function deltaOf({ tool_calls: calls, ...message }: Json): Json {
  return { ...message, ...(Array.isArray(calls) && { tool_calls: objectsOf(calls).map(withIndex) }) };
}

function withIndex(call: Json, index: number): Json {
  return { index, ...call };
}
