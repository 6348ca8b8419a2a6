/** What engines send and clients ask for that got lost without a word. */
import { describe, expect, it } from 'vitest';
import {
  chooseUpstream,
  quirksOf,
  requestFeatures,
  StreamTranslator,
  translateRequest,
  translateResponse,
} from '../../../../src/gateway/dialects/index.ts';
import { callDelta, chunk, DONE, receive, ROLE, sse, translate } from './engines.ts';
import { readEvents } from './sse.ts';
import { at, contextOf, DIALECTS, VLLM } from './support.ts';

const CUT_CALL =
  ROLE +
  chunk({ content: 'Let me look.' }) +
  chunk(callDelta(0, { id: 'c', name: 'f', arguments: '{"path":"/tm' })) +
  chunk({}, 'length') +
  DONE;

describe('an answer that a limit cut', () => {
  const whole = (finish: string, message: object) =>
    translateResponse('chat', 'responses', { choices: [{ finish_reason: finish, message }] }, contextOf()).body;

  it('is incomplete down to its last item, so that no agent runs half a call', () => {
    const events = readEvents(translate('chat', 'responses', CUT_CALL)).filter(({ data }) => data !== '[DONE]');
    const bodies = events.map(({ data }) => JSON.parse(data) as object);
    const done = bodies.filter((body) => at(body, 'type') === 'response.output_item.done');
    expect(done.map((body) => at(body, 'item.status'))).toEqual(['completed', 'incomplete']);
    const last = bodies.at(-1);
    expect(at(last, 'type')).toBe('response.incomplete');
    expect(at(last, 'response.incomplete_details')).toEqual({ reason: 'max_output_tokens' });
    expect(at(last, 'response.output.0.status')).toBe('completed');
    expect(at(last, 'response.output.1')).toMatchObject({ type: 'function_call', status: 'incomplete' });
  });

  it('is so when it comes whole', () => {
    const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{"a' } };
    const cut = whole('length', { content: 'x', tool_calls: [call] });
    expect(at(cut, 'status')).toBe('incomplete');
    expect([at(cut, 'output.0.status'), at(cut, 'output.1.status')]).toEqual(['completed', 'incomplete']);
    expect(at(whole('content_filter', { content: 'x' }), 'output.0.status')).toBe('incomplete');
    expect(at(whole('stop', { content: 'x' }), 'output.0.status')).toBe('completed');
  });

  it('is so when the engine of the responses dialect gives no reason', () => {
    const response = { status: 'incomplete', incomplete_details: null, output: [] };
    const stream =
      sse({ type: 'response.created', response: {} }) +
      sse({ type: 'response.output_text.delta', output_index: 0, delta: 'x' }) +
      sse({ type: 'response.incomplete', response });
    expect(receive('responses', 'messages', stream).stop).toBe('max_tokens');
    expect(at(translateResponse('responses', 'chat', response, contextOf()).body, 'choices.0.finish_reason')).toBe(
      'length',
    );
  });
});

describe('an answer that the engine gave up', () => {
  // vLLM: RequestStatus.FINISHED_ABORTED and FINISHED_ERROR; SGLang: FINISH_ABORT
  it.each(['abort', 'error'])('with the reason %s is an error, not an end', (finish) => {
    for (const client of DIALECTS) {
      const machine = new StreamTranslator('chat', client, contextOf({ messages: [] }));
      machine.push(Buffer.from(ROLE + chunk({ content: 'x' }) + chunk({}, finish) + DONE));
      expect(machine.error).toMatchObject({ status: 502 });
      const body = { choices: [{ finish_reason: finish, message: { content: 'x' } }] };
      expect(() => translateResponse('chat', client, body, contextOf())).toThrow(
        expect.objectContaining({ name: 'DialectError', status: 502 }),
      );
    }
  });
});

describe('whole chat answers', () => {
  const give = (message: object) =>
    translateResponse('chat', 'messages', { choices: [{ finish_reason: 'stop', message }] }, contextOf()).body;

  it('may have their content as a list', () => {
    const content = [
      { type: 'text', text: 'Hello ' },
      { type: 'text', text: 'there' },
    ];
    expect(at(give({ content }), 'content.0.text')).toBe('Hello there');
  });

  // Mistral's own form: spring-projects/spring-ai#5020, prism-php/prism#862
  it('may have their reasoning in that list', () => {
    const thinking = [
      { type: 'text', text: 'Why ' },
      { type: 'text', text: 'not' },
    ];
    const content = [
      { type: 'thinking', thinking },
      { type: 'text', text: 'Hello' },
    ];
    expect(at(give({ content }), 'content.0.thinking')).toBe('Why not');
    expect(at(give({ content }), 'content.1.text')).toBe('Hello');
    const first = chunk({ content: [{ type: 'thinking', thinking }] });
    const stream = ROLE + first + chunk({ content: 'Hello' }) + chunk({}, 'stop') + DONE;
    expect(receive('chat', 'messages', stream)).toMatchObject({ reasoning: 'Why not', text: 'Hello' });
  });

  it('may have an empty field of reasoning beside the one in use', () => {
    expect(at(give({ content: 'x', reasoning_content: '', reasoning: 'why' }), 'content.0.thinking')).toBe('why');
    const stream = ROLE + chunk({ reasoning_content: '', reasoning: 'why' }) + chunk({}, 'stop') + DONE;
    expect(receive('chat', 'messages', stream).reasoning).toBe('why');
  });
});

describe('calls in a stream', () => {
  const call = (text: string) => chunk(callDelta(0, { name: 'f', arguments: text }));

  it('with one index and no ids are two when the first is whole', () => {
    const stream = `${ROLE}${call('{"a":1}')}${call('{"a":2}')}${chunk({}, 'tool_calls')}${DONE}`;
    for (const client of DIALECTS)
      expect(receive('chat', client, stream).calls.map((each) => each.arguments)).toEqual(['{"a":1}', '{"a":2}']);
  });

  it('are one when the engine repeats the name with each fragment', () => {
    const stream = `${ROLE}${call('{"a"')}${call(':1}')}${chunk({}, 'tool_calls')}${DONE}`;
    expect(receive('chat', 'chat', stream).calls.map((each) => each.arguments)).toEqual(['{"a":1}']);
  });
});

describe('custom tools of a namespace', () => {
  const request = {
    input: 'x',
    tools: [{ type: 'namespace', name: 'fs', tools: [{ type: 'custom', name: 'patch' }] }],
  };

  it('are called by the name and the namespace that the client gave', () => {
    const calls = [{ id: 'c', function: { name: 'fs__patch', arguments: '{"input":"raw"}' } }];
    const body = { choices: [{ finish_reason: 'tool_calls', message: { content: null, tool_calls: calls } }] };
    const answer = translateResponse('chat', 'responses', body, contextOf(request)).body;
    const expected = { type: 'custom_tool_call', name: 'patch', namespace: 'fs', input: 'raw' };
    expect(at(answer, 'output.0')).toMatchObject(expected);
    const back = { model: 'm', input: [{ role: 'user', content: 'x' }, at(answer, 'output.0')] };
    const sent = translateRequest('responses', 'chat', back, { model: 'u', quirks: VLLM });
    expect(at(sent, 'messages.1.tool_calls.0.function.name')).toBe('fs__patch');
  });

  // can1357/oh-my-pi#977: "Expected an ID that begins with 'ctc'"
  it('have ids with which the conversation can go on at OpenAI', () => {
    const calls = [{ index: 0, id: 'c', function: { name: 'fs__patch', arguments: '{"input":"raw"}' } }];
    const body = { choices: [{ finish_reason: 'tool_calls', message: { content: null, tool_calls: calls } }] };
    const whole = translateResponse('chat', 'responses', body, contextOf(request)).body;
    const translator = new StreamTranslator('chat', 'responses', contextOf(request));
    const out = translator.push(Buffer.from(ROLE + chunk({ tool_calls: calls }) + chunk({}, 'tool_calls') + DONE));
    const events = readEvents(out).filter(({ data }) => data !== '[DONE]');
    const ids = events.flatMap(({ data }) => {
      const event = JSON.parse(data) as object;
      return [at(event, 'item_id'), at(event, 'item.id'), at(event, 'response.output.0.id')];
    });
    const [id, ...others] = new Set([at(whole, 'output.0.id'), ...ids.filter((one) => one !== undefined)]);
    expect(id).toMatch(/^ctc_/);
    expect(others).toEqual([]);
  });
});

describe('requests', () => {
  const schema = { type: 'object', properties: {} };

  it('for a format by the older name of the messages dialect get it', () => {
    const format = { type: 'json_schema', schema };
    const body = { model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'x' }], output_format: format };
    const sent = translateRequest('messages', 'chat', body, { model: 'u', quirks: VLLM });
    expect(at(sent, 'response_format.json_schema.schema')).toEqual(schema);
    const vllm = quirksOf('vllm', '0.24.0', 'm');
    const route = chooseUpstream('messages', ['chat', 'messages'], vllm, requestFeatures('messages', body));
    expect(route?.dialect).toBe('chat');
  });

  it.each([{ conversation: 'conv_1' }, { background: true }, { prompt: { id: 'pmpt_1' } }])(
    'for state that is not there are refused on every route: %j',
    (extra) => {
      for (const to of ['chat', 'responses'] as const) {
        const body = { model: 'm', input: 'x', ...extra };
        expect(() => translateRequest('responses', to, body, { model: 'u', quirks: VLLM })).toThrow(
          expect.objectContaining({ status: 400, code: 'unsupported_parameter' }),
        );
      }
    },
  );

  it.each(['vllm', 'sglang', 'llama.cpp', 'ollama', 'tgi'])(
    'for MCP servers that nobody would connect to are refused, also where the dialect is native: %s',
    (engine) => {
      const quirks = quirksOf(engine, '99.0.0', 'm');
      const servers = [{ type: 'url', name: 'x', url: 'https://mcp.example' }];
      const body = { model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'x' }], mcp_servers: servers };
      for (const to of ['chat', 'messages'] as const) {
        const send = () => translateRequest('messages', to, body, { model: 'u', quirks });
        expect(send).toThrow(expect.objectContaining({ status: 400, param: 'mcp_servers' }));
      }
      expect(
        translateRequest('messages', 'messages', { ...body, mcp_servers: [] }, { model: 'u', quirks }),
      ).toBeDefined();
    },
  );

  it.each(['mcp', 'code_interpreter', 'file_search', 'image_generation'])(
    'for a tool that OpenAI runs do not reach an engine which leaves it out: %s',
    (type) => {
      const body = { model: 'm', input: 'x', tools: [{ type }] };
      const quirks = quirksOf('ollama', '0.32.15', 'm');
      const route = chooseUpstream('responses', ['chat', 'responses'], quirks, requestFeatures('responses', body));
      expect(route?.dialect).toBe('chat');
      const send = () => translateRequest('responses', 'chat', body, { model: 'u', quirks });
      expect(send).toThrow(expect.objectContaining({ status: 400, param: 'tools[0]' }));
    },
  );

  it.each([
    ['functions', [{ name: 'f', parameters: schema }]],
    ['function_call', 'auto'],
    ['audio', { voice: 'alloy', format: 'wav' }],
    ['modalities', ['text', 'audio']],
    ['web_search_options', {}],
    ['logit_bias', { '50': -100 }],
  ])('of chat for what the other dialects have no field for are refused: %s', (field, value) => {
    for (const to of ['messages', 'responses'] as const) {
      const body = { model: 'm', messages: [{ role: 'user', content: 'x' }], [field]: value };
      const send = () => translateRequest('chat', to, body, { model: 'u', quirks: VLLM });
      expect(send).toThrow(expect.objectContaining({ status: 400, code: 'unsupported_parameter', param: field }));
    }
  });

  it.each([
    ['functions', null],
    ['modalities', ['text']],
    ['logit_bias', {}],
  ])('of chat that say the usual of them are not: %s', (field, value) => {
    const body = { model: 'm', messages: [{ role: 'user', content: 'x' }], [field]: value };
    expect(translateRequest('chat', 'messages', body, { model: 'u', quirks: VLLM })).toBeDefined();
  });
});
