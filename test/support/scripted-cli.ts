import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { runCli } from '../../src/cli/main.ts';
import { createSession } from '../../src/cli/session.ts';
import type { Terminal } from '../../src/cli/terminal.ts';

interface Seen {
  line: string;
  headers: IncomingMessage['headers'];
  body: string;
}

export type Answer = (response: ServerResponse, seen: Seen) => void;

/** The API key that the program has. */
export const KEY = 'berth_secret';

/** Runs a command line against a server that gives these answers, one after the other; the last one again and again. */
export async function berth(
  words: readonly string[],
  answers: readonly Answer[],
  typed: readonly string[] = [],
  { width, env: more = {} }: { width?: number; env?: Record<string, string> } = {},
) {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    const reply = async (): Promise<void> => {
      const { method, url, headers } = request;
      const one = { line: `${method} ${url}`, headers, body: await text(request) };
      seen.push(one);
      answers[Math.min(seen.length, answers.length) - 1]?.(response, one);
    };
    void reply();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const said: string[] = [];
  let out = '';
  const lines = [...typed];
  const ask = (question: string): Promise<string> => {
    said.push(question);
    return Promise.resolve(lines.shift() ?? 'q');
  };
  const terminal: Terminal = {
    interactive: typed.length > 0,
    screen: width !== undefined,
    colour: false,
    columns: { out: width, say: width },
    out: async (more) => void (out += more),
    say: (more) => void said.push(more),
    ask,
    secret: ask,
    input: async () => lines.join('\n'),
  };
  const env = { BERTH_URL: `http://127.0.0.1:${port}`, BERTH_API_KEY: KEY, HOME: '/nowhere', ...more };
  const session = { ...createSession(env, terminal), sleep: () => Promise.resolve() };
  try {
    const code = await runCli(words, { session, version: () => '1.2.3' });
    return { code, out, said: said.join('\n'), seen };
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

export function json(status: number, body: unknown, headers: Record<string, string> = {}): Answer {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify(body));
  };
}

export const drop: Answer = (response) => void response.destroy();
export const list = (...data: unknown[]): Answer => json(200, { object: 'list', data });
export const refuse = (status: number, code: string | number, message: string, more = {}): Answer =>
  json(status, { error: { code, message, ...more } });
export const stream =
  (events: string, end = true): Answer =>
  (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(events);
    if (end) response.end();
    else setImmediate(() => response.destroy());
  };
