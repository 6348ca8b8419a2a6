import type { MessageCreateParamsBase } from '@anthropic-ai/sdk/resources/beta/messages/messages';
import type { MessageCreateParamsBase as StableParams } from '@anthropic-ai/sdk/resources/messages/messages';
import type { ChatCompletionCreateParamsBase } from 'openai/resources/chat/completions/completions';
import type { ResponseCreateParamsBase } from 'openai/resources/responses/responses';
import { describe, expect, it } from 'vitest';
import {
  DialectError,
  fieldsForOutside,
  forOutside,
  trialsForOutside,
} from '../../../../src/gateway/dialects/index.ts';

type Fate = 'sent' | 'left out' | 'refused';

/** Every member that the vendors publish: a new one does not compile until somebody says what it costs. */
const CHAT: Record<keyof ChatCompletionCreateParamsBase, Fate> = {
  messages: 'sent',
  model: 'sent',
  audio: 'refused',
  frequency_penalty: 'sent',
  function_call: 'sent',
  functions: 'sent',
  logit_bias: 'sent',
  logprobs: 'sent',
  max_completion_tokens: 'sent',
  max_tokens: 'sent',
  metadata: 'sent',
  modalities: 'refused',
  moderation: 'left out',
  n: 'sent',
  parallel_tool_calls: 'sent',
  prediction: 'sent',
  presence_penalty: 'sent',
  prompt_cache_key: 'sent',
  prompt_cache_options: 'left out',
  prompt_cache_retention: 'left out',
  reasoning_effort: 'sent',
  response_format: 'sent',
  safety_identifier: 'sent',
  seed: 'sent',
  service_tier: 'left out',
  stop: 'sent',
  store: 'left out',
  stream: 'sent',
  stream_options: 'sent',
  temperature: 'sent',
  tool_choice: 'sent',
  tools: 'sent',
  top_logprobs: 'sent',
  top_p: 'sent',
  user: 'sent',
  verbosity: 'sent',
  web_search_options: 'refused',
};

const RESPONSES: Record<
  Exclude<keyof ResponseCreateParamsBase, 'conversation' | 'prompt' | 'previous_response_id'>,
  Fate
> = {
  access_programs: 'left out',
  background: 'refused',
  context_management: 'left out',
  image: 'left out',
  include: 'sent',
  input: 'sent',
  instructions: 'sent',
  max_output_tokens: 'sent',
  max_tool_calls: 'sent',
  metadata: 'sent',
  model: 'sent',
  moderation: 'left out',
  parallel_tool_calls: 'sent',
  prompt_cache_key: 'sent',
  prompt_cache_options: 'left out',
  prompt_cache_retention: 'left out',
  reasoning: 'sent',
  safety_identifier: 'sent',
  service_tier: 'left out',
  store: 'left out',
  stream: 'sent',
  stream_options: 'sent',
  temperature: 'sent',
  text: 'sent',
  tool_choice: 'sent',
  tools: 'sent',
  top_logprobs: 'sent',
  top_p: 'sent',
  truncation: 'sent',
  user: 'sent',
};

const MESSAGES: Record<keyof MessageCreateParamsBase | keyof StableParams | 'temperature' | 'top_k' | 'top_p', Fate> = {
  max_tokens: 'sent',
  messages: 'sent',
  model: 'sent',
  betas: 'left out',
  billing_policy: 'refused',
  cache_control: 'sent',
  compaction: 'left out',
  container: 'refused',
  context_management: 'left out',
  diagnostics: 'left out',
  fallback_credit_token: 'refused',
  fallbacks: 'refused',
  inference_geo: 'refused',
  mcp_servers: 'refused',
  metadata: 'sent',
  output_config: 'sent',
  output_format: 'sent',
  service_tier: 'left out',
  speed: 'refused',
  stop_sequences: 'sent',
  stream: 'sent',
  system: 'sent',
  temperature: 'sent',
  thinking: 'sent',
  thread: 'refused',
  tool_choice: 'sent',
  tools: 'sent',
  top_k: 'sent',
  top_p: 'sent',
  user_profile_id: 'left out',
  workspace_id: 'left out',
};

const TABLES = { chat: CHAT, responses: RESPONSES, messages: MESSAGES } as const;
const DIALECTS = ['chat', 'responses', 'messages'] as const;
const FUNCTION = { type: 'function', name: 'f' };

function fateOf(body: object, name: string, route: Parameters<typeof forOutside>[1]): Fate {
  try {
    return Object.hasOwn(forOutside({ ...body }, route), name) ? 'sent' : 'left out';
  } catch (error) {
    expect(error).toBeInstanceOf(DialectError);
    expect((error as DialectError).message).toContain(`'${name}'`);
    return 'refused';
  }
}

