import { isObject, type Json } from '../../../lib/json.ts';
import { objectsOf } from '../fields.ts';

/**
 * The events of a stream that say what a whole answer of chat says, where that is more than a translation keeps: several
 * answers, the probabilities of their tokens, or calls with members of the server's own. Undefined for any other.
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

const OF_CALLS = new Set(['id', 'index', 'type', 'function']);

/** Gemini wants what it put into a call back with it. */
function hasOwnMembers(message: unknown): boolean {
  const calls = isObject(message) ? objectsOf(message.tool_calls) : [];
  return calls.some((call) => Object.keys(call).some((name) => !OF_CALLS.has(name)));
}

/** Clients join calls by their index, which a whole answer has not. */
function deltaOf({ tool_calls: calls, ...message }: Json): Json {
  return { ...message, ...(Array.isArray(calls) && { tool_calls: objectsOf(calls).map(withIndex) }) };
}

function withIndex(call: Json, index: number): Json {
  return { index, ...call };
}
