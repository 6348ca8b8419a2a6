/** A whole answer of a server and its stream come to the same for clients of another dialect. */
import { describe, expect, it } from 'vitest';
import { translateResponse, type Dialect } from '../../../../src/gateway/dialects/index.ts';
import { parseAnswer } from '../../../../src/gateway/dialects/translate-response.ts';
import { callDelta, chunk, DONE, receive, ROLE, sse } from './engines.ts';
import { contextOf, DIALECTS } from './support.ts';

const CREATED = sse({ type: 'response.created', response: {} });
const CALL = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{"a":1}' };
const message = (text: string) => ({ type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] });

function completed(...output: object[]): string {
  return sse({ type: 'response.completed', response: { status: 'completed', output } });
}

function delta(part: string, index: number, text: string): string {
  return sse({ type: `response.${part}.delta`, output_index: index, delta: text });
}

describe('a call without a name', () => {
  // OpenAI's runTools, the AI SDK, Codex and Claude Code tell the model that there is no such tool, and it calls again. A run
  // whose call is left out ends there, without a word.
  const CALLS = [{ id: 'c', name: '', arguments: '{"a":1}' }];
  const stops: Record<Dialect, string> = { chat: 'tool_calls', responses: 'completed', messages: 'tool_use' };

  it.each(DIALECTS)('reaches the agent, which tells the model: %s', (client) => {
    const parts = [{ id: 'c', name: '', arguments: '{"a"' }, { arguments: ':1}' }];
    const stream = ROLE + parts.map((part) => chunk(callDelta(0, part))).join('') + chunk({}, 'tool_calls') + DONE;
    expect(receive('chat', client, stream)).toMatchObject({ calls: CALLS, stop: stops[client] });
    const calls = [{ id: 'c', type: 'function', function: { name: '', arguments: '{"a":1}' } }];
    const whole = { choices: [{ finish_reason: 'tool_calls', message: { tool_calls: calls } }] };
    const { body, items } = translateResponse('chat', client, whole, contextOf());
    expect(items).toMatchObject([{ kind: 'call', name: '', arguments: '{"a":1}' }]);
    expect(JSON.stringify(body)).toContain('"name":""');
  });

  it.each(DIALECTS)('is none without arguments: %s', (client) => {
    const end =
      chunk({ content: 'Hi' }) + chunk(callDelta(0, { id: 'c', name: '', arguments: '' })) + chunk({}, 'stop');
    const got = receive('chat', client, ROLE + end + DONE);
    expect(got).toMatchObject({
      text: 'Hi',
      calls: [],
      stop: { ...stops, chat: 'stop', messages: 'end_turn' }[client],
    });
    const calls = [{ id: 'c', function: { name: '' } }];
    const whole = { choices: [{ finish_reason: 'tool_calls', message: { content: 'Hi', tool_calls: calls } }] };
    expect(parseAnswer('chat', whole)).toMatchObject({ items: [{ kind: 'text' }], stop: 'end' });
  });
});

describe('arguments of null, which are none', () => {
  const EMPTY = [{ id: 'c', name: 'f', arguments: '{}' }];
  const fn = { name: 'f', arguments: 'null' };

  it.each(DIALECTS)('are an empty object to a tool: %s', (client) => {
    const stream = ROLE + chunk(callDelta(0, { id: 'c', ...fn })) + chunk({}, 'tool_calls') + DONE;
    const calls = receive('chat', client, stream).calls.map((call) => ({ ...call, arguments: call.arguments || '{}' }));
    expect(calls).toEqual(EMPTY);
    const message = { tool_calls: [{ id: 'c', type: 'function', function: fn }] };
    const whole = { choices: [{ finish_reason: 'tool_calls', message }] };
    expect(JSON.stringify(translateResponse('chat', client, whole, contextOf()).body)).not.toContain('null"');
  });

  it.each(['chat', 'messages'] as const)('are so from a server of responses: %s', (client) => {
    const call = { ...CALL, arguments: 'null' };
    const got = receive('responses', client, CREATED + completed(call)).calls;
    expect(got.map(({ arguments: text }) => text || '{}')).toEqual(['{}']);
    const { body } = translateResponse('responses', client, { status: 'completed', output: [call] }, contextOf());
    expect(JSON.stringify(body)).not.toContain('null"');
  });
});

describe('a thought with a summary of it', () => {
  const item = {
    type: 'reasoning',
    id: 'rs',
    content: [{ type: 'reasoning_text', text: 'First this, then that.' }],
    summary: [{ type: 'summary_text', text: 'This and that.' }],
  };
  const stream =
    CREATED +
    delta('reasoning_text', 0, 'First this, ') +
    delta('reasoning_text', 0, 'then that.') +
    sse({ type: 'response.reasoning_summary_part.added', output_index: 0, summary_index: 0 }) +
    delta('reasoning_summary_text', 0, 'This and ') +
    sse({ type: 'response.reasoning_summary_part.added', output_index: 0, summary_index: 1 }) +
    delta('reasoning_summary_text', 0, 'that.') +
    sse({ type: 'response.output_item.done', output_index: 0, item }) +
    delta('output_text', 1, 'Done') +
    completed(item, message('Done'));

  it.each(['chat', 'messages'] as const)('is told once, as the model thought it: %s', (client) => {
    expect(receive('responses', client, stream)).toMatchObject({ reasoning: 'First this, then that.', text: 'Done' });
    const whole = { status: 'completed', output: [item, message('Done')] };
    const [thought] = translateResponse('responses', client, whole, contextOf()).items;
    expect(thought).toMatchObject({ text: 'First this, then that.' });
  });

  it('is the summary where that is all', () => {
    const summary =
      CREATED + delta('reasoning_summary_text', 0, 'This.') + delta('output_text', 1, 'Done') + completed();
    expect(receive('responses', 'messages', summary).reasoning).toBe('This.');
  });
});

describe('what a server says at the end of its stream alone', () => {
  it.each(['chat', 'messages'] as const)('is told: a call behind a text, %s', (client) => {
    const stream = CREATED + delta('output_text', 0, 'Hi') + completed(message('Hi'), CALL);
    const calls = [{ id: 'c', name: 'f', arguments: '{"a":1}' }];
    const stop = { chat: 'tool_calls', messages: 'tool_use' }[client];
    expect(receive('responses', client, stream)).toMatchObject({ text: 'Hi', calls, stop });
  });

  it('is told: a text behind a thought, and every item of an answer that had none', () => {
    const thought = CREATED + delta('reasoning_text', 0, 'Hm') + completed({ type: 'reasoning' }, message('Hi'));
    expect(receive('responses', 'messages', thought)).toMatchObject({ reasoning: 'Hm', text: 'Hi' });
    const all = receive('responses', 'messages', CREATED + completed(message('a'), CALL, { ...CALL, call_id: 'd' }));
    expect(all).toMatchObject({ text: 'a', calls: [{ id: 'c' }, { id: 'd' }] });
  });

  it('is not told again, also where it has another number and name there', () => {
    const item = { ...CALL, id: 'fc' };
    const stream =
      CREATED +
      sse({ type: 'response.output_item.added', output_index: 4, item: { ...item, arguments: '' } }) +
      sse({ type: 'response.function_call_arguments.delta', output_index: 4, delta: '{"a":1}' }) +
      completed({ ...item, call_id: 'other', id: 'another' });
    expect(receive('responses', 'messages', stream).calls).toEqual([{ id: 'c', name: 'f', arguments: '{"a":1}' }]);
  });
});
