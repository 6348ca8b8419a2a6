import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  StreamTranslator,
  errorBody,
  inspectRequest,
  translateRequest,
  translateResponse,
  type Dialect,
} from '../../../../src/gateway/dialects/index.ts';
import { callDelta, chunk, DONE, ROLE, translate, USAGE, USAGE_CHUNK } from './engines.ts';
import { contextOf, VLLM } from './support.ts';

/** What the scripted engine answers: reasoning, text, two parallel calls with interleaved fragments. */
const ANSWER = {
  reasoning: 'The user wants the weather.',
  text: 'Let me look – ä😀.',
  calls: [
    { id: 'call_a', name: 'weather', arguments: '{"city":"Oslo"}' },
    { id: 'call_b', name: 'weather', arguments: '{"city":"Rome"}' },
  ],
};

const CHAT_STREAM = [
  ROLE,
  ...['The user wants', ' the weather.'].map((reasoning) => chunk({ reasoning })),
  ...['Let me look', ' – ä😀.'].map((content) => chunk({ content })),
  chunk(callDelta(0, { id: 'call_a', name: 'weather', arguments: '{"ci' })),
  chunk(callDelta(1, { id: 'call_b', name: 'weather', arguments: '{"city":' })),
  chunk(callDelta(0, { arguments: 'ty":"Oslo"}' })),
  chunk(callDelta(1, { arguments: '"Rome"}' })),
  chunk({}, 'tool_calls'),
  USAGE_CHUNK,
  DONE,
].join('');

const CHAT_BODY = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [
    {
      index: 0,
      finish_reason: 'tool_calls',
      message: {
        role: 'assistant',
        content: ANSWER.text,
        reasoning: ANSWER.reasoning,
        tool_calls: ANSWER.calls.map(({ id, ...fn }) => ({ id, type: 'function', function: fn })),
      },
    },
  ],
  usage: USAGE,
};

const PATHS: Record<string, Dialect> = {
  '/v1/chat/completions': 'chat',
  '/v1/responses': 'responses',
  '/v1/messages': 'messages',
};

/** A server that translates between an SDK and an engine speaking `upstream`; `failing` engines break mid-stream. */
export async function startServer(upstream: Dialect, failing = false): Promise<{ url: string } & AsyncDisposable> {
  const server = createServer((request, response) => {
    void answer({ request, response, upstream, failing });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}

async function answer(call: {
  request: IncomingMessage;
  response: ServerResponse;
  upstream: Dialect;
  failing: boolean;
}): Promise<void> {
  const { request, response, upstream, failing } = call;
  const client = PATHS[(request.url ?? '').split('?')[0] ?? ''];
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  const body: unknown = JSON.parse(Buffer.concat(parts).toString());
  try {
    if (client === undefined) throw new Error(`no route ${request.url ?? ''}`);
    const { stream } = inspectRequest(client, body);
    translateRequest(client, upstream, body, { model: 'm', quirks: VLLM });
    if (stream) streamAnswer(response, { client, upstream, failing, body });
    else {
      const native =
        upstream === 'chat' ? CHAT_BODY : translateResponse('chat', upstream, CHAT_BODY, contextOf({})).body;
      const { body: translated } = translateResponse(upstream, client, native, contextOf(body));
      response.setHeader('content-type', 'application/json').end(JSON.stringify(translated));
    }
  } catch (error) {
    const refused = errorBody(client ?? 'chat', { status: 400, message: String(error) }, 'r');
    response.writeHead(400, refused.headers).end(JSON.stringify(refused.body));
  }
}

function streamAnswer(
  response: ServerResponse,
  call: { client: Dialect; upstream: Dialect; failing: boolean; body: unknown },
): void {
  response.setHeader('content-type', 'text/event-stream');
  const source = call.upstream === 'chat' ? CHAT_STREAM : translate('chat', call.upstream, CHAT_STREAM);
  const bytes = Buffer.from(source);
  const machine = new StreamTranslator(call.upstream, call.client, contextOf(call.body));
  const length = call.failing ? Math.floor(bytes.length / 2) : bytes.length;
  // Clients skip what the gateway sends into a stream that is silent.
  const sign = call.client === 'messages' ? 'event: ping\ndata: {"type":"ping"}\n\n' : ': waiting for the model\n\n';
  response.write(': waiting for the model\n\n');
  for (let at = 0; at < length; at += 97) {
    const out = machine.push(bytes.subarray(at, Math.min(at + 97, length)));
    response.write(out === '' ? out : `${out}${sign}`);
  }
  response.end(call.failing ? machine.fail({ status: 503, message: 'the engine went away' }) : machine.end());
}

export { ANSWER };
