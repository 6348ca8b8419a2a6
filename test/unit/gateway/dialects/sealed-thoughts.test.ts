/** What a model thought, sealed by its vendor or by the gateway, and where it may go. */
import { describe, expect, it } from 'vitest';
import {
  quirksOf,
  StreamTranslator,
  translateRequest,
  translateResponse,
  type Dialect,
} from '../../../../src/gateway/dialects/index.ts';
import { sse } from './engines.ts';
import { readEvents } from './sse.ts';
import { at, contextOf } from './support.ts';

const VENDOR = quirksOf('unknown', undefined, 'm');
const QUESTION = { role: 'user', content: 'q' };

function sent(from: Dialect, to: Dialect, body: object): Record<string, unknown> {
  return translateRequest(from, to, { model: 'm', max_tokens: 5, ...body }, { model: 'u', quirks: VENDOR });
}

describe('what OpenAI sealed', () => {
  const SEALED = 'gAAAAsealed';
  const CALL = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' };

  function answer(summary: string): object {
    const parts = summary === '' ? [] : [{ type: 'summary_text', text: summary }];
    const thought = { type: 'reasoning', id: 'rs_1', summary: parts, encrypted_content: SEALED };
    return { object: 'response', status: 'completed', output: [thought, CALL] };
  }

  function streamed(whole: object): string {
    const items = at(whole, 'output') as object[];
    const done = items.map((item, index) => sse({ type: 'response.output_item.done', output_index: index, item }));
    const [first] = items;
    const text = at(first, 'summary.0.text');
    const delta =
      text === undefined ? '' : sse({ type: 'response.reasoning_summary_text.delta', output_index: 0, delta: text });
    return `${delta}${done.join('')}${sse({ type: 'response.completed', response: whole })}`;
  }

  /** The content of a message, as its events have it. */
  function contentOf(stream: string): object[] {
    const blocks: Record<string, string>[] = [];
    for (const { data } of readEvents(stream)) {
      const event = JSON.parse(data) as object;
      if (at(event, 'type') === 'content_block_start') blocks.push({ ...(at(event, 'content_block') as object) });
      if (at(event, 'type') !== 'content_block_delta') continue;
      const { type: _type, ...delta } = at(event, 'delta') as Record<string, string>;
      const block = blocks.at(-1) ?? {};
      for (const [name, value] of Object.entries(delta)) block[name] = `${block[name] ?? ''}${value}`;
    }
    return blocks.map(({ partial_json: _input, ...block }) => block);
  }

  it.each(['', 'A summary.'])('comes back to it through a client of messages, with the summary %j', (summary) => {
    const whole = answer(summary);
    const message = translateResponse('responses', 'messages', whole, contextOf()).body;
    const translator = new StreamTranslator('responses', 'messages', contextOf());
    const stream = translator.push(Buffer.from(streamed(whole))) + translator.end();
    for (const content of [at(message, 'content') as object[], contentOf(stream)]) {
      const result = { type: 'tool_result', tool_use_id: 'c', content: 'r' };
      const messages = [QUESTION, { role: 'assistant', content }, { role: 'user', content: [result] }];
      expect(at(sent('messages', 'responses', { messages }), 'input.1')).toEqual({
        type: 'reasoning',
        id: 'rs_h1',
        summary: summary === '' ? [] : [{ type: 'summary_text', text: summary }],
        encrypted_content: SEALED,
      });
    }
  });

  it('is asked for with an effort of reasoning', () => {
    const body = { messages: [QUESTION], output_config: { effort: 'high' } };
    expect(sent('messages', 'responses', body).include).toEqual(['reasoning.encrypted_content']);
    // Models that do not reason refuse it.
    expect(sent('messages', 'responses', { messages: [QUESTION] }).include).toBeUndefined();
  });

  // musistudio/claude-code-router#1783: "array too long. Expected an array with maximum length 0"
  it('comes back to it out of a stored conversation as it was', () => {
    const { items } = translateResponse('responses', 'responses', answer('A summary.'), contextOf());
    const body = translateRequest(
      'responses',
      'responses',
      { model: 'm', input: 'x' },
      { model: 'u', quirks: VENDOR, history: items },
    );
    expect(at(body, 'input.0')).toMatchObject({
      summary: [{ type: 'summary_text', text: 'A summary.' }],
      encrypted_content: SEALED,
    });
    expect(at(body, 'input.0.content')).toBeUndefined();
  });
});

/** An answer of a local engine, as a client of this dialect has it. */
function local(client: Dialect, request: object = {}): unknown {
  const call = { id: 'functions.f:0', function: { name: 'f', arguments: '{}' } };
  const message = { reasoning_content: 'Hm.', content: 'Hi', tool_calls: [call] };
  const whole = { choices: [{ finish_reason: 'tool_calls', message }] };
  return translateResponse('chat', client, whole, contextOf(request)).body;
}

