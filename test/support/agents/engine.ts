import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { chatEvents, chatWhole, type Reply } from '../engine-answers.ts';

/** What goes wrong with one request, or how a good answer comes. */
export type Turn =
  | 'error in the head'
  | 'status 500'
  | 'reset'
  | 'cut'
  | 'whole'
  | 'no DONE'
  /** The prompt does not fit, in the words of vLLM. */
  | 'overflow'
  /** From now on this engine answers nothing at all, and keeps its connections. */
  | 'hang'
  /** The same, in the middle of the answer. */
  | 'hang in the middle'
  | 'good';

export interface Chat {
  messages: { role: string; content?: unknown }[];
  tools?: { function: { name: string } }[];
  stream?: boolean;
  model: string;
}

export interface AgentEngine {
  port: number;
  close: () => Promise<void>;
}

/** The turns that the engines of a test share, and what they answer to a request with tools. */
export interface Schedule {
  turns: Turn[];
  /** What was taken, oldest first. */
  taken: Turn[];
  /** The requests that took them. */
  asked: Chat[];
  reply: (chat: Chat) => Reply;
}

/** An engine with chat alone, which goes through the schedule with every request that offers tools. */
export async function startAgentEngine(schedule: Schedule): Promise<AgentEngine> {
  const state = { hangs: false };
  const server = createServer((request, response) => {
    if (!state.hangs) void handle(schedule, state, { request, response });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

interface State {
  hangs: boolean;
}

interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
}

async function handle(schedule: Schedule, state: State, { request, response }: Exchange): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString('utf8');
  const json = (status: number, body: unknown): void => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };
  if (request.url === '/v1/models')
    return json(200, { data: [{ id: 'tiny', owned_by: 'vllm', max_model_len: 200_000 }] });
  if (request.url === '/version') return json(200, { version: '0.24.0' });
  if (request.url !== '/v1/chat/completions') return json(404, { detail: 'Not Found' });
  const chat = JSON.parse(text) as Partial<Chat>;
  if (chat.messages === undefined) return json(422, { detail: 'Field required' });
  answer(schedule, state, chat as Chat, response);
}

const OVERFLOW = {
  error: {
    message:
      "This model's maximum context length is 200000 tokens. However, your prompt contains 200417 input tokens. Please reduce the length of the input prompt.",
    type: 'BadRequestError',
    param: 'input_tokens',
    code: 400,
  },
};
const CRASH = { error: { message: 'CUDA error', code: 500 } };

function answer(schedule: Schedule, state: State, chat: Chat, response: ServerResponse): void {
  const hasTools = (chat.tools ?? []).length > 0;
  // Titles and other questions on the side.
  const turn: Turn = hasTools ? (schedule.turns.shift() ?? 'good') : 'good';
  if (hasTools) {
    schedule.taken.push(turn);
    schedule.asked.push(chat);
  }
  const reply = hasTools ? schedule.reply(chat) : { text: 'A small task' };
  state.hangs ||= turn === 'hang' || turn === 'hang in the middle';
  if (turn === 'hang') return;
  if (turn === 'reset') {
    response.socket?.destroy();
    return;
  }
  const json = (status: number, body: unknown): void => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };
  if (turn === 'status 500') return json(500, CRASH);
  if (turn === 'overflow') return json(400, OVERFLOW);
  if (turn === 'whole' || chat.stream !== true) return json(200, chatWhole(chat.model, reply));
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  if (turn === 'error in the head') {
    response.end(
      'data: {"error":{"message":"EngineCore encountered an issue","type":"InternalServerError","code":500}}\n\n',
    );
    return;
  }
  const events = chatEvents(chat.model, reply, true);
  const isCut = turn === 'cut' || turn === 'hang in the middle';
  const count = isCut ? Math.ceil(events.length / 2) : events.length - (turn === 'no DONE' ? 1 : 0);
  response.write(events.slice(0, count).join(''));
  if (turn === 'hang in the middle') return;
  if (turn === 'cut') setTimeout(() => response.socket?.destroy(), 20);
  else response.end();
}
