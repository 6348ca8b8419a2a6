/** Streams that broke other translators; each test names the public thread it comes from. */
import { describe, expect, it } from 'vitest';
import { StreamTranslator } from '../../../../src/gateway/dialects/index.ts';
import { callDelta, chunk, DONE, receive, ROLE, sse, translate, USAGE, USAGE_CHUNK } from './engines.ts';
import { readEvents } from './sse.ts';
import { at, contextOf, DIALECTS } from './support.ts';

const TOOL_END = chunk({}, 'tool_calls') + USAGE_CHUNK + DONE;
const END = chunk({}, 'stop') + USAGE_CHUNK + DONE;
const weather = (index: number | undefined, id: string) =>
  chunk(callDelta(index, { id, name: 'weather', arguments: '{"city":"Oslo"}' }));
const callItem = (id: string) => ({ type: 'function_call', id, call_id: `c_${id}`, name: 'f', arguments: '' });

describe('blocks of a messages stream', () => {
  // BerriAI/litellm#32357, #33224, PR #25212
  it('never put thinking into a text block, however often the engine switches, and start one message', () => {
    const stream =
      ROLE +
      chunk({ reasoning_content: 'a' }) +
      chunk({ content: 'b' }) +
      ROLE +
      chunk({ reasoning_content: 'c' }) +
      chunk({ content: 'd' }) +
      END;
    const got = receive('chat', 'messages', stream);
    expect(got.order).toEqual(['thinking', 'text', 'thinking', 'text']);
    expect([got.reasoning, got.text]).toEqual(['ac', 'bd']);
  });

  // BerriAI/litellm#25321, #25561
  it.each(DIALECTS)('forward the fragment that comes with the switch to a call (%s)', (client) => {
    const stream = ROLE + chunk({ content: 'Looking.' }) + weather(0, 'c0') + weather(1, 'c1') + TOOL_END;
    expect(receive('chat', client, stream).calls.map((call) => call.arguments)).toEqual([
      '{"city":"Oslo"}',
      '{"city":"Oslo"}',
    ]);
  });

  // BerriAI/litellm#13373
  it('are started before their first delta, also when the engine sends no role chunk', () => {
    expect(receive('chat', 'messages', chunk({ content: 'hi' }) + END).text).toBe('hi');
  });

  // ollama/ollama#14825, fixed by f3f31a8
  it('close thinking, with its signature, before a tool call', () => {
    const got = receive('chat', 'messages', ROLE + chunk({ reasoning: 'hm' }) + weather(0, 'c') + TOOL_END);
    expect(got.order).toEqual(['thinking', 'tool_use']);
    expect(got.stop).toBe('tool_use');
  });

  // ollama/ollama#17225, fixed by 794a254
  it('leave out the blank text that models write between thinking and a call', () => {
    const stream = ROLE + chunk({ reasoning: 'hm' }) + chunk({ content: '\n\n' }) + weather(0, 'c') + TOOL_END;
    expect(receive('chat', 'messages', stream).order).toEqual(['thinking', 'tool_use']);
  });

  // envoyproxy/ai-gateway#1911
  it('keep text before the call when both come in one chunk', () => {
    const both = chunk({ content: 'Let me look.', ...callDelta(0, { id: 'c', name: 'f', arguments: '{}' }) });
    expect(receive('chat', 'messages', ROLE + both + TOOL_END).order).toEqual(['text', 'tool_use']);
  });

  // sgl-project/sglang#20754, ggml-org/llama.cpp#18542, maximhq/bifrost#2446
  it.each(['reasoning_content', 'reasoning'])('show the vendor field %s as a thinking block', (field) => {
    const got = receive('chat', 'messages', ROLE + chunk({ [field]: 'because' }) + chunk({ content: 'yes' }) + END);
    expect(got).toMatchObject({ order: ['thinking', 'text'], reasoning: 'because', text: 'yes' });
  });
});

