import type { Json } from '../../lib/json.ts';

/** The three public dialects: OpenAI chat/completions, OpenAI responses, Anthropic messages. */
export const DIALECTS = ['chat', 'responses', 'messages'] as const;
export type Dialect = (typeof DIALECTS)[number];

/** The route of each dialect, behind the path prefix of the server. */
export const ROUTES = {
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
} as const satisfies Record<Dialect, string>;

/** Token counts of one call. `inputTokens` includes the cached ones, as in chat and responses but not in messages. */
export interface Usage {
  inputTokens: number;
  outputTokens: number;
  cachedTokens: number;
  cacheWriteTokens: number;
  reasoningTokens: number;
}

/** A piece of user or tool-result content. Images have data URLs or remote URLs, which the gateway never fetches. */
export type Part = { type: 'text'; text: string } | { type: 'image'; url: string; detail?: string };

type InputItem = { kind: 'message'; role: 'system' | 'user'; parts: Part[]; id?: string };
type TextItem = { kind: 'text'; text: string; id?: string };
type RefusalItem = { kind: 'refusal'; text: string; id?: string };
/**
 * `signature` and `redacted` come from the messages dialect. `opaque` is another vendor's `encrypted_content`.
 * `callSignature` is what a chat server sealed for the call that follows, by whichever model.
 */
export type ReasoningItem = {
  kind: 'reasoning';
  text: string;
  signature?: string;
  redacted?: string;
  opaque?: string;
  callSignature?: { data: string; by: string };
  id?: string;
};
/** `arguments` is the text that the model wrote. It may be invalid JSON, and is passed on as it is. */
export type CallItem = {
  kind: 'call';
  callId: string;
  name: string;
  arguments: string;
  id?: string;
};
type ResultItem = { kind: 'result'; callId: string; parts: Part[]; isError?: boolean; id?: string };

export type OutputItem = TextItem | RefusalItem | ReasoningItem | CallItem;

/** One step of a conversation. The gateway stores it as plain JSON, where `id` is the item id that the client saw. */
export type Step = InputItem | OutputItem | ResultItem;

/** Tools that a client of responses adds in the middle of a conversation, as it declared them. */
type ToolsItem = { kind: 'tools'; tools: Json[]; id?: string };

export type ParsedItem = Step | ToolsItem;

/** An item that says more than there is a form for, as the client or its server wrote it: servers of responses read it. */
type GivenItem = { kind: 'given'; item: Json; id?: string };

export type HistoryItem = ParsedItem | GivenItem;

/** How the client declared a tool that is more than a plain function of the same name. */
export type ToolOrigin =
  | { type: 'custom'; namespace?: string; name: string }
  | { type: 'namespace'; namespace: string; name: string }
  /** A tool that OpenAI defines and the client runs. Its calls are items of their own. */
  | { type: 'own'; name: OwnToolName };

export type OwnToolName = 'tool_search' | 'shell' | 'local_shell' | 'apply_patch';

export interface Tool {
  /** The name that the engine sees. */
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
  items: Step[];
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
  /** Fields that only the chat dialect has. They are sent to chat engines alone. */
  chatOnly: Json;
}

/** Why generation ended. An answer with calls ends with `tool`, whatever the engine says. */
export type StopReason = 'end' | 'length' | 'tool' | 'filter' | 'stop_sequence' | 'pause' | 'context';

/** A whole answer in the internal form. */
export interface IrResponse {
  items: OutputItem[];
  stop: StopReason;
  stopSequence?: string;
  usage?: Usage;
}

/** What an engine says of a request that does not fit, in tokens. Engines leave out what they do not know. */
export interface Overflow {
  prompt?: number | undefined;
  /** What the answer may have, by the request that the engine got. */
  output?: number | undefined;
  /** For prompt and answer together. */
  limit?: number | undefined;
}

/** An error on its way to a client. */
export interface ClientError {
  status: number;
  message: string;
  code?: string | null;
  param?: string | null;
  /** For the code `context_length_exceeded`. */
  overflow?: Overflow | undefined;
}

/** What the translators need to know of a call, besides its bytes. */
export interface TranslationContext {
  /** Unique, `[A-Za-z0-9]+`. The ids that the client sees derive from it (`chatcmpl-…`, `resp_…`, `msg_…`). */
  id: string;
  /** The id of a chat answer that an engine began. */
  chatId?: string;
  /** A response that an engine began, as the client was told of it. */
  begun?: Json;
  /** Seconds since the epoch. */
  createdAt: number;
  /** The model name that the client used. */
  model: string;
  /** The name under which the server has the model. */
  upstreamModel?: string;
  /** The client's body, already accepted by `inspectRequest`. */
  request: unknown;
  /** Stored items that the call continues or refers to. */
  history?: readonly HistoryItem[];
}
