import { parseChatRequest } from './chat/parse-request.ts';
import { ignoresToolChoice, renderChatRequest } from './chat/render-request.ts';
import { estimateTokens } from './inspect/estimate-tokens.ts';
import { invalid, unsupported } from './errors/dialect-error.ts';
import { isObject, objectAt, objectsOf, optionalNumber } from './fields.ts';
import { outputLimit } from './shared/limits.ts';
import { parseMessagesRequest } from './messages/parse-request.ts';
import { renderMessagesRequest } from './messages/render-request.ts';
import { withoutNonce } from './inspect/billing-line.ts';
import type { Quirks } from './quirks.ts';
import { parseInput } from './responses/parse-items.ts';
import { parseResponsesRequest } from './responses/parse-request.ts';
import { renderItems } from './responses/render-items.ts';
import { renderResponsesRequest } from './responses/render-request.ts';
import type { Dialect, HistoryItem, IrRequest, Json } from './types.ts';

export interface RequestOptions {
  /** The name the backend serves the model under. */
  model: string;
  quirks: Quirks;
  /** Tokens of prompt and output together, when the probe found it; output limits beyond it are lowered. */
  contextLength?: number;
  /** Items of the chain named by `previous_response_id`, oldest first. */
  history?: readonly HistoryItem[];
  /** Items for the ids in `Inspection.itemReferences`; an id may stand for several items. */
  references?: ReadonlyMap<string, readonly HistoryItem[]>;
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
 * Client body -> backend body. Between different dialects through the internal form; within one dialect the body is
 * kept as the client wrote it, except for what the gateway owns: model name, usage reporting, state, billing line.
 * Throws `DialectError` for what the backend cannot do.
 */
export function translateRequest(from: Dialect, to: Dialect, value: unknown, options: RequestOptions): Json {
  const body = objectAt(value, 'body');
  if (from === to) return KEEPERS[from](body, options);
  const request = PARSERS[from](body, options);
  if (request.items.length === 0) throw invalid(from === 'responses' ? 'input' : 'messages', 'expected some content');
  const maxTokens = outputLimit(request.maxTokens, {
    contextLength: options.contextLength,
    promptTokens: () => estimateTokens(from, body),
    quirks: options.quirks,
  });
  const { model, quirks } = options;
  // message_start carries the prompt's size, so a messages client needs it at once.
  return RENDERERS[to](request, { model, quirks, maxTokens, earlyUsage: from === 'messages' });
}

const KEEPERS = {
  chat: keepChat,
  responses: keepResponses,
  messages: keepMessages,
} as const;

function keepChat(body: Json, { model, quirks }: RequestOptions): Json {
  const kept: Json = { ...body, model };
  if (body.stream === true) {
    const asked = isObject(body.stream_options) ? body.stream_options : {};
    kept.stream_options = { ...asked, include_usage: true };
  }
  if (!quirks.honoursToolChoice) obeyToolChoice(kept, body.tool_choice);
  if (!quirks.remoteImages) refuseRemoteImages(body);
  return kept;
}

function keepResponses(body: Json, options: RequestOptions): Json {
  const { previous_response_id: _previous, ...rest } = body;
  const kept: Json = { ...rest, model: options.model, store: false };
  const { history = [], references } = options;
  const hasReferences = objectsOf(body.input).some((item) => item.type === 'item_reference');
  if (hasReferences) kept.input = renderItems([...history, ...parseInput(body.input, references)]);
  else if (history.length > 0) {
    const input = typeof body.input === 'string' ? [{ role: 'user', content: body.input }] : (body.input ?? []);
    kept.input = [...renderItems(history), ...(input as unknown[])];
  }
  if (!options.quirks.honoursToolChoice) obeyToolChoice(kept, body.tool_choice);
  if (!options.quirks.remoteImages) refuseRemoteImages(body);
  return kept;
}

function keepMessages(body: Json, options: RequestOptions): Json {
  const kept: Json = { ...withoutNonce(body), model: options.model };
  const wanted = optionalNumber(body.max_tokens);
  const limit = outputLimit(wanted, {
    contextLength: options.contextLength,
    promptTokens: () => estimateTokens('messages', body),
    // The field is required in this dialect, so it is lowered and never left out.
    quirks: { ...options.quirks, engine: 'unknown' },
  });
  if (limit !== undefined) kept.max_tokens = limit;
  if (!options.quirks.honoursToolChoice) obeyToolChoice(kept, body.tool_choice);
  if (!options.quirks.remoteImages) refuseRemoteImages(body);
  return kept;
}

/** For an engine that ignores tool_choice: `none` is obeyed by offering no tools, force is refused. */
function obeyToolChoice(kept: Json, choice: unknown): void {
  const mode = isObject(choice) ? choice.type : choice;
  if (mode === undefined || mode === null || mode === 'auto') return;
  if (mode !== 'none') throw ignoresToolChoice();
  delete kept.tools;
  delete kept.tool_choice;
}

function refuseRemoteImages(body: Json): void {
  for (const entry of [...objectsOf(body.messages), ...objectsOf(body.input)]) {
    for (const part of [...objectsOf(entry.content), ...objectsOf(entry.output)]) {
      const source = isObject(part.source) ? part.source.url : undefined;
      const image = isObject(part.image_url) ? part.image_url.url : part.image_url;
      const url = source ?? image;
      if (typeof url === 'string' && !url.startsWith('data:')) {
        throw unsupported(
          'image_url',
          'This engine takes images only as data URLs; the gateway does not fetch remote ones.',
        );
      }
    }
  }
}
