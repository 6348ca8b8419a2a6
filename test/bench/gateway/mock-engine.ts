import { createServer, type Socket } from 'node:net';

/**
 * An engine that answers at once, in the dialects that its arguments name, on a bare socket. It costs little beside
 * what is measured. Usage: mock-engine.ts PORT [chat,messages,responses]
 */
const [port = '0', dialects = 'chat,responses,messages'] = process.argv.slice(2);

const TEXT = 'The quick brown fox jumps over the lazy dog, again and again.';
const STREAM_CHUNKS = 20;
const usage = { prompt_tokens: 30, completion_tokens: 20, total_tokens: 50 };
const json = (value: unknown) => JSON.stringify(value);

function whole(status: string, value: unknown): Buffer {
  const body = json(value);
  return Buffer.from(
    `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

function chunk(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}

const head = { id: 'chatcmpl-1', created: 1, model: 'mock' };
const message = { role: 'assistant', content: TEXT };
const CHAT = whole('200 OK', {
  ...head,
  object: 'chat.completion',
  choices: [{ index: 0, message, finish_reason: 'stop' }],
  usage,
});
const MESSAGES = whole('200 OK', {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'mock',
  content: [{ type: 'text', text: TEXT }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 30, output_tokens: 20 },
});
const RESPONSES = whole('200 OK', {
  id: 'resp_1',
  object: 'response',
  status: 'completed',
  model: 'mock',
  output: [
    {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: TEXT, annotations: [] }],
    },
  ],
  usage: { input_tokens: 30, output_tokens: 20, total_tokens: 50 },
});
const MODELS = whole('200 OK', {
  object: 'list',
  data: [{ id: 'mock', object: 'model', created: 1, owned_by: 'vllm', max_model_len: 131_072 }],
});
const HEALTH = whole('200 OK', { status: 'ok', version: '0.24.0', model_path: 'mock', tokenizer_path: 'mock' });
const INVALID = whole('400 Bad Request', { error: { message: 'field required', type: 'invalid_request_error' } });
const MISSING = whole('404 Not Found', { detail: 'Not Found' });

const STREAM_HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n';
const event = (choices: unknown, more = {}) =>
  chunk(`data: ${json({ ...head, object: 'chat.completion.chunk', choices, ...more })}\n\n`);
const delta = (content: string) => event([{ index: 0, delta: { content }, finish_reason: null }]);
const STREAM = [
  ...Array.from({ length: STREAM_CHUNKS - 1 }, (_, index) => delta(` word${index}`)),
  event([{ index: 0, delta: {}, finish_reason: 'stop' }]) +
    event([], { usage }) +
    chunk('data: [DONE]\n\n') +
    '0\r\n\r\n',
].map((text) => Buffer.from(text));
const FIRST = Buffer.concat([Buffer.from(STREAM_HEAD), STREAM[0] ?? Buffer.alloc(0)]);

function answer(socket: Socket, request: { path: string; body: string; gap: number }): void {
  const { path, body, gap } = request;
  if (path === '/v1/models') return void socket.write(MODELS);
  const dialect = { '/v1/chat/completions': 'chat', '/v1/messages': 'messages', '/v1/responses': 'responses' }[path];
  if (dialect === undefined || !dialects.split(',').includes(dialect)) {
    const known = /^\/(health|version|server_info|get_server_info|get_model_info|model_info|v1\/health)/.test(path);
    return void socket.write(known ? HEALTH : MISSING);
  }
  if (body.length < 20) return void socket.write(INVALID);
  if (dialect === 'messages') return void socket.write(MESSAGES);
  if (dialect === 'responses') return void socket.write(RESPONSES);
  if (!/"stream":\s*true/.test(body)) return void socket.write(CHAT);
  stream(socket, 0, gap);
}

/** Each event is a write of its own, as engines write them. */
function stream(socket: Socket, at: number, gap: number): void {
  if (socket.destroyed) return;
  socket.write(at === 0 ? FIRST : (STREAM[at] ?? ''));
  if (at + 1 >= STREAM.length) return;
  if (gap > 0) setTimeout(stream, gap, socket, at + 1, gap);
  else stream(socket, at + 1, gap);
}

const server = createServer((socket) => {
  let held: Buffer = Buffer.alloc(0);
  socket.setNoDelay(true);
  socket.on('error', () => socket.destroy());
  socket.on('data', (data: Buffer) => {
    held = held.length === 0 ? data : Buffer.concat([held, data]);
    for (let end = held.indexOf('\r\n\r\n'); end !== -1; end = held.indexOf('\r\n\r\n')) {
      const header = held.toString('latin1', 0, end);
      const length = Number(/content-length: *(\d+)/i.exec(header)?.[1] ?? 0);
      if (held.length < end + 4 + length) return;
      const body =
        held.toString('latin1', end + 4, end + 4 + Math.min(length, 4096)) +
        held.toString('latin1', Math.max(end + 4, end + 4 + length - 64), end + 4 + length);
      const path = (header.split(' ', 2)[1] ?? '/').replace(/\?.*/, '');
      held = held.subarray(end + 4 + length);
      answer(socket, {
        path,
        body,
        gap: Number(/x-mock-gap: *(\d+)/i.exec(header)?.[1] ?? /"mock_gap":(\d+)/.exec(body)?.[1] ?? 0),
      });
    }
  });
});
// On every address: an EndpointSlice cannot name the loopback.
server.listen(Number(port), () => console.log('ready'));
