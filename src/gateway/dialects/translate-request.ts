import { isObject, type Json } from '../../lib/json.ts';
import { parseChatRequest, withTextOfFiles } from './chat/parse-request.ts';
import { renderChatRequest } from './chat/render-request.ts';
import { withOwnCallIds } from './call-ids.ts';
import { estimateTokens, tokensOfItem } from './inspect/estimate-tokens.ts';
import { invalid } from './errors/dialect-error.ts';
import { changedItems, excerpt, objectAt, objectsOf, optionalNumber } from './fields.ts';
import { parseMessagesRequest, refuseMcpServers } from './messages/parse-request.ts';
import { renderMessagesRequest } from './messages/render-request.ts';
import { historyForVendor } from './messages/vendor-history.ts';
import { withoutBillingBlock } from './inspect/billing-line.ts';
import type { Engine, Quirks } from './quirks.ts';
import { checkImage, ignoresToolChoice } from './refusals.ts';
import { asksToCompact, compactQuestion } from './responses/compaction.ts';
import { referenceReader } from './responses/parse-items.ts';
import { parseResponsesRequest, refuseServerState } from './responses/parse-request.ts';
import { renderInput, renderItems, renderResponsesRequest } from './responses/render-request.ts';
import { inputForVendor, withoutSignatures } from './responses/vendor-input.ts';
import type { Dialect, HistoryItem, IrRequest, Step, Tool } from './types.ts';

export interface RequestOptions {
  /** The name under which the server has the model. */
  model: string;
  quirks: Quirks;
  /** Tokens of prompt and output together, when the probe found it. Output limits beyond it are lowered. */
  contextLength?: number | undefined;
  /** Items of the chain that `previous_response_id` names, oldest first. */
  history?: readonly HistoryItem[];
  /** The engine is to report tokens as it goes, where it can: a client may leave before the end. */
  isPriced?: boolean;
  /** Items for the ids in `Inspection.itemReferences`. An id may stand for several items. */
  references?: ReadonlyMap<string, readonly HistoryItem[]>;
  /** What a server that had the body as it is put between the texts of its system. By default each is a part of its own. */
  joinsSystem?: string | undefined;
}

const PARSERS = {
  chat: parseChatRequest,
  responses: parseResponsesRequest,
  messages: parseMessagesRequest,
} as const satisfies Record<Dialect, (body: Json, options: RequestOptions) => IrRequest>;

const RENDERERS = {
  chat: renderChatRequest,
  responses: renderResponsesRequest,
  messages: renderMessagesRequest,
} as const;

/**
 * Makes the server's body: between dialects through the internal form, within one as the client wrote it except for
 * what the gateway owns (model name, usage reporting, state, billing line). Throws DialectError for what the engine
 * cannot do.
 */
export function translateRequest(from: Dialect, to: Dialect, value: unknown, options: RequestOptions): Json {
  const body = objectAt(value, 'body');
  if (from === to) {
    refuseSameNames([...objectsOf(body.tools), ...objectsOf(body.functions)]);
    return ADJUSTERS[from](body, options);
  }
  const { model, quirks, contextLength, isPriced = false } = options;
  const parsed = PARSERS[from](body, options);
  refuseAbsent(parsed);
  const items = [...withOwnCallIds(parsed.items)];
  const request = truncated({ ...parsed, items, tools: uniqueTools(parsed.tools) }, body, contextLength);
  if (request.items.length === 0) throw invalid(from === 'responses' ? 'input' : 'messages', 'expected some content');
  const maxTokens = outputLimit(request.maxTokens, {
    contextLength,
    promptTokens: () => estimateTokens(from, body),
    engine: quirks.engine,
  });
  // A messages client needs the size of the prompt at once, for message_start.
  const earlyUsage = from === 'messages' || isPriced;
  const rendered = RENDERERS[to](request, { model, quirks, maxTokens, earlyUsage });
  if (to === 'messages' && objectsOf(rendered.messages).length === 0)
    throw invalid(from === 'responses' ? 'input' : 'messages', 'expected some text of a user');
  return rendered;
}

/** Throws DialectError for a call that is forced, where there is no tool for it: a server might forget about it. */
function refuseAbsent({ toolChoice: choice, tools }: IrRequest): void {
  const isForced = choice?.mode === 'tool' || choice?.mode === 'required';
  if (!isForced || tools.some(({ name }) => choice.mode !== 'tool' || name === choice.name)) return;
  throw invalid('tool_choice', "expected a tool that is in 'tools'");
}