describe.each(DIALECTS)('%s', (dialect) => {
  it.each(Object.entries(TABLES[dialect]))('%s is %s', (name, fate) => {
    const value = name === 'tools' ? [FUNCTION] : 'x';
    expect(fateOf({ [name]: value, tools: [FUNCTION] }, name, dialect)).toBe(fate);
  });

  it.each(['models', 'route', 'provider', 'plugins', 'fallbacks', 'api_base', 'search_parameters'])(
    'what a proxy chooses another server or a search by is refused: %s',
    (name) => expect(fateOf({ [name]: ['x'] }, name, dialect)).toBe('refused'),
  );

  it('a member that nobody knows is left out, whatever its case', () => {
    const body = { model: 'm', Speed: 'fast', turbo: true, SERVICE_TIER: 'priority' };
    expect(forOutside(body, dialect)).toEqual({ model: 'm' });
  });

  it('what stands for the usual price is left out', () => {
    const body = {
      model: 'm',
      speed: 'standard',
      inference_geo: 'global',
      modalities: ['text'],
      plugins: [],
      models: null,
    };
    expect(forOutside(body, dialect)).toEqual({ model: 'm' });
  });

  it('marks of a cache lose how long, and for whom, it is to keep them', () => {
    const mark = { type: 'ephemeral', ttl: '1h', scope: 'global' };
    const schema = { properties: { cache_control: { ttl: 1 } } };
    const parts = [
      { type: 'text', text: 'x', cache_control: mark, prompt_cache_breakpoint: { mode: 'explicit', ttl: '12h' } },
    ];
    const said = {
      messages: [{ role: 'user', content: parts }],
      input: [{ role: 'user', content: parts }],
      system: parts,
    };
    const tools = [{ name: 'f', input_schema: schema, cache_control: mark }];
    const sent = JSON.stringify(forOutside({ ...said, tools, cache_control: mark }, dialect));
    expect(sent.replace(JSON.stringify(schema), '')).not.toMatch(/ttl|scope/);
    expect(sent).toContain('"cache_control":{"type":"ephemeral"}');
    expect(sent).toContain(JSON.stringify(schema));
  });

  it('what stays is the same object, so that a long body is not written again', () => {
    const body = {
      model: 'm',
      messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }] }],
      input: [FUNCTION],
      tools: [FUNCTION],
    };
    const sent = forOutside(body, dialect);
    expect([sent.messages ?? body.messages, sent.input ?? body.input, sent.tools]).toEqual([
      body.messages,
      body.input,
      body.tools,
    ]);
    expect((sent.messages ?? body.messages) === body.messages && (sent.input ?? body.input) === body.input).toBe(true);
    expect(sent.tools).toBe(body.tools);
  });
});

it('a class of reasoning with a price of its own is refused', () => {
  expect(() => forOutside({ reasoning: { mode: 'pro' } }, 'responses')).toThrow("'reasoning.mode'");
  expect(forOutside({ reasoning: { mode: 'standard', effort: 'low' } }, 'responses')).toHaveProperty('reasoning');
});

it.each([
  ['an item', (tools: object[]) => ({ input: [{ type: 'additional_tools', tools }] })],
  ['a namespace', (tools: object[]) => ({ tools: [{ type: 'namespace', name: 'n', tools }] })],
])('tools that run at the server are none in %s either', (_where, make) => {
  expect(() => forOutside(make([{ type: 'code_interpreter' }]), 'responses')).toThrow('code_interpreter');
  const sent = JSON.stringify(forOutside(make([FUNCTION, { type: 'web_search' }]), 'responses'));
  expect(sent).toContain('"f"');
  expect(sent).not.toContain('web_search');
});

it('a shell that runs in a container of the server is none that a client runs', () => {
  for (const type of ['container_auto', 'container_reference', 'tomorrow'])
    expect(() => forOutside({ tools: [{ type: 'shell', environment: { type } }] }, 'responses')).toThrow("'shell'");
  for (const environment of [undefined, null, { type: 'local' }]) {
    const tools = [{ type: 'shell', environment }];
    expect(forOutside({ tools }, 'responses').tools).toBe(tools);
  }
});

it('tools that run at the server are none in a message either', () => {
  const saying = (definition: object) => ({
    messages: [{ role: 'system', content: [{ type: 'tool_addition', tool: { type: 'tool_definition', definition } }] }],
  });
  expect(() => forOutside(saying({ type: 'web_fetch_20250910', name: 'web_fetch' }), 'messages')).toThrow(
    'tool_definition',
  );
  const own = saying({ name: 'f', input_schema: {} });
  expect(forOutside(own, 'messages').messages).toBe(own.messages);
});

describe('other calls', () => {
  it('have members of their own', () => {
    expect(forOutside({ input: 'x', voice: 'a', speed: 1.5 }, 'speech')).toEqual({
      input: 'x',
      voice: 'a',
      speed: 1.5,
    });
    expect(forOutside({ prompt: 'x', background: 'transparent' }, 'images')).toEqual({
      prompt: 'x',
      background: 'transparent',
    });
    expect(forOutside({ input: ['x'], dimensions: 5, service_tier: 'flex' }, 'embeddings')).toEqual({
      input: ['x'],
      dimensions: 5,
    });
    expect(fateOf({ provider: {} }, 'provider', 'rerank')).toBe('refused');
  });

  it('lose fields of forms in the same way', () => {
    const form = ['file', 'model', 'timestamp_granularities[]', 'service_tier'].map((name) => ({ name }));
    expect(fieldsForOutside(form, 'transcriptions').map(({ name }) => name)).toEqual([
      'file',
      'model',
      'timestamp_granularities[]',
    ]);
    expect(() => fieldsForOutside([{ name: 'provider[order][]' }], 'transcriptions')).toThrow("'provider'");
  });
});

it.each([
  ['context-1m-2025-08-07,interleaved-thinking-2025-05-14, fast-mode-2026-02-01', 'interleaved-thinking-2025-05-14'],
  ['claude-code-20250219,server-side-fallback-2026-07-01', 'claude-code-20250219'],
  ['files-api-2025-04-14', undefined],
])('of the trials %s a server is told of %s', (trials, told) => {
  expect(trialsForOutside(trials)).toBe(told);
});
