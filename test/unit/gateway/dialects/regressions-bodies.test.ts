/** Whole bodies and routes that broke other translators; each test names the public thread it comes from. */
import { describe, expect, it } from 'vitest';
import {
  chooseUpstream,
  PLAIN,
  quirksOf,
  requestFeatures,
  parseInput,
  translateRequest,
  translateResponse,
  type Dialect,
} from '../../../../src/gateway/dialects/index.ts';
import { at, contextOf, DIALECTS, MISTRAL, VLLM } from './support.ts';

const ALL: readonly Dialect[] = ['chat', 'responses', 'messages'];
const tools = [{ type: 'function', name: 'f', parameters: { type: 'object', properties: {} } }];

function route(client: Dialect, engine: [string, string, string], body: object): string {
  const quirks = quirksOf(...engine);
  const chosen = chooseUpstream(client, ALL, quirks, requestFeatures(client, body));
  return `${chosen?.dialect ?? 'none'} ${chosen?.native === true ? 'native' : 'translated'}`;
}

describe('the route', () => {
  // vllm-project/vllm#36435, #29725
  it('of responses with tools goes over chat on vLLM, except for gpt-oss', () => {
    const body = { input: 'x', tools, stream: true };
    expect(route('responses', ['vllm', '0.24.0', 'Qwen/Qwen3-8B'], body)).toBe('chat translated');
    expect(route('responses', ['vllm', '0.24.0', 'openai/gpt-oss-120b'], body)).toBe('responses native');
    expect(route('responses', ['vllm', '0.24.0', 'Qwen/Qwen3-8B'], { input: 'x' })).toBe('responses native');
  });

  // sgl-project/sglang#13967, #14189; ggml-org/llama.cpp#19720, #21174
  it('of responses goes over chat on SGLang and llama.cpp', () => {
    expect(route('responses', ['sglang', '0.5.17', 'm'], { input: 'x', tools })).toBe('chat translated');
    expect(route('responses', ['llama.cpp', 'b9000', 'm'], { input: 'x' })).toBe('chat translated');
  });

  // maximhq/bifrost#2446, envoyproxy/ai-gateway#1911: translating although the engine is native
  it('of messages stays native where the engine is good at it', () => {
    const body = { messages: [{ role: 'user', content: 'x' }], tools: [{ name: 'f', input_schema: {} }] };
    expect(route('messages', ['vllm', '0.24.0', 'm'], body)).toBe('messages native');
    expect(route('messages', ['ollama', '0.32.15', 'm'], body)).toBe('messages native');
    expect(route('messages', ['unknown', '', 'm'], body)).toBe('messages native');
  });

  it.each([
    ['thinking, which vLLM drops', { thinking: { type: 'enabled', budget_tokens: 1024 } }],
    ['disable_parallel_tool_use', { tool_choice: { type: 'auto', disable_parallel_tool_use: true } }],
    ['stop sequences, which it never reports', { stop_sequences: ['x'] }],
    [
      'failed tools',
      { messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', is_error: true }] }] },
    ],
    // anthropics/claude-code#77928: the template of the model fails on the block.
    [
      'tools that were searched for',
      {
        messages: [
          {
            role: 'user',
            content: [
              { type: 'tool_result', tool_use_id: 't', content: [{ type: 'tool_reference', tool_name: 'WebFetch' }] },
            ],
          },
        ],
      },
    ],
  ])('of messages with %s goes over chat', (_name, extra) => {
    const body = { messages: [{ role: 'user', content: 'x' }], ...extra };
    expect(route('messages', ['vllm', '0.24.0', 'm'], body)).toBe('chat translated');
  });

  // ggml-org/llama.cpp#18542; vllm-project/vllm#40912
  it('of messages goes over chat on releases that lose thinking or count cached tokens twice', () => {
    const body = { messages: [{ role: 'user', content: 'x' }] };
    expect(route('messages', ['llama.cpp', 'b7609', 'm'], body)).toBe('chat translated');
    expect(route('messages', ['llama.cpp', 'b7610', 'm'], body)).toBe('messages native');
    expect(route('messages', ['vllm', '0.20.0', 'm'], body)).toBe('chat translated');
    expect(route('messages', ['tgi', '3.3.0', 'm'], body)).toBe('chat translated');
  });

  // envoyproxy/ai-gateway#1936, #2127
  it('exists for chat when the backend speaks only messages', () => {
    expect(chooseUpstream('chat', ['messages'], VLLM, PLAIN)).toEqual({ dialect: 'messages', native: false });
    expect(chooseUpstream('chat', [], VLLM, PLAIN)).toBeUndefined();
  });
});

describe('conversations', () => {
  // vllm-project/vllm#38738
  it('with Mistral templates have no empty text next to calls and no user turn after a tool turn', () => {
    const body = {
      model: 'm',
      max_tokens: 5,
      messages: [
        { role: 'user', content: 'go' },
        {
          role: 'assistant',
          content: [
            { type: 'text', text: '' },
            { type: 'tool_use', id: 't', name: 'f', input: {} },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 't', content: '1' },
            { type: 'text', text: 'so?' },
          ],
        },
        { role: 'assistant', content: 'yes' },
        { role: 'user', content: 'good' },
      ],
    };
    const sent = translateRequest('messages', 'chat', body, { model: 'u', quirks: MISTRAL });
    const roles = [0, 1, 2, 3, 4, 5].map((position) => at(sent, `messages.${position}.role`));
    expect(roles).toEqual(['user', 'assistant', 'tool', 'assistant', 'user', undefined]);
    expect(at(sent, 'messages.1.content')).toBeNull();
  });

  // BerriAI/litellm#36197
  it('replay reasoning between tool turns', () => {
    const input = [
      { role: 'user', content: 'go' },
      { type: 'reasoning', id: 'rs', summary: [{ type: 'summary_text', text: 'plan' }] },
      { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c', output: '1' },
    ];
    const sent = translateRequest('responses', 'chat', { model: 'm', input }, { model: 'u', quirks: VLLM });
    expect(at(sent, 'messages.1')).toMatchObject({ role: 'assistant', reasoning: 'plan', tool_calls: [{ id: 'c' }] });
  });

  // vllm-project/vllm#43244
  it('continued by previous_response_id remember calls, results and reasoning', () => {
    const first = { model: 'm', input: 'go', tools };
    const message = {
      role: 'assistant',
      content: null,
      reasoning: 'plan',
      tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }],
    };
    const answer = translateResponse(
      'chat',
      'responses',
      { choices: [{ message, finish_reason: 'stop' }] },
      contextOf(first),
    );
    const stored = JSON.parse(
      JSON.stringify([...parseInput(first.input, undefined), ...answer.items]),
    ) as typeof answer.items;
    const next = { model: 'm', input: [{ type: 'function_call_output', call_id: 'c', output: '1' }] };
    const sent = translateRequest('responses', 'chat', next, { model: 'u', quirks: VLLM, history: stored });
    expect(at(sent, 'messages')).toMatchObject([
      { role: 'user', content: 'go' },
      { role: 'assistant', reasoning: 'plan', tool_calls: [{ id: 'c', function: { arguments: '{"a":1}' } }] },
      { role: 'tool', tool_call_id: 'c', content: '1' },
    ]);
  });
});
const answer = (message: object, finish = 'stop', extra: object = {}) => ({
  id: 'x',
  choices: [{ index: 0, message: { role: 'assistant', content: null, ...message }, finish_reason: finish }],
  usage: {
    prompt_tokens: 100,
    completion_tokens: 7,
    total_tokens: 107,
    prompt_tokens_details: { cached_tokens: 60 },
  },
  kv_transfer_params: null,
  ...extra,
});
const call = (value: string) => ({
  tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: value } }],
});
const give = (client: Dialect, body: object, request: object = {}) =>
  translateResponse('chat', client, body, contextOf(request)).body;