/** Many times what agents have. A short declaration may stand for a long one. */
const MOST_TOOLS = 4096;

/**
 * The tools, each name once: an engine would answer with a call of either. Agents declare some twice in the same words.
 * Throws DialectError for two tools of one name.
 */
function uniqueTools(tools: readonly Tool[]): Tool[] {
  if (tools.length > MOST_TOOLS) throw invalid('tools', `expected at most ${MOST_TOOLS} tools`);
  const named = new Map<string, Tool>();
  for (const tool of tools) {
    const first = named.get(tool.name);
    if (first !== undefined && JSON.stringify(first) !== JSON.stringify(tool))
      throw invalid(
        'tools',
        `expected a name of its own for each tool, but ${inWords(first)} and ${inWords(tool)} are both '${tool.name}' to the model. Rename one`,
      );
    named.set(tool.name, tool);
  }
  return [...named.values()];
}

/** The same for the functions of a body that stays as it is. Throws DialectError. */
function refuseSameNames(tools: readonly Json[]): void {
  const named = new Map<string, Json>();
  for (const tool of tools) {
    const { name } = [tool.function, tool.custom].find(isObject) ?? tool;
    if (typeof name !== 'string' || tool.type === 'namespace') continue;
    const first = named.get(name);
    if (first !== undefined && JSON.stringify(first) !== JSON.stringify(tool))
      throw invalid('tools', `expected a name of its own for each tool, but two are '${excerpt(name)}'. Rename one`);
    named.set(name, tool);
  }
}

function inWords({ name, origin }: Tool): string {
  if (origin === undefined || origin.type === 'own' || origin.namespace === undefined) return `'${name}'`;
  return `'${origin.name}' of the namespace '${origin.namespace}'`;
}

/** @param contextLength tokens of prompt and answer together; without it nothing is left out */
function truncated(request: IrRequest, body: Json, contextLength: number | undefined): IrRequest {
  const isAsked = body.truncation === 'auto' || asksToCompact(body.input);
  if (!isAsked || contextLength === undefined) return request;
  const tools = request.tools.length === 0 ? 0 : estimateTokens('responses', { tools: request.tools });
  const bounds = { room: contextLength - tools, answer: request.maxTokens, sizeOf: tokensOfItem };
  return { ...request, items: truncateItems(request.items, bounds) };
}

/** For the answer, when the request names no limit. */
const ANSWER_TOKENS = 1024;
/** Estimates may be a fifth too low. */
const MARGIN = 1.2;

/**
 * Leaves out the oldest items of a conversation until the rest fits, as `truncation: auto` asks for. System text stays,
 * and so does everything from the last user message on. A call goes together with its result.
 *
 * @param room tokens of prompt and answer together
 * @param sizeOf estimates the tokens of one item
 */
function truncateItems(
  items: readonly Step[],
  { room, answer, sizeOf }: { room: number; answer: number | undefined; sizeOf: (item: Step) => number },
): Step[] {
  const limit = (room - Math.min(answer ?? ANSWER_TOKENS, room / 2)) / MARGIN;
  let size = items.reduce((sum, item) => sum + sizeOf(item), 0);
  const last = items.findLastIndex((item) => item.kind === 'message' && item.role === 'user');
  const dropped = new Set<Step>();
  const gone = new Set<string>();
  for (const [position, item] of items.entries()) {
    const isOrphan = item.kind === 'result' && gone.has(item.callId);
    if (!isOrphan && (size <= limit || position >= last)) continue;
    if (item.kind === 'message' && item.role === 'system') continue;
    dropped.add(item);
    if (item.kind === 'call') gone.add(item.callId);
    size -= sizeOf(item);
  }
  return items.filter((item) => !dropped.has(item));
}

const ADJUSTERS = {
  chat: adjustChat,
  responses: adjustResponses,
  messages: adjustMessages,
} as const;

function adjustChat(body: Json, { model, quirks }: RequestOptions): Json {
  const adjusted: Json = { ...withLimitName(body, quirks), model };
  if (quirks.engine !== 'unknown') adjusted.messages = withTextOfFiles(body.messages);
  if (body.stream === true) adjusted.stream_options = withUsage(body.stream_options);
  applyQuirks(adjusted, body, quirks);
  return adjusted;
}

function withLimitName(body: Json, { limitName }: Quirks): Json {
  if (limitName === 'max_tokens' || typeof body.max_tokens !== 'number') return body;
  const { max_tokens: limit, ...rest } = body;
  return { [limitName]: limit, ...rest };
}

