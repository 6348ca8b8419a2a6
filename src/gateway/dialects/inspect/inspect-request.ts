import { isObject, type Json } from '../../../lib/json.ts';
import { DialectError, invalid } from '../errors/dialect-error.ts';
import { arrayAt, objectAt, objectsOf, optionalNumber, optionalString, parseJson, textValue } from '../fields.ts';
import { withoutBillingLine } from './billing-line.ts';
import type { Dialect, HistoryItem } from '../types.ts';
import { textOf } from '../conversation.ts';

/** What routing needs to know of a client's body. */
export interface Inspection {
  model: string;
  stream: boolean;
  /** The start of the prompt, the same in every dialect: system text, tool names, first user text. */
  promptPrefix: string[];
  /** The client's own session key (`prompt_cache_key`, Claude Code's session id), which counts more than the prefix. */
  sessionHint: string | undefined;
  /** The client asked for usage in a chat stream. Otherwise the usage chunk, which the gateway asks for, is hidden. */
  wantsUsage: boolean;
  /** The answer is to be stored: the default in the responses dialect, never in the others. */
  store: boolean;
  previousResponseId: string | undefined;
  /** Responses only: the ids of `item_reference` inputs, which the gateway's store must have. */
  itemReferences: string[];
}

/** Checks a client's body far enough to route it. Throws DialectError. */
export function inspectRequest(dialect: Dialect, body: unknown): Inspection {
  checkBody(body);
  const { model, stream } = body;
  if (stream !== undefined && stream !== null && typeof stream !== 'boolean') {
    throw invalid('stream', 'expected a boolean');
  }
  checkInput(dialect, body);
  return {
    model,
    stream: stream === true,
    promptPrefix: promptPrefix(dialect, body),
    sessionHint: sessionHint(dialect, body),
    wantsUsage: isObject(body.stream_options) && body.stream_options.include_usage === true,
    store: dialect === 'responses' && body.store !== false,
    previousResponseId: dialect === 'responses' ? optionalString(body.previous_response_id) : undefined,
    itemReferences: dialect === 'responses' ? referencesOf(body.input) : [],
  };
}

/** Checks that a body is an object and names a model. Throws DialectError. */
export function checkBody(body: unknown): asserts body is Json & { model: string } {
  if (!isObject(body)) throw new DialectError({ status: 400, message: 'The body must be a JSON object.' });
  if (typeof body.model !== 'string' || body.model === '') throw missing('model');
}

function missing(param: string): DialectError {
  return new DialectError({
    status: 400,
    message: `Missing required parameter: '${param}'.`,
    code: 'missing_required_parameter',
    param,
  });
}

function checkInput(dialect: Dialect, body: Json): void {
  if (dialect === 'responses') {
    const { input } = body;
    if (input === undefined && body.previous_response_id === undefined) throw missing('input');
    if (input !== undefined && typeof input !== 'string') arrayAt(input, 'input');
    return;
  }
  if (dialect === 'messages' && optionalNumber(body.max_tokens) === undefined) throw missing('max_tokens');
  checkMessages(body);
}

/** The checks that a count_tokens body must pass too, which has no limit. Throws DialectError. */
export function checkMessages(value: unknown): void {
  const body = objectAt(value, 'body');
  if (body.messages === undefined) throw missing('messages');
  const messages = arrayAt(body.messages, 'messages');
  if (messages.length === 0) throw invalid('messages', 'expected at least one message');
  for (const [position, message] of messages.entries()) {
    const { role } = objectAt(message, `messages[${position}]`);
    if (typeof role !== 'string') throw missing(`messages[${position}].role`);
  }
}

function referencesOf(input: unknown): string[] {
  return objectsOf(input).flatMap((item) =>
    item.type === 'item_reference' && typeof item.id === 'string' ? [item.id] : [],
  );
}

/**
 * The start of the prompt in a form that is the same in every dialect, without the billing line. `history` is the
 * stored chain of a responses request. Only the first user text counts: all turns of one conversation share it.
 */
export function promptPrefix(dialect: Dialect, body: Json, history: readonly HistoryItem[] = []): string[] {
  const tools = objectsOf(body.tools)
    .map((tool) => textValue(isObject(tool.function) ? tool.function.name : tool.name))
    .join(',');
  const system: string[] = [];
  if (dialect === 'messages') system.push(withoutBillingLine(plainText(body.system)));
  if (dialect === 'responses' && typeof body.instructions === 'string') system.push(body.instructions);
  const stored = history.find((item) => item.kind === 'message' && item.role === 'user');
  if (stored?.kind === 'message') return [system.join('\n\n'), tools, textOf(stored.parts)];
  if (typeof body.input === 'string') return [system.join('\n\n'), tools, body.input];
  let user = '';
  for (const entry of objectsOf(dialect === 'responses' ? body.input : body.messages)) {
    if (entry.role === 'system' || entry.role === 'developer') system.push(plainText(entry.content));
    else if (entry.role === 'user') {
      user = plainText(entry.content);
      break;
    }
  }
  return [system.filter((text) => text !== '').join('\n\n'), tools, user];
}

function plainText(content: unknown): string {
  if (typeof content === 'string') return content;
  return objectsOf(content)
    .map((part) => (typeof part.text === 'string' ? withoutBillingLine(part.text) : ''))
    .filter((text) => text !== '')
    .join('\n\n');
}

function sessionHint(dialect: Dialect, body: Json): string | undefined {
  if (dialect !== 'messages') return optionalString(body.prompt_cache_key);
  const user = isObject(body.metadata) ? optionalString(body.metadata.user_id) : undefined;
  if (user === undefined) return undefined;
  // Claude Code sends `user_<hash>_account_<uuid>_session_<uuid>`, in later releases a JSON object with session_id.
  const session = /_session_([A-Za-z0-9-]+)/.exec(user)?.[1];
  const parsed = user.startsWith('{') ? parseJson(user) : undefined;
  return session ?? (isObject(parsed) ? optionalString(parsed.session_id) : undefined);
}