describe('items of a responses stream', () => {
  // BerriAI/litellm#37852
  it('are not closed unless opened: an answer of only calls has no message item', () => {
    const out = translate('chat', 'responses', ROLE + weather(0, 'c') + TOOL_END);
    expect(out).not.toMatch(/output_text|content_part|"type":"message"/);
    expect(receive('chat', 'responses', ROLE + weather(0, 'c') + TOOL_END).order).toEqual(['tool_use']);
  });

  // BerriAI/litellm#21090
  it('come as they are generated, whatever the model is called', () => {
    const context = { ...contextOf({ input: 'x' }), model: 'nobody/knows-this-one' };
    const machine = new StreamTranslator('chat', 'responses', context);
    machine.push(Buffer.from(ROLE));
    expect(machine.push(Buffer.from(chunk(callDelta(0, { id: 'c', name: 'f', arguments: '{"a"' }))))).toMatch(
      /output_item\.added[\s\S]*function_call_arguments\.delta/,
    );
  });

  // BerriAI/litellm#17246, sgl-project/sglang#34214
  it.each(DIALECTS)('keep all text next to calls (%s)', (client) => {
    const stream = ROLE + chunk({ content: 'One ' }) + chunk({ content: 'two.' }) + weather(0, 'c') + TOOL_END;
    expect(receive('chat', client, stream)).toMatchObject({ text: 'One two.', calls: [{ name: 'weather' }] });
  });

  // BerriAI/litellm#26179, vllm-project/vllm#37071
  it('are all in the final response, each with its done events', () => {
    const stream = ROLE + chunk({ reasoning: 'r' }) + chunk({ content: 't' }) + weather(0, 'c') + TOOL_END;
    const types = readEvents(translate('chat', 'responses', stream)).map(({ event }) => event);
    for (const done of ['reasoning_text', 'output_text', 'function_call_arguments']) {
      expect(types).toContain(`response.${done}.done`);
    }
    expect(types.filter((type) => type === 'response.output_item.done')).toHaveLength(3);
    expect(receive('chat', 'responses', stream).order).toEqual(['thinking', 'text', 'tool_use']);
  });

  // BerriAI/litellm#27144
  it('are understood when the backend sends done events without deltas', () => {
    const item = { type: 'function_call', id: 'fc', call_id: 'c', name: 'f', arguments: '{"a":1}' };
    const message = { type: 'message', id: 'm', role: 'assistant', content: [{ type: 'output_text', text: 'hi' }] };
    const stream =
      sse({ type: 'response.created', response: {} }) +
      sse({ type: 'response.output_item.done', output_index: 0, item: message }) +
      sse({ type: 'response.output_item.added', output_index: 1, item: { ...item, arguments: '' } }) +
      sse({ type: 'response.output_item.done', output_index: 1, item }) +
      sse({ type: 'response.completed', response: { output: [] } });
    for (const client of ['chat', 'messages'] as const) {
      expect(receive('responses', client, stream)).toMatchObject({ text: 'hi', calls: [{ arguments: '{"a":1}' }] });
    }
  });

  // ggml-org/llama.cpp#21174
  it('are understood without output_index', () => {
    const stream = ['a', 'b'].flatMap((id) => [
      sse({ type: 'response.output_item.added', item: callItem(id) }),
      sse({ type: 'response.function_call_arguments.delta', item_id: id, delta: `{"v":"${id}"}` }),
      sse({ type: 'response.output_item.done', item: { ...callItem(id), arguments: `{"v":"${id}"}` } }),
    ]);
    const end = sse({ type: 'response.completed', response: { output: [] } });
    expect(receive('responses', 'messages', stream.join('') + end).calls.map((c) => c.arguments)).toEqual([
      '{"v":"a"}',
      '{"v":"b"}',
    ]);
  });
});