/** The options of a stream that asks for usage: the same object when it does already. */
export function withUsage(options: unknown): Json {
  if (!isObject(options)) return { include_usage: true };
  return options.include_usage === true ? options : { ...options, include_usage: true };
}

function adjustResponses(body: Json, { model, quirks, history, references }: RequestOptions): Json {
  refuseServerState(body);
  const { previous_response_id: _previous, ...rest } = body;
  const adjusted: Json = { ...rest, model, store: false };
  if (asksToCompact(body.input)) adjusted.tool_choice = 'none';
  adjusted.input = inputWithHistory(body.input, { history, references, quirks });
  applyQuirks(adjusted, body, quirks);
  return adjusted;
}

function inputWithHistory(
  input: unknown,
  { history = [], references, quirks }: Pick<RequestOptions, 'history' | 'references' | 'quirks'>,
): unknown {
  const read = Array.isArray(input) ? resolved(input, { references, quirks }) : input;
  const given = quirks.checksThoughts ? inputForVendor(read) : withoutSignatures(read);
  if (history.length === 0) return given;
  const own = typeof given === 'string' ? [{ role: 'user', content: given }] : (given ?? []);
  return [...renderInput(history, quirks), ...(own as unknown[])];
}

/** Input with stored items in place of references to them, and a question in place of the sign of a summary. */
function resolved(input: unknown[], { references, quirks }: Pick<RequestOptions, 'references' | 'quirks'>): unknown[] {
  const refer = referenceReader(references);
  const trigger = asksToCompact(input) ? input.length - 1 : undefined;
  return changedItems(input, (item, position) => {
    if (position === trigger) return renderItems([compactQuestion()]);
    if (!isObject(item) || item.type !== 'item_reference') return [item];
    return renderInput(refer(item, `input[${position}]`), quirks);
  });
}

function adjustMessages(body: Json, options: RequestOptions): Json {
  if (options.quirks.engine !== 'unknown') refuseMcpServers(body);
  const adjusted: Json = { ...withoutBillingBlock(body), model: options.model };
  const limit = outputLimit(optionalNumber(body.max_tokens), {
    contextLength: options.contextLength,
    promptTokens: () => estimateTokens('messages', body),
    // This dialect requires the field, so the limit is lowered and never left out.
    engine: 'unknown',
  });
  if (limit !== undefined) adjusted.max_tokens = limit;
  if (options.quirks.checksThoughts) adjusted.messages = historyForVendor(body.messages, options.quirks);
  applyQuirks(adjusted, body, options.quirks);
  return adjusted;
}

/** Refuses what the engine ignores or cannot do. For `none`, an engine that ignores tool_choice gets no tools. */
function applyQuirks(adjusted: Json, body: Json, quirks: Quirks): void {
  if (!quirks.honoursToolChoice) {
    const { tool_choice: choice } = body;
    const mode = (isObject(choice) ? choice.type : choice) ?? 'auto';
    if (mode !== 'auto' && mode !== 'none') throw ignoresToolChoice();
    if (mode === 'none') {
      delete adjusted.tools;
      delete adjusted.tool_choice;
    }
  }
  if (!quirks.remoteImages) checkImages(body, quirks);
}

function checkImages(body: Json, quirks: Quirks): void {
  for (const entry of [...objectsOf(body.messages), ...objectsOf(body.input)]) {
    for (const part of [...objectsOf(entry.content), ...objectsOf(entry.output)]) {
      const source = isObject(part.source) ? part.source.url : undefined;
      const image = isObject(part.image_url) ? part.image_url.url : part.image_url;
      const url = source ?? image;
      if (typeof url === 'string') checkImage(url, quirks);
    }
  }
}

/**
 * The output limit to send. Engines refuse a prompt and limit beyond the context (vLLM: 400), and agents ask for the
 * most that their usual model can give. Undefined leaves the limit to the engine, which uses the rest of the context.
 */
function outputLimit(
  wanted: number | undefined,
  { contextLength, promptTokens, engine }: LimitOptions,
): number | undefined {
  if (wanted === undefined || contextLength === undefined) return wanted;
  // The estimate may be a fifth too low. Only a limit that clearly fits is passed on unchanged.
  const prompt = promptTokens() * 1.2;
  if (prompt + wanted <= contextLength) return wanted;
  const remaining = Math.max(1, Math.floor(contextLength - prompt));
  return engine === 'unknown' || engine === 'tgi' || wanted < remaining ? Math.min(wanted, remaining) : undefined;
}

interface LimitOptions {
  contextLength: number | undefined;
  promptTokens: () => number;
  engine: Engine;
}
