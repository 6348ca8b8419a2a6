import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import {
  chatEvents,
  chatWhole,
  messagesEvents,
  messagesWhole,
  responsesEvents,
  responsesWhole,
  type Reply,
} from './engine-answers.ts';

export type EngineDialect = 'chat' | 'responses' | 'messages';
export type EngineName = 'vllm' | 'sglang' | 'llama.cpp' | 'ollama' | 'tgi' | 'unknown';

/** How the engine treats the next requests. */
export type Behaviour =
  | { kind: 'answer'; reply: Reply; delayMs?: number; gapMs?: number }
  /** Answers with raw bytes: a recorded stream, or nonsense. */
  | {
      kind: 'raw';
      /** Empty: none. */
      contentType: string;
      chunks: readonly string[];
      /** Holds back all but the first. */ gate?: Promise<void>;
    }
  | { kind: 'status'; status: number; headers?: Record<string, string>; body?: string }
  /** Closes the connection without an answer. */
  | { kind: 'reset' }
  /** Sends this many events of a good stream, or half of a whole answer, and closes the connection. */
  | { kind: 'break'; reply: Reply; events: number }
  /**
   * Writes these tokens, from behind the start of the answer that the request ends with, in place of MISMATCH where they do
   * not begin so. Closes the connection after `dies` of them, or ends it as if all was said if it `endsCleanly`.
   */
  | { kind: 'write'; tokens: readonly string[]; dies?: number; endsCleanly?: boolean }
  /** Never answers. */
  | { kind: 'hang' }
  /** Sends this many events and then nothing more. */
  | { kind: 'stall'; reply: Reply; events: number }
  /** Streams until the gateway stops it or this many events were sent. */
  | { kind: 'flood'; events: number };

export interface Received {
  path: string;
  body: Record<string, unknown>;
  /** The body as it came. */
  text: string;
  headers: IncomingMessage['headers'];
  at: number;
  /** When the gateway closed the connection, if it did so before the answer was complete. */
  abortedAt?: number;
  /** Bytes of the answer that the kernel or the stream has taken. */
  written: number;
}

export interface EngineOptions {
  engine?: EngineName;
  version?: string;
  models?: readonly string[];
  dialects?: readonly EngineDialect[];
  contextLength?: number;
  countTokens?: boolean;
  /** Path in front of `/v1`. */
  prefix?: string;
  metrics?: string;
  /** Routes besides those of the dialects, each with what it answers. */
  plain?: Readonly<Record<string, { contentType: string; body: string }>>;
  /** By default of this machine only. */
  address?: string;
  /** With it the engine speaks TLS. */
  tls?: { certificate: string; key: string };
  /** How it treats the next request, where nothing else was said of it. */
  script?: () => Behaviour;
  /** The key that it asks for, as `vllm --api-key` does, or in the header of Anthropic's API. */
  apiKey?: string;
}

export interface ScriptedEngine {
  port: number;
  origin: string;
  /** POSTs on the routes of the dialects that named a model, oldest first. */
  received: Received[];
  /** Connections that were made to it. */
  readonly connections: number;
  /** GETs and empty POSTs, which probes send. */
  probes: string[];
  /** What calls and probes had in Authorization. */
  authorizations: Set<string | undefined>;
  /** Sets the behaviour for the next requests, one each. The last stays. */
  behave(...behaviours: [Behaviour, ...Behaviour[]]): void;
  /** From now on it answers neither calls nor probes, and its connections stay open. */
  freeze(): void;
  close: () => Promise<void>;
}

const ROUTES: Record<EngineDialect, string> = {
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
};
const OWNERS: Record<EngineName, string> = {
  vllm: 'vllm',
  sglang: 'sglang',
  'llama.cpp': 'llamacpp',
  ollama: 'library',
  tgi: 'someone',
  unknown: 'someone',
};

