import { isObject, type Json } from '../../../lib/json.ts';
import { DialectError, invalid, unsupported } from '../errors/dialect-error.ts';
import { arrayAt, objectAt, objectsOf, optionalNumber, optionalString, parseJson, textValue } from '../fields.ts';
import { withoutBillingLine } from './billing-line.ts';
import { isFreeData } from './free-data.ts';
import type { Dialect, HistoryItem } from '../types.ts';
import { textOf } from '../conversation.ts';
import { asksToCompact } from '../responses/compaction.ts';

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
  /** The answer is to be stored: the default in the responses dialect but for summaries, never in the others. */
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
    store: dialect === 'responses' && body.store !== false && !asksToCompact(body.input),
    previousResponseId: dialect === 'responses' ? optionalString(body.previous_response_id) : undefined,
    itemReferences: dialect === 'responses' ? referencesOf(body.input) : [],
  };
}

/** All are asked for at once. */
const MOST_REFERENCES = 10_000;

/** Numbers by which servers decide. Many of them also read the number in a text, or `true` as 1. */
const LIMITS = [
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
  'min_tokens',
  'n_predict',
  'n',
  'n_cmpl',
  'best_of',
] as const;

/** Fields by which a proxy of the operator says where an engine connects to, or which adapter it runs beside the model. */
const OF_PROXIES = [
  'kv_transfer_params',
  'ec_transfer_params',
  'bootstrap_host',
  'bootstrap_port',
  'bootstrap_room',
  'lora',
  'lora_path',
] as const;

/** Where vLLM takes the same fields from. */
const OF_ENGINE = 'vllm_xargs';

/**
 * Fields by which a caller decides for everybody at a server: what it runs as a program or loads, whom it serves first,
 * and whose session, slot or request of it a call is.
 */
const OF_SERVERS = [
  'chat_template',
  'custom_logit_processor',
  'logits_processors',
  'priority',
  'data_parallel_rank',
  'session_params',
  'rid',
  'id_slot',
] as const;

/** Tensors in the place of a prompt or a picture, which engines load (vLLM's prompt_embeds and image_embeds). */
const TENSORS = /_embeds$/;

/** What vLLM takes for arguments of its own where a template gets variables: the program, and whether to make tokens. */
const OF_TEMPLATES = ['chat_template', 'tokenize'] as const;
const TEMPLATE_VARIABLES = 'chat_template_kwargs';

/** Checks that a body is an object, names a model and nothing beside it, and has its limits as numbers. Throws DialectError. */
export function checkBody(body: unknown): asserts body is Json & { model: string } {
  if (!isObject(body)) throw new DialectError({ status: 400, message: 'The body must be a JSON object.' });
  if (typeof body.model !== 'string' || body.model === '') throw missing('model');
  refuseOfProxies(body);
  if (typeof (body.cache_salt ?? '') !== 'string') throw invalid('cache_salt', 'expected a text');
  for (const name of LIMITS) if (typeof (body[name] ?? 0) !== 'number') throw invalid(name, 'expected a number');
}

/** Throws DialectError 400 for what only a proxy of the operator says to an engine. */
export function refuseOfProxies(body: Json): void {
  const inside = isObject(body[OF_ENGINE]) ? body[OF_ENGINE] : {};
  const found = firstOf(body, OF_PROXIES) ?? firstOf(inside, OF_PROXIES, OF_ENGINE);
  if (found === undefined) return;
  throw unsupported(
    found,
    `'${found}' is for the operator of a model server. Remove it, and name an adapter as the model.`,
  );
}

/**
 * Throws DialectError 400 for a field by which a caller would decide for the others at a server.
 *
 * @param stored what the body continues
 */
export function refuseOfServers(body: Json, stored: readonly HistoryItem[] = []): void {
  const variables = isObject(body[TEMPLATE_VARIABLES]) ? body[TEMPLATE_VARIABLES] : {};
  const found =
    firstOf(body, OF_SERVERS) ??
    firstOf(variables, OF_TEMPLATES, TEMPLATE_VARIABLES) ??
    tensorsIn(body, true) ??
    tensorsIn(stored, false);
  if (found === undefined) return;
  throw unsupported(
    found,
    `'${found}' would decide for all tenants that share the servers of this model. Remove it, or call a server of your own.`,
  );
}

/** The name of the first field with tensors, at any depth. */
function tensorsIn(value: unknown, isBody: boolean): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (Array.isArray(value)) {
    for (const inner of value) {
      const found = tensorsIn(inner, false);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  const object = value as Json;
  for (const [name, inner] of Object.entries(object)) {
    if (TENSORS.test(name) && inner !== null) return name;
    const found = isFreeData(name, object, isBody) ? undefined : tensorsIn(inner, false);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The path of the first of these fields that is set. */
function firstOf(value: Json, names: readonly string[], path?: string): string | undefined {
  const name = names.find((one) => (value[one] ?? null) !== null);
  return name === undefined || path === undefined ? name : `${path}.${name}`;
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
  const ids = objectsOf(input).flatMap((item) =>
    item.type === 'item_reference' && typeof item.id === 'string' ? [item.id] : [],
  );
  if (ids.length > MOST_REFERENCES)
    throw invalid('input', `expected at most ${MOST_REFERENCES} items of item_reference`);
  return ids;
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
