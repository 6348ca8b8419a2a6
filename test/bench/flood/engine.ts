import { createServer, type ServerResponse } from 'node:http';

/**
 * An engine with the batching of vLLM: sequences in the order in which they came, a budget of tokens for each step, long
 * prompts in pieces. A step takes as long as an 8B model on one GPU would, and computes nothing. Usage: engine.ts PORT
 */
const MOST_RUNNING = 32;
const STEP_TOKENS = 2048;
const STEP_MS = 6;
const MS_PER_PROMPT_TOKEN = 0.004;
const MS_PER_SEQUENCE = 0.05;
const BYTES_PER_TOKEN = 4;

interface Sequence {
  response: ServerResponse;
  prompt: number;
  /** Tokens of the prompt that no step has read yet. */
  unread: number;
  written: number;
  most: number;
}

const waiting: Sequence[] = [];
let running: Sequence[] = [];
let read = 0;
let written = 0;
let isBusy = false;

function step(): void {
  running = running.filter(({ response }) => !response.destroyed);
  if (running.length + waiting.length === 0) {
    isBusy = false;
    return;
  }
  isBusy = true;
  let budget = STEP_TOKENS;
  const taken = new Map<Sequence, number>();
  const take = (one: Sequence): void => {
    const tokens = one.unread === 0 ? 1 : Math.min(budget, one.unread);
    taken.set(one, tokens);
    budget -= tokens;
  };
  for (const one of running) if (budget > 0) take(one);
  const place = (): boolean => budget > 0 && running.length < MOST_RUNNING;
  for (
    let one = place() ? waiting.shift() : undefined;
    one !== undefined;
    one = place() ? waiting.shift() : undefined
  ) {
    if (one.response.destroyed) continue;
    running.push(one);
    take(one);
  }
  const ofPrompts = [...taken].reduce((sum, [one, tokens]) => sum + (one.unread === 0 ? 0 : tokens), 0);
  const ms = STEP_MS + ofPrompts * MS_PER_PROMPT_TOKEN + taken.size * MS_PER_SEQUENCE;
  setTimeout(() => {
    for (const [one, tokens] of taken) advance(one, tokens);
    running = running.filter(({ written: count, most }) => count < most);
    step();
  }, ms);
}

function event(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

function advance(one: Sequence, tokens: number): void {
  if (one.unread > 0) {
    read += Math.min(tokens, one.unread);
    one.unread -= tokens;
    if (one.unread > 0) return;
  }
  one.written += 1;
  written += 1;
  const head = { id: 'chatcmpl-1', created: 1, model: 'flood', object: 'chat.completion.chunk' };
  const isLast = one.written === one.most;
  const choice = { index: 0, delta: { content: ' word' }, finish_reason: isLast ? 'length' : null };
  one.response.write(event({ ...head, choices: [choice] }));
  if (!isLast) return;
  const usage = { prompt_tokens: one.prompt, completion_tokens: one.written, total_tokens: one.prompt + one.written };
  one.response.end(`${event({ ...head, choices: [], usage })}data: [DONE]\n\n`);
}

function metrics(): string {
  const values = {
    num_requests_running: running.length,
    num_requests_waiting: waiting.length,
    kv_cache_usage_perc: running.length / MOST_RUNNING / 2,
    prompt_tokens_total: read,
    generation_tokens_total: written,
  };
  return Object.entries(values)
    .map(([name, value]) => `vllm:${name}{model_name="flood"} ${value}\n`)
    .join('');
}

const server = createServer((request, response) => {
  const json = (status: number, value: unknown): void =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
  if (request.url === '/metrics') return void response.end(metrics());
  if (request.url === '/v1/models') {
    const data = [{ id: 'flood', object: 'model', created: 1, owned_by: 'vllm', max_model_len: 131_072 }];
    return json(200, { object: 'list', data });
  }
  if (request.url !== '/v1/chat/completions') {
    const isKnown = /^\/(health|version|v1\/health)/.test(request.url ?? '');
    return json(isKnown ? 200 : 404, { version: '0.24.0' });
  }
  let length = 0;
  let end = '';
  request.on('data', (part: Buffer) => {
    length += part.length;
    end = (end + part.toString('latin1')).slice(-256);
  });
  request.on('end', () => {
    const prompt = Math.ceil(length / BYTES_PER_TOKEN);
    const most = Number(/"max_tokens":(\d+)/.exec(end)?.[1] ?? 16);
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    waiting.push({ response, prompt, unread: prompt, written: 0, most });
    if (!isBusy) step();
  });
});
server.keepAliveTimeout = 60_000;
// On every address: an EndpointSlice cannot name the loopback.
server.listen(Number(process.argv[2]), () => console.log('ready'));
