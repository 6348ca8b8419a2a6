import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { chatEvents, chatWhole, type Reply } from '../engine-answers.ts';

/** What goes wrong with one request, or how a good answer comes. */
export type Turn = 'error in the head' | 'status 500' | 'reset' | 'cut' | 'whole' | 'no DONE' | 'good';

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
  reply: (chat: Chat) => Reply;
}

/** An engine with chat alone, which goes through the schedule with every request that offers tools. */
export async function startAgentEngine(schedule: Schedule): Promise<AgentEngine> {
  const server = createServer((request, response) => {
    void handle(schedule, request, response);
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

async function handle(schedule: Schedule, request: IncomingMessage, response: ServerResponse): Promise<void> {
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
  answer(schedule, chat as Chat, response);
}

function answer(schedule: Schedule, chat: Chat, response: ServerResponse): void {
  const hasTools = (chat.tools ?? []).length > 0;
  // Titles and other questions on the side.
  const turn: Turn = hasTools ? (schedule.turns.shift() ?? 'good') : 'good';
  if (hasTools) schedule.taken.push(turn);
  const reply = hasTools ? schedule.reply(chat) : { text: 'A small task' };
  if (turn === 'reset') {
    response.socket?.destroy();
    return;
  }
  const isWhole = turn === 'whole' || chat.stream !== true;
  if (turn === 'status 500' || isWhole) {
    const body = turn === 'status 500' ? { error: { message: 'CUDA error', code: 500 } } : chatWhole(chat.model, reply);
    response.writeHead(turn === 'status 500' ? 500 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  if (turn === 'error in the head') {
    response.end(
      'data: {"error":{"message":"EngineCore encountered an issue","type":"InternalServerError","code":500}}\n\n',
    );
    return;
  }
  const events = chatEvents(chat.model, reply, true);
  const count = turn === 'cut' ? Math.ceil(events.length / 2) : events.length - (turn === 'no DONE' ? 1 : 0);
  response.write(events.slice(0, count).join(''));
  if (turn === 'cut') setTimeout(() => response.socket?.destroy(), 20);
  else response.end();
}