describe('whole answers', () => {
  // musistudio/claude-code-router#1655, vllm-project/vllm#40912, Portkey-AI/gateway#496
  it('count cached tokens once', () => {
    expect(at(give('messages', answer({ content: 'x' })), 'usage')).toMatchObject({
      input_tokens: 40,
      cache_read_input_tokens: 60,
      output_tokens: 7,
    });
    expect(at(give('responses', answer({ content: 'x' })), 'usage')).toMatchObject({
      input_tokens: 100,
      input_tokens_details: { cached_tokens: 60 },
      total_tokens: 107,
    });
  });

  // maximhq/bifrost#3511
  it('hand tool input over as it was written, key order included', () => {
    const written = '{"z":{"y":[1,{"x":null}]},"a":"ü"}';
    expect(JSON.stringify(at(give('messages', answer(call(written))), 'content.0.input'))).toBe(written);
    expect(at(give('responses', answer(call(written))), 'output.0.arguments')).toBe(written);
  });

  // Models write broken JSON; vLLM's own converter dies of it (bare json.loads).
  it.each(['{"a": tru', '', '"text"', '[1]', 'null', '{"__proto__":{"x":1}}'])(
    'survive arguments like %j',
    (written) => {
      for (const client of DIALECTS) {
        const first = give(client, answer(call(written)));
        expect(translateResponse(client, 'chat', first, contextOf()).items).toMatchObject([
          { kind: 'call', name: 'f' },
        ]);
      }
      const input = at(give('messages', answer(call('{"a": tru'))), 'content.0');
      const body = { model: 'm', max_tokens: 1, messages: [{ role: 'assistant', content: [input] }] };
      const sent = translateRequest('messages', 'chat', body, { model: 'u', quirks: VLLM });
      expect(at(sent, 'messages.0.tool_calls.0.function.arguments')).toBe('{"a": tru');
    },
  );

  // ggml-org/llama.cpp#19720
  it('have every field the published schema of a response requires', () => {
    const body = give('responses', answer({ content: 'x' }), { input: 'x', tools, temperature: 0.5 }) as object;
    for (const field of [
      'id',
      'created_at',
      'error',
      'incomplete_details',
      'instructions',
      'metadata',
      'model',
      'output',
      'parallel_tool_calls',
      'temperature',
      'tool_choice',
      'tools',
      'top_p',
      'status',
      'text',
      'truncation',
      'usage',
    ]) {
      expect(body).toHaveProperty(field);
    }
    expect(at(body, 'output.0.content.0')).toEqual({ type: 'output_text', text: 'x', annotations: [], logprobs: [] });
  });

  it('show reasoning as a summary when one was asked for, and carry it sealed for stateless clients', () => {
    const body = give('responses', answer({ content: 'x', reasoning: 'why' }), { reasoning: { summary: 'auto' } });
    expect(at(body, 'output.0.summary')).toEqual([{ type: 'summary_text', text: 'why' }]);
    const input = [
      { role: 'user', content: 'x' },
      { ...(at(body, 'output.0') as object), summary: [], content: null },
    ];
    const sent = translateRequest('responses', 'chat', { model: 'm', input }, { model: 'u', quirks: VLLM });
    expect(at(sent, 'messages.1.reasoning')).toBe('why');
  });

  it('that are errors or nonsense become a 502, not a crash', () => {
    for (const body of [null, [], {}, { choices: [] }, { error: 'boom at 10.0.0.1:80' }, { error: { message: 'x' } }]) {
      expect(() => give('messages', body as object)).toThrow(
        expect.objectContaining({ name: 'DialectError', status: 502 }),
      );
    }
  });
});