describe('calls', () => {
  // Portkey-AI/gateway#1275
  it.each(DIALECTS)('are told apart when the engine gives all the same index, or none (%s)', (client) => {
    for (const index of [0, undefined]) {
      const stream = ROLE + weather(index, 'a') + weather(index, 'b') + TOOL_END;
      expect(receive('chat', client, stream).calls.map((call) => call.id)).toEqual(['a', 'b']);
    }
  });

  it.each(DIALECTS)('get an id of their own when the engine gives none or repeats one (%s)', (client) => {
    const stream = ROLE + weather(0, '') + weather(1, 'x') + weather(2, 'x') + TOOL_END;
    const ids = receive('chat', client, stream).calls.map((call) => call.id);
    expect(new Set(ids).size).toBe(3);
    expect(ids).not.toContain('');
  });

  // ollama/ollama#15105, maximhq/bifrost#3511
  it('keep arguments the engine sends as an object or in the start event', () => {
    const object = {
      tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: { deep: { z: 1, a: [2] } } } }],
    };
    expect(receive('chat', 'messages', ROLE + chunk(object) + TOOL_END).calls[0]?.arguments).toBe(
      '{"deep":{"z":1,"a":[2]}}',
    );
    const block = { type: 'tool_use', id: 'c', name: 'f', input: { a: 1 } };
    const stream =
      sse({ type: 'message_start', message: { usage: { input_tokens: 5, output_tokens: 0 } } }) +
      sse({ type: 'content_block_start', index: 0, content_block: block }) +
      sse({ type: 'content_block_stop', index: 0 }) +
      sse({ type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 3 } }) +
      sse({ type: 'message_stop' });
    expect(receive('messages', 'chat', stream).calls[0]?.arguments).toBe('{"a":1}');
  });

  it('are read from a single object where a list belongs, as TGI has sent them', () => {
    const one = { tool_calls: { index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } } };
    expect(receive('chat', 'messages', ROLE + chunk(one) + TOOL_END).calls).toHaveLength(1);
  });

  // nearai/ironclaw#5951, vllm-project/vllm#51701, TGI's own snapshots
  it.each(DIALECTS)('end with their JSON, whatever the engine leaks behind it (%s)', (client) => {
    for (const leak of ['<|eot_id|>', '</s>', '}', ' \n<|im_end|>', '<｜tool▁call▁end｜>']) {
      for (const pieces of [['{"a":', '{"b":1}}', leak], ['{"a":{"b":1}', `}${leak}`], [`{"a":{"b":1}}${leak}`]]) {
        const fragments = pieces.map((piece) => chunk(callDelta(0, { arguments: piece }))).join('');
        const stream = ROLE + chunk(callDelta(0, { id: 'c', name: 'f' })) + fragments + TOOL_END;
        expect(receive('chat', client, stream).calls).toMatchObject([{ arguments: '{"a":{"b":1}}' }]);
      }
    }
  });

  it('are not chosen from when two come as one', () => {
    const stream = ROLE + chunk(callDelta(0, { id: 'c', name: 'f', arguments: '{"a":1}{"a":2}' })) + TOOL_END;
    expect(receive('chat', 'chat', stream).calls).toMatchObject([{ arguments: '{"a":1}{"a":2}' }]);
  });

  it.each(['chat', 'responses'] as const)('without arguments are an empty object for a %s client', (client) => {
    const stream = ROLE + chunk(callDelta(0, { id: 'c', name: 'now', arguments: '' })) + TOOL_END;
    expect(receive('chat', client, stream).calls[0]?.arguments).toBe('{}');
  });

  it('of a free-form tool come out as its raw input', () => {
    const request = { input: 'x', tools: [{ type: 'custom', name: 'patch' }] };
    const call = chunk(callDelta(0, { id: 'c', name: 'patch', arguments: '{"input":"*** Begin\\n' }));
    const stream = ROLE + call + chunk(callDelta(0, { arguments: '*** End"}' })) + TOOL_END;
    const events = readEvents(translate('chat', 'responses', stream, request));
    const done = events.find(({ event }) => event === 'response.custom_tool_call_input.done');
    expect(JSON.parse(done?.data ?? '')).toMatchObject({ input: '*** Begin\n*** End' });
    expect(() => receive('chat', 'responses', stream, request)).not.toThrow();
  });

  it.each(DIALECTS)('decide the stop reason, not what the engine claims (%s)', (client) => {
    const expected = { chat: 'tool_calls', responses: 'completed', messages: 'tool_use' }[client];
    expect(receive('chat', client, ROLE + weather(0, 'c') + END).stop).toBe(expected);
    const none = { chat: 'stop', responses: 'completed', messages: 'end_turn' }[client];
    expect(receive('chat', client, ROLE + chunk({ content: 'x' }) + TOOL_END).stop).toBe(none);
  });
});

describe('usage', () => {
  // BerriAI/litellm#31069, vllm-project/vllm#45079 and PR #49456
  it('has the cached part in message_start when the engine knows it then, disjoint from the input', () => {
    const first = chunk({ role: 'assistant' }, null, { usage: { ...USAGE, completion_tokens: 0 } });
    const [start] = readEvents(translate('chat', 'messages', first + chunk({ content: 'x' }) + END));
    expect(at(JSON.parse(start?.data ?? '{}'), 'message.usage')).toMatchObject({
      input_tokens: 40,
      cache_read_input_tokens: 60,
      cache_creation_input_tokens: 0,
    });
  });

  // envoyproxy/ai-gateway#2290
  it('is complete in message_delta and survives from a messages backend', () => {
    expect(receive('chat', 'messages', ROLE + chunk({ content: 'x' }) + END).usage).toEqual({
      input: 100,
      output: 7,
      cached: 60,
    });
    const counts = { input_tokens: 40, cache_read_input_tokens: 60, cache_creation_input_tokens: 0 };
    const stream =
      sse({ type: 'message_start', message: { usage: { ...counts, output_tokens: 1 } } }) +
      sse({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 7 } }) +
      sse({ type: 'message_stop' });
    expect(receive('messages', 'chat', stream).usage).toEqual({ input: 100, output: 7, cached: 60 });
  });

  it('of a chat stream is shown only to a client that asked', () => {
    const machine = new StreamTranslator('messages', 'chat', contextOf({ messages: [] }));
    const start = sse({ type: 'message_start', message: { usage: { input_tokens: 1, output_tokens: 1 } } });
    const out = machine.push(Buffer.from(start + sse({ type: 'message_stop' })));
    expect(out).not.toContain('usage');
    expect(machine.usage?.inputTokens).toBe(1);
  });
});

describe('stop sequences', () => {
  it.each(['stop_reason', 'matched_stop'])('are reported from %s', (field) => {
    const end = sse({ choices: [{ index: 0, delta: {}, finish_reason: 'stop', [field]: 'END' }] });
    const request = { stop_sequences: ['END'] };
    const out = translate('chat', 'messages', ROLE + chunk({ content: 'x' }) + end + DONE, request);
    expect(out).toContain('"stop_reason":"stop_sequence","stop_sequence":"END"');
  });
});
