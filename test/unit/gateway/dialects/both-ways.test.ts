/** A whole answer of a server and its stream come to the same for clients of another dialect. */
import { describe, expect, it } from 'vitest';
import { translateResponse, type Dialect } from '../../../../src/gateway/dialects/index.ts';
import { parseAnswer } from '../../../../src/gateway/dialects/translate-response.ts';
import { callDelta, chunk, DONE, receive, ROLE } from './engines.ts';
import { contextOf, DIALECTS } from './support.ts';

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
