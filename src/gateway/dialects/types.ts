/** The three public dialects: OpenAI chat/completions, OpenAI responses, Anthropic messages. */
export type Dialect = 'chat' | 'responses' | 'messages';

/** A JSON object whose fields nobody has checked yet. */
export type Json = Record<string, unknown>;

/**
 * Token counts of one call. `inputTokens` includes the cached ones, as in chat and responses; the messages
 * dialect's three disjoint parts are computed from it.
 */
export interface Usage {
  inputTokens: number;
  outputTokens: number;
  cachedTokens: number;
  cacheWriteTokens: number;
  reasoningTokens: number;
}

/** A piece of user or tool-result content. Image URLs are data URLs or remote URLs; the gateway never fetches them. */
export type Part = { type: 'text'; text: string } | { type: 'image'; url: string; detail?: string };

type InputItem = { kind: 'message'; role: 'system' | 'user'; parts: Part[]; id?: string };
type TextItem = { kind: 'text'; text: string; id?: string };
type RefusalItem = { kind: 'refusal'; text: string; id?: string };
/** `signature` and `redacted` come from the messages dialect, `opaque` is another vendor's `encrypted_content`. */
export type ReasoningItem = {
  kind: 'reasoning';
  text: string;
  signature?: string;
  redacted?: string;
  opaque?: string;
  id?: string;
};
/** `arguments` is the text the model wrote: never re-serialised, possibly not valid JSON. */
export type CallItem = {
  kind: 'call';
  callId: string;
  name: string;
  arguments: string;
  id?: string;
};
type ResultItem = { kind: 'result'; callId: string; parts: Part[]; isError?: boolean; id?: string };

export type OutputItem = TextItem | RefusalItem | ReasoningItem | CallItem;

/**
 * One step of a conversation in the internal form. The same shape is what the gateway keeps for
 * `previous_response_id` and `item_reference`: plain JSON, `id` being the item id the client saw.
 */
export type HistoryItem = InputItem | OutputItem | ResultItem;

/** How a tool was declared by the client, when that differs from a plain function of the same name. */
export type ToolOrigin = { type: 'custom' } | { type: 'namespace'; namespace: string; name: string };

export interface Tool {
  /** Name on the wire to the engine. */
  name: string;
  description?: string;
  parameters: Json;
  strict: boolean;
  origin?: ToolOrigin;
}

export type ToolChoice = { mode: 'auto' | 'none' | 'required' } | { mode: 'tool'; name: string };

export type OutputFormat =
  | { type: 'json_object' }
  | { type: 'json_schema'; name?: string; description?: string; schema: Json; strict?: boolean };

/** A request in the internal form, independent of any dialect. */
export interface IrRequest {
  stream: boolean;
  items: HistoryItem[];
  tools: Tool[];
  toolChoice?: ToolChoice;
  parallel?: boolean;
  maxTokens?: number;
  stop: string[];
  format?: OutputFormat;
  /** The last message is the start of the answer (messages dialect). */
  continuesAnswer?: boolean;
  reasoning?: { enabled?: boolean; effort?: string; budget?: number };
  /** Sampling fields with the same name and meaning in every dialect that has them. */
  sampling: Json;
  /** Fields of the chat dialect without an equivalent elsewhere; sent only to chat backends. */
  chatOnly: Json;
}

/** Why generation ended. `tool` is decided by the presence of calls, not by what the engine claims. */
export type StopReason = 'end' | 'length' | 'tool' | 'filter' | 'stop_sequence' | 'pause' | 'context';

/** A whole answer in the internal form. */
export interface IrResponse {
  items: OutputItem[];
  stop: StopReason;
  stopSequence?: string;
  usage?: Usage;
}

/** An error on its way to a client. */
export interface ClientError {
  status: number;
  message: string;
  type?: string;
  code?: string | null;
  param?: string | null;
}

/** What the translators of one call need to know beside the bytes. */
export interface TranslationContext {
  /** Unique, `[A-Za-z0-9]+`; ids shown to the client are derived from it (`chatcmpl-…`, `resp_…`, `msg_…`). */
  id: string;
  /** Seconds since the epoch. */
  createdAt: number;
  /** The model name the client used. */
  model: string;
  /** The client's body, already accepted by `inspectRequest`. */
  request: unknown;
}
