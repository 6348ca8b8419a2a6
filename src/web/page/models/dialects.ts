/** The APIs in which a model can be asked. */
export type Dialect = 'chat' | 'responses' | 'messages';

interface Api {
  /** What people call it. */
  name: string;
  /** Below /api/v1. */
  path: string;
  /** The body of a call that streams its answer. */
  body: (model: string, prompt: string) => object;
}

/** Tokens of an answer to a prompt that is only tried. */
const MOST_TOKENS = 1024;

export const APIS: Readonly<Record<Dialect, Api>> = {
  chat: {
    name: 'Chat completions',
    path: '/chat/completions',
    body: (model, content) => ({
      model,
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: MOST_TOKENS,
      messages: [{ role: 'user', content }],
    }),
  },
  responses: {
    name: 'Responses',
    path: '/responses',
    body: (model, input) => ({ model, stream: true, store: false, max_output_tokens: MOST_TOKENS, input }),
  },
  messages: {
    name: 'Messages',
    path: '/messages',
    body: (model, content) => ({
      model,
      stream: true,
      max_tokens: MOST_TOKENS,
      messages: [{ role: 'user', content }],
    }),
  },
};

/** What an event of an answer adds to it. */
export interface Piece {
  text?: string;
  /** What the model thinks before it answers. */
  thought?: string;
  /** Tokens of the prompt and of the answer. */
  read?: number;
  written?: number;
  error?: string;
}

type Json = Readonly<Record<string, unknown>>;

function child(value: unknown, ...names: readonly (string | number)[]): unknown {
  let found = value;
  for (const name of names) {
    if (typeof found !== 'object' || found === null) return undefined;
    found = (found as Json)[name];
  }
  return found;
}

/** The piece without what an engine left out. */
function piece(found: Readonly<Record<keyof Piece, unknown>>): Piece {
  const isText = (name: string): boolean => name === 'text' || name === 'thought' || name === 'error';
  const kept = Object.entries(found).filter(([name, value]) =>
    isText(name) ? typeof value === 'string' && value !== '' : typeof value === 'number',
  );
  return Object.fromEntries(kept) as Piece;
}

const NONE = { text: undefined, thought: undefined, read: undefined, written: undefined, error: undefined };

function chatPiece(data: Json): Piece {
  const delta = child(data, 'choices', 0, 'delta');
  return piece({
    text: child(delta, 'content'),
    // Some send both fields, one of them empty.
    thought: child(delta, 'reasoning_content') || child(delta, 'reasoning'),
    read: child(data, 'usage', 'prompt_tokens'),
    written: child(data, 'usage', 'completion_tokens'),
    error: child(data, 'error', 'message'),
  });
}

const THOUGHTS = new Set(['response.reasoning_text.delta', 'response.reasoning_summary_text.delta']);

function responsesPiece(data: Json): Piece {
  const type = String(data['type']);
  const { delta } = data as { delta?: unknown };
  if (type === 'response.output_text.delta') return piece({ ...NONE, text: delta });
  if (THOUGHTS.has(type)) return piece({ ...NONE, thought: delta });
  const usage = child(data, 'response', 'usage');
  return piece({
    ...NONE,
    read: child(usage, 'input_tokens'),
    written: child(usage, 'output_tokens'),
    error: child(data, 'response', 'error', 'message') ?? (type === 'error' ? data['message'] : undefined),
  });
}

function messagesPiece(data: Json): Piece {
  const usage = child(data, 'usage') ?? child(data, 'message', 'usage');
  return piece({
    text: child(data, 'delta', 'text'),
    thought: child(data, 'delta', 'thinking'),
    read: child(usage, 'input_tokens'),
    written: child(usage, 'output_tokens'),
    error: child(data, 'error', 'message'),
  });
}

const READERS: Readonly<Record<Dialect, (data: Json) => Piece>> = {
  chat: chatPiece,
  responses: responsesPiece,
  messages: messagesPiece,
};

/** What the data of an event says. The end of a chat stream, and what is no JSON, says nothing. */
export function readEvent(dialect: Dialect, data: string): Piece {
  try {
    return READERS[dialect](JSON.parse(data) as Json);
  } catch {
    return {};
  }
}

/** A model as GET /models shows it. */
export interface Model {
  id: string;
  engine: string;
  dialects: Readonly<Record<Dialect, 'native' | 'translated' | 'none'>>;
  /** What else it takes, as paths of the API. */
  endpoints: readonly string[];
  ready_endpoints: number;
  /** Calls leave the cluster. */
  outside?: boolean;
  /** Requests of all callers; absent where the servers do not say. */
  load?: { running: number; waiting: number; tokens_per_second?: number };
  /** Calls that wait at the gateway, and how long one would that came now; absent where none waits. */
  queue?: { waiting: number; expected_wait_seconds: number | null };
  /** Tokens; null when the engine does not say. */
  context_length: number | null;
  scales_from_zero?: boolean;
  expected_start_seconds?: number | null;
  /** Absent: calls cost nothing. */
  price_per_million_tokens?: { input: string; output: string; currency: string };
}

export function takes(model: Model, dialect: Dialect): boolean {
  return model.dialects[dialect] !== 'none';
}

/** Whether it takes conversations at all. */
export function talks(model: Model): boolean {
  return takes(model, 'chat') || takes(model, 'responses') || takes(model, 'messages');
}