/** A local HTTP server that behaves like an inference engine: to probes, in the three dialects, and in failures. */
export async function startEngine(options: EngineOptions = {}): Promise<ScriptedEngine> {
  const received: Received[] = [];
  const probes: string[] = [];
  const authorizations = new Set<string | undefined>();
  let script: Behaviour[] = [{ kind: 'answer', reply: { text: 'Hello there' } }];
  const sockets = new Set<Socket>();
  let isFrozen = false;
  let connections = 0;
  const listener: RequestListener = (request, response) => {
    void handle(request, response).catch((error: unknown) => {
      // The gateway may leave in the middle of a request.
      if (request.complete) throw error;
    });
  };
  const { address = '127.0.0.1', tls } = options;
  const server = tls ? createTlsServer({ cert: tls.certificate, key: tls.key }, listener) : createServer(listener);
  server.on('connection', (socket: Socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString('utf8');
    const path = request.url ?? '/';
    const isJson = request.headers['content-type']?.startsWith('multipart/') !== true;
    const body = text === '' || !isJson ? {} : (JSON.parse(text) as Record<string, unknown>);
    const plain = options.plain?.[path];
    const dialect = dialectOf(options, path);
    const { authorization } = request.headers;
    authorizations.add(authorization);
    const given = request.headers['x-api-key'] ?? authorization?.replace(/^Bearer /, '');
    if (options.apiKey !== undefined && given !== options.apiKey) {
      response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":"Unauthorized"}');
      return;
    }
    const isCall = dialect !== undefined || plain !== undefined;
    if (request.method === 'GET' || !isCall || (isJson && Object.keys(body).length === 0)) {
      probes.push(`${request.method} ${path}`);
      if (isFrozen) return;
      answerProbe(options, { path, body, response, known: isCall });
      return;
    }
    const entry: Received = { path, body, text, headers: request.headers, at: performance.now(), written: 0 };
    received.push(entry);
    response.on('close', () => {
      if (!response.writableFinished) entry.abortedAt = performance.now();
    });
    const behaviour = options.script?.() ?? (script.length > 1 ? script.shift() : script[0]);
    if (plain !== undefined && behaviour?.kind === 'answer') {
      response.writeHead(200, { 'content-type': plain.contentType }).end(plain.body);
      return;
    }
    if (behaviour !== undefined) await play(behaviour, { dialect: dialect ?? 'chat', body, response, entry });
  }

  await new Promise<void>((resolve) => {
    server.listen(0, address, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    origin: `${tls ? 'https' : 'http'}://${address}:${port}`,
    get connections() {
      return connections;
    },
    received,
    probes,
    authorizations,
    behave: (...behaviours) => {
      script = behaviours;
    },
    freeze: () => {
      isFrozen = true;
      script = [{ kind: 'hang' }];
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

function dialectOf({ dialects = ['chat'], prefix = '' }: EngineOptions, path: string): EngineDialect | undefined {
  return dialects.find((dialect) => path === `${prefix}${ROUTES[dialect]}`);
}

interface ProbeQuestion {
  path: string;
  body: Record<string, unknown>;
  response: ServerResponse;
  known: boolean;
}

function answerProbe(options: EngineOptions, { path, body, response, known }: ProbeQuestion): void {
  const { engine = 'vllm', version = '0.24.0', models = ['tiny'], contextLength = 4096, prefix = '' } = options;
  const json = (status: number, value: unknown): void => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(value));
  };
  if (path === `${prefix}/v1/models`) {
    const entry = (id: string) => ({
      id,
      object: 'model',
      created: 1,
      owned_by: OWNERS[engine],
      max_model_len: contextLength,
    });
    return json(200, { object: 'list', data: models.map(entry) });
  }
  if (path === '/version' && engine === 'vllm') return json(200, { version });
  if (path === '/server_info' && engine === 'sglang') return json(200, { version, model_path: models[0] });
  if (path === '/props' && engine === 'llama.cpp') {
    return json(200, { build_info: version, default_generation_settings: { n_ctx: contextLength } });
  }
  if (path === '/api/version' && engine === 'ollama') return json(200, { version });
  if (path === '/info' && engine === 'tgi')
    return json(200, { version, model_id: models[0], max_total_tokens: contextLength });
  if (path === '/metrics' && options.metrics !== undefined) {
    response.writeHead(200, { 'content-type': 'text/plain' });
    response.end(options.metrics);
    return undefined;
  }
  if (path === `${prefix}/v1/messages/count_tokens` && options.countTokens === true) {
    return body.model === undefined ? json(400, { error: { message: 'invalid' } }) : json(200, { input_tokens: 42 });
  }
  return known ? json(400, { error: { message: 'field required' } }) : json(404, { detail: 'Not Found' });
}

interface Playing {
  dialect: EngineDialect;
  body: Record<string, unknown>;
  response: ServerResponse;
  entry: Received;
}

async function play(behaviour: Behaviour, playing: Playing): Promise<void> {
  const { response, body } = playing;
  switch (behaviour.kind) {
    case 'hang':
      return;
    case 'reset':
      response.socket?.destroy();
      return;
    case 'status':
      response.writeHead(behaviour.status, { 'content-type': 'application/json', ...behaviour.headers });
      response.end(behaviour.body ?? JSON.stringify({ error: { message: 'scripted failure' } }));
      return;
    case 'raw':
      response.writeHead(200, behaviour.contentType === '' ? {} : { 'content-type': behaviour.contentType });
      for (const [index, chunk] of behaviour.chunks.entries()) {
        if (index === 1) await behaviour.gate;
        response.write(chunk);
      }
      response.end();
      return;
    case 'flood':
      return flood(behaviour.events, playing);
    case 'write':
      return write(behaviour, playing);
    default:
  }
  if (behaviour.kind === 'answer' && behaviour.delayMs !== undefined) await delay(behaviour.delayMs);
  if (body.stream === true) return stream(behaviour, playing);
  const text = JSON.stringify(whole(behaviour.reply, playing));
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  if (behaviour.kind === 'answer') {
    response.end(text);
    return;
  }
  response.write(text.slice(0, text.length / 2));
  if (behaviour.kind === 'break') setImmediate(() => response.socket?.destroy());
}

async function stream(
  behaviour: Extract<Behaviour, { reply: Reply }>,
  { dialect, body, response, entry }: Playing,
): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
  const events = eventsOf(behaviour.reply, { dialect, body });
  const count = behaviour.kind === 'answer' ? events.length : behaviour.events;
  for (const event of events.slice(0, count)) {
    response.write(event);
    entry.written += event.length;
    if (behaviour.kind === 'answer' && behaviour.gapMs !== undefined) await delay(behaviour.gapMs);
  }
  if (behaviour.kind === 'answer') response.end();
  // The bytes must reach the receiver before the connection breaks.
  if (behaviour.kind === 'break') setTimeout(() => response.socket?.destroy(), 20);
}

function write(
  { tokens, dies, endsCleanly = false }: Extract<Behaviour, { kind: 'write' }>,
  { dialect, body, response }: Playing,
): void {
  const last = ((body.messages ?? []) as { role: string; content: unknown }[]).at(-1);
  const begun = last?.role === 'assistant' ? String(last.content) : '';
  const known = [...tokens, ''].findIndex((_token, index) => tokens.slice(0, index).join('') === begun);
  const most = Number(body.max_tokens ?? body.max_completion_tokens ?? tokens.length);
  const rest = known === -1 ? ['MISMATCH'] : tokens.slice(known, known + most);
  const counted = { inputTokens: 10 + Math.max(0, known), outputTokens: rest.length };
  const events = eventsOf({ text: rest.join(''), tokens: rest, ...counted }, { dialect, body });
  const before = events.findIndex((event) => rest[0] !== undefined && event.includes(JSON.stringify(rest[0])));
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
  for (const event of events.slice(0, dies === undefined ? events.length : before + dies)) response.write(event);
  if (dies === undefined || endsCleanly) response.end();
  // The bytes must reach the receiver before the connection breaks.
  else setTimeout(() => response.socket?.destroy(), 20);
}

async function flood(count: number, { response, entry }: Playing): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const event = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'x'.repeat(4000) }, finish_reason: null }] })}\n\n`;
  for (let sent = 0; sent < count && !response.destroyed; sent += 1) {
    entry.written += event.length;
    if (!response.write(event)) await writable(response);
  }
  response.end('data: [DONE]\n\n');
}

function writable(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const proceed = (): void => {
      response.off('drain', proceed);
      response.off('close', proceed);
      resolve();
    };
    response.on('drain', proceed);
    response.on('close', proceed);
  });
}

function modelOf(body: Record<string, unknown>): string {
  return typeof body.model === 'string' ? body.model : 'unknown';
}

function whole(reply: Reply, { dialect, body }: Pick<Playing, 'dialect' | 'body'>): unknown {
  if (dialect === 'chat') return chatWhole(modelOf(body), reply);
  return dialect === 'messages' ? messagesWhole(modelOf(body), reply) : responsesWhole(modelOf(body), reply);
}

function eventsOf(reply: Reply, { dialect, body }: Pick<Playing, 'dialect' | 'body'>): string[] {
  const model = modelOf(body);
  if (dialect === 'messages') return messagesEvents(model, reply);
  if (dialect === 'responses') return responsesEvents(model, reply);
  const options = body.stream_options as { include_usage?: boolean; continuous_usage_stats?: boolean } | undefined;
  const isContinuous = options?.continuous_usage_stats === true;
  return chatEvents(model, reply, isContinuous ? 'each' : options?.include_usage === true);
}