/** anomalyco/opencode#44713, openai/codex#8128: the whole conversation is lost there. */
describe('what another model thought goes to no server that may check seals', () => {
  const result = (id: string) => ({ role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'r' }] });

  it('in messages, as they are', () => {
    const content = at(local('messages'), 'content');
    const kept = { role: 'assistant', content: [{ type: 'thinking', thinking: 'Mine.', signature: 'SIGNED' }] };
    const thought = { role: 'assistant', content: [(content as object[])[0]] };
    const messages = [QUESTION, kept, QUESTION, thought, { role: 'assistant', content }, result('functions.f:0')];
    const body = sent('messages', 'messages', { messages });
    expect(JSON.stringify(body)).not.toMatch(/berth1|Hm\./);
    expect(at(body, 'messages.1')).toBe(kept);
    expect(at(body, 'messages')).toHaveLength(messages.length - 1);
  });

  it('in messages, where a text of white space beside a call stays out, too', () => {
    const call = { type: 'tool_use', id: 'c', name: 'f', input: {} };
    const messages = [
      QUESTION,
      { role: 'assistant', content: [{ type: 'text', text: '\n\n' }, call] },
      result('c'),
      { role: 'assistant', content: [{ type: 'text', text: ' ' }] },
      QUESTION,
    ];
    const body = sent('messages', 'messages', { messages });
    expect(at(body, 'messages')).toEqual([QUESTION, { role: 'assistant', content: [call] }, result('c'), QUESTION]);
  });

  it('in messages that nothing is wrong with, which stay the same list', () => {
    const messages = [QUESTION, { role: 'assistant', content: [{ type: 'text', text: 'Hi' }] }, result('c')];
    expect(sent('messages', 'messages', { messages }).messages).toBe(messages);
  });

  it('in messages for a client of chat', () => {
    const messages = [QUESTION, at(local('chat'), 'choices.0.message'), QUESTION];
    expect(JSON.stringify(sent('chat', 'messages', { messages }))).not.toContain('Hm.');
  });

  it('in responses, as they are', () => {
    const input = [QUESTION, ...(at(local('responses'), 'output') as object[])];
    const body = sent('responses', 'responses', { input });
    expect(at(body, 'input')).toEqual(input.toSpliced(1, 1));
    const sealed = [QUESTION, { type: 'reasoning', summary: [], encrypted_content: 'gAAAA' }];
    expect(sent('responses', 'responses', { input: sealed }).input).toBe(sealed);
  });

  // OpenAI knows them by their ids where it stored the answer, and the gateway has it store nothing.
  it('in responses, where a client sends back a thought that it got neither sealed nor in words', () => {
    const call = { type: 'function_call', id: 'fc_1', call_id: 'c', name: 'f', arguments: '{}' };
    const thoughts = [{ summary: [] }, { summary: [{ type: 'summary_text', text: 's' }], encrypted_content: null }];
    for (const thought of thoughts) {
      const input = [QUESTION, { type: 'reasoning', id: 'rs_1', ...thought }, call];
      expect(sent('responses', 'responses', { input }).input).toEqual([QUESTION, call]);
    }
    const inWords = [QUESTION, { type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: 't' }] }];
    expect(sent('responses', 'responses', { input: inWords }).input).toBe(inWords);
  });

  it('in responses for a client of messages, or out of a store', () => {
    const messages = [QUESTION, { role: 'assistant', content: at(local('messages'), 'content') }, QUESTION];
    expect(JSON.stringify(sent('messages', 'responses', { messages }))).not.toContain('Hm.');
    const history = [{ kind: 'reasoning' as const, text: 'Hm.' }];
    const options = { model: 'u', quirks: VENDOR, history };
    expect(translateRequest('responses', 'responses', { model: 'm', input: 'x' }, options).input).toEqual([
      { role: 'user', content: 'x' },
    ]);
  });

  it('but a summary that the gateway had written is a text there', () => {
    const summary = { choices: [{ finish_reason: 'stop', message: { content: 'SUMMARY' } }] };
    const context = contextOf({ input: [QUESTION, { type: 'compaction_trigger' }] });
    const compact = at(translateResponse('chat', 'responses', summary, context).body, 'output') as object[];
    const body = sent('responses', 'responses', { input: [...compact, QUESTION] });
    expect(at(body, 'input.0')).toMatchObject({ type: 'message', role: 'user' });
    expect(at(body, 'input.0.content.0.text')).toContain('SUMMARY');
  });
});

// BerriAI/litellm#34523
describe('the id of a call that Kimi made', () => {
  const content = at(local('messages'), 'content') as object[];
  const messages = [
    QUESTION,
    { role: 'assistant', content },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'functions.f:0', content: 'r' }] },
  ];

  it.each([
    ['claude-sonnet-5', 'functions_f_0'],
    ['kimi-k2.5', 'functions.f:0'],
  ])('is one for %s: %s', (model, id) => {
    const options = { model, quirks: quirksOf('unknown', undefined, model) };
    const chat = [
      QUESTION,
      at(local('chat'), 'choices.0.message'),
      { role: 'tool', tool_call_id: 'functions.f:0', content: 'r' },
    ];
    for (const [from, body] of [
      ['messages', { messages }],
      ['chat', { messages: chat }],
    ] as const) {
      const text = JSON.stringify(translateRequest(from, 'messages', { model: 'm', max_tokens: 5, ...body }, options));
      expect(text).toContain(`"type":"tool_use","id":"${id}"`);
      expect(text).toContain(`"type":"tool_result","tool_use_id":"${id}"`);
    }
  });
});

describe('two ways of one answer', () => {
  it('have the signature of a thought wherever the stream says it', () => {
    const translator = new StreamTranslator('messages', 'messages', contextOf());
    const thought = { type: 'thinking', thinking: '', signature: 'SIGNED' };
    const events = [
      { type: 'message_start', message: {} },
      { type: 'content_block_start', index: 0, content_block: thought },
      { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'Hm.' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } },
      { type: 'message_stop' },
    ];
    expect(translator.push(Buffer.from(events.map((event) => sse(event)).join('')))).toContain('"signature":"SIGNED"');
  });

  it('estimate what was written where the server counts nothing', () => {
    const whole = { choices: [{ finish_reason: 'stop', message: { content: 'x'.repeat(40) } }] };
    expect(at(translateResponse('chat', 'messages', whole, contextOf()).body, 'usage.output_tokens')).toBe(10);
  });
});
