import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { translateRequest, translateResponse, type Dialect } from '../../../../src/gateway/dialects/index.ts';
import { callDelta, chunk, DONE, ROLE, translate, USAGE, USAGE_CHUNK } from './engines.ts';
import { readEvents } from './sse.ts';
import { contextOf, DIALECTS, VLLM, WEATHER } from './support.ts';

const ROOT = join(import.meta.dirname, '../../../..');

const RICH = [
  ROLE,
  chunk({ reasoning: 'hm' }),
  chunk({ content: 'hello' }),
  chunk(callDelta(0, { id: 'c0', name: 'weather', arguments: '{"city":"Oslo"}' })),
  chunk(callDelta(1, { id: 'c1', name: 'patch', arguments: '{"input":"x"}' })),
  chunk({ refusal: 'no' }),
  chunk({}, 'tool_calls'),
  USAGE_CHUNK,
  DONE,
].join('');

const CUT = ROLE + chunk({ content: 'hel' });
const LIMIT = ROLE + chunk({ content: 'hel' }) + chunk({}, 'length') + DONE;

const REQUESTS: Record<Dialect, object> = {
  chat: { messages: [] },
  messages: { messages: [{ role: 'user', content: 'x' }] },
  responses: {
    input: 'x',
    instructions: 'be kind',
    temperature: 0.3,
    metadata: { a: 'b' },
    tool_choice: 'auto',
    tools: [
      { type: 'function', name: 'weather', parameters: WEATHER, strict: true },
      { type: 'custom', name: 'patch' },
    ],
  },
};

const BODY = {
  choices: [
    {
      finish_reason: 'tool_calls',
      message: {
        content: 'hello',
        reasoning: 'hm',
        refusal: 'no',
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'weather', arguments: '{}' } }],
      },
    },
  ],
  usage: USAGE,
};

const HEADER = `
import type { Message, MessageCreateParams, RawMessageStreamEvent } from '@anthropic-ai/sdk/resources/messages';
import type { ChatCompletion, ChatCompletionChunk, ChatCompletionCreateParams } from 'openai/resources/chat/completions';
import type { Response, ResponseCreateParams, ResponseStreamEvent } from 'openai/resources/responses/responses';
type Mutable<T> = T extends object ? { -readonly [K in keyof T]: Mutable<T[K]> } : T;
declare function wire<const T>(value: T): Mutable<T>;
// output_text is added by the client library, it is not on the wire.
type Wire = Omit<Response, 'output_text'>;
type Unwrapped<T> = T extends { response: Response } ? Omit<T, 'response'> & { response: Wire } : T;
// The field in which open engines and their clients carry reasoning; unpublished.
type Delta = { reasoning_content: string };
type Vendor = Omit<ChatCompletionChunk, 'choices'> & { choices: { index: number; delta: Delta; finish_reason: null }[] };
type Types = {
  chat: { event: ChatCompletionChunk | Vendor; body: ChatCompletion; request: ChatCompletionCreateParams };
  messages: { event: RawMessageStreamEvent; body: Message; request: MessageCreateParams };
  responses: { event: Unwrapped<ResponseStreamEvent>; body: Wire; request: ResponseCreateParams };
};
`;

/** A conversation with everything in it, as a client of the messages dialect sends it. */
const CONVERSATION = {
  model: 'm',
  max_tokens: 100,
  stream: true,
  temperature: 0.5,
  system: 'Be kind.',
  tools: [{ name: 'weather', description: 'd', input_schema: WEATHER, cache_control: { type: 'ephemeral' } }],
  tool_choice: { type: 'any', disable_parallel_tool_use: true },
  thinking: { type: 'enabled', budget_tokens: 1024 },
  output_config: { effort: 'high', format: { type: 'json_schema', schema: WEATHER } },
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'look' },
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
      ],
    },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'hm', signature: 's' },
        { type: 'redacted_thinking', data: 'd' },
        { type: 'text', text: 'ok' },
        { type: 'tool_use', id: 't', name: 'weather', input: { city: 'Oslo' } },
      ],
    },
    {
      role: 'user',
      content: [
        {
          type: 'tool_result',
          tool_use_id: 't',
          is_error: true,
          content: [{ type: 'image', source: { type: 'url', url: 'https://example.com/x.png' } }],
        },
        { type: 'text', text: 'and now?' },
      ],
    },
  ],
};

/** The same conversation as each backend gets it, by way of each dialect. */
function requestsFor(backend: Dialect): string[] {
  return DIALECTS.filter((client) => client !== backend).map((client) => {
    const options = { model: 'm', quirks: VLLM };
    const body = client === 'messages' ? CONVERSATION : translateRequest('messages', client, CONVERSATION, options);
    const sent = JSON.stringify(translateRequest(client, backend, body, options));
    return `wire(${sent}) satisfies Types['${backend}']['request'];`;
  });
}

/** Every distinct kind of event, and a whole body, as TypeScript that must compile. */
function sourceFor(client: Dialect): string {
  const lines = requestsFor(client);
  const streams = [RICH, LIMIT, ...(client === 'responses' ? [CUT] : [])];
  for (const summary of [undefined, 'auto']) {
    const request = { ...REQUESTS[client], ...(client === 'responses' && summary && { reasoning: { summary } }) };
    const events = streams.flatMap((stream) => readEvents(translate('chat', client, stream, request)));
    for (const { data } of events)
      if (data !== '[DONE]') lines.push(`wire(${data}) satisfies Types['${client}']['event'];`);
    const { body } = translateResponse('chat', client, BODY, contextOf(request));
    lines.push(`wire(${JSON.stringify(body)}) satisfies Types['${client}']['body'];`);
  }
  return lines.join('\n');
}

it(
  'every request, event and body compiles against the types the official clients publish',
  { timeout: 60_000 },
  async () => {
    const cache = join(ROOT, 'node_modules/.cache');
    await mkdir(cache, { recursive: true });
    const folder = await mkdtemp(join(cache, 'published-types-'));
    try {
      await writeFile(join(folder, 'emitted.ts'), HEADER + DIALECTS.map(sourceFor).join('\n'));
      const options = {
        target: 'es2024',
        module: 'nodenext',
        strict: true,
        skipLibCheck: true,
        noEmit: true,
        types: [],
      };
      await writeFile(
        join(folder, 'tsconfig.json'),
        JSON.stringify({ compilerOptions: options, files: ['emitted.ts'] }),
      );
      const result = await promisify(execFile)(join(ROOT, 'node_modules/.bin/tsc'), ['-p', folder]).catch(
        (error: { stdout: string }) => error,
      );
      expect(result.stdout).toBe('');
    } finally {
      await rm(folder, { recursive: true });
    }
  },
);
