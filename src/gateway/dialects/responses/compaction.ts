import { isObject, type Json } from '../../../lib/json.ts';
import { DialectError } from '../errors/dialect-error.ts';
import { decodeSummary } from '../encrypted-content.ts';
import { objectsOf, optionalString } from '../fields.ts';
import type { Step } from '../types.ts';

const TRIGGER = 'compaction_trigger';

/** What the model is asked in place of the trigger. */
const QUESTION =
  'Sum up this conversation for an assistant who will continue it and sees nothing but your summary. Name the task and its constraints in the words of the user, what was decided and why, what was done and found, with the exact names of files, commands and values that are still needed, and what is left to do. Write only the summary, and call no tool.';

/** Whether the input of a body ends with OpenAI's sign that the conversation is to be summed up. */
export function asksToCompact(input: unknown): boolean {
  const last: unknown = Array.isArray(input) ? input.at(-1) : undefined;
  return isObject(last) && last.type === TRIGGER;
}

/** A body of `/responses/compact` as one of `/responses`. */
export function toCompact(body: unknown): unknown {
  if (!isObject(body)) return body;
  const { input, stream: _stream, ...rest } = body;
  const items: unknown = typeof input === 'string' ? [{ role: 'user', content: input }] : (input ?? []);
  return { ...rest, input: Array.isArray(items) ? [...(items as unknown[]), { type: TRIGGER }] : items };
}

export function compactQuestion(): Step {
  return userMessage(QUESTION);
}

/** A summary in the input: that of this gateway as text. Another provider's is for itself alone. */
export function parseCompaction(item: Json): Step {
  const summary = decodeSummary(optionalString(item.encrypted_content) ?? '');
  return userMessage(
    summary === undefined
      ? 'An earlier part of this conversation was summed up by another provider, and cannot be read here.'
      : `Summary of the conversation until here:\n\n${summary}`,
  );
}

function userMessage(text: string): Step {
  return { kind: 'message', role: 'user', parts: [{ type: 'text', text }] };
}

/** The answer of `/responses/compact`, out of one of `/responses`. Throws DialectError without a summary. */
export function compacted(response: unknown): Json {
  const { id, created_at, output, usage } = isObject(response) ? response : {};
  const summaries = objectsOf(output).filter(({ type }) => type === 'compaction');
  if (summaries.length === 0)
    throw new DialectError({
      status: 502,
      message: 'The model wrote no summary of the conversation. Try again, or continue without compaction.',
      code: 'bad_upstream_response',
    });
  return { id, object: 'response.compaction', created_at, output: summaries, usage };
}
