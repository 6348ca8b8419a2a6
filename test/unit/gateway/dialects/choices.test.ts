/** Which tool the model is to call: done, or refused by the name of the field, and never forgotten. */
import { describe, expect, it } from 'vitest';
import { quirksOf, translateRequest, type Dialect } from '../../../../src/gateway/dialects/index.ts';
import { at, VLLM } from './support.ts';

const OTHER = quirksOf('unknown', undefined, 'm');
const ASK = { messages: [{ role: 'user', content: 'q' }], input: 'q', max_tokens: 9 };

function sent(from: Dialect, to: Dialect, body: object, quirks = OTHER): Record<string, unknown> {
  return translateRequest(from, to, { model: 'm', ...ASK, ...body }, { model: 'u', quirks });
}

const schema = { type: 'object', properties: {} };
const TOOLS: Record<Dialect, object> = {
  chat: { type: 'function', function: { name: 'f', parameters: schema } },
  responses: { type: 'function', name: 'f', parameters: schema },
  messages: { name: 'f', input_schema: schema },
};
const OTHERS: [Dialect, Dialect][] = [
  ['chat', 'messages'],
  ['responses', 'chat'],
  ['messages', 'chat'],
];

describe('a choice that forces a call', () => {
  const forced: Record<Dialect, unknown> = { chat: 'required', responses: 'required', messages: { type: 'any' } };
  const named: Record<Dialect, (name: string) => object> = {
    chat: (name) => ({ type: 'function', function: { name } }),
    responses: (name) => ({ type: 'function', name }),
    messages: (name) => ({ type: 'tool', name }),
  };

  it.each(OTHERS)('is refused without a tool: %s to %s', (from, to) => {
    for (const tool_choice of [forced[from], named[from]('f')])
      expect(() => sent(from, to, { tool_choice })).toThrow(
        expect.objectContaining({ status: 400, param: 'tool_choice' }),
      );
    expect(sent(from, to, { tool_choice: from === 'messages' ? { type: 'auto' } : 'auto' })).not.toHaveProperty(
      'tools',
    );
  });

  it.each(OTHERS)('is refused where it names a tool that is not offered: %s to %s', (from, to) => {
    const tools = [TOOLS[from]];
    expect(() => sent(from, to, { tools, tool_choice: named[from]('g') })).toThrow(
      expect.objectContaining({ status: 400, param: 'tool_choice' }),
    );
    expect(at(sent(from, to, { tools, tool_choice: named[from]('f') }), 'tools')).toHaveLength(1);
  });

  it('may leave out the namespace of a tool, like the tools that are allowed', () => {
    const tools = [{ type: 'namespace', name: 'n', tools: [TOOLS.responses, { type: 'custom', name: 'raw' }] }];
    const chosen = (tool_choice: object) => at(sent('responses', 'chat', { tools, tool_choice }, VLLM), 'tool_choice');
    expect(chosen({ type: 'function', name: 'f' })).toMatchObject({ function: { name: 'n__f' } });
    expect(chosen({ type: 'custom', name: 'raw' })).toMatchObject({ function: { name: 'n__raw' } });
  });

  it('is refused where it may mean tools of two namespaces', () => {
    const tools = ['n', 'm'].map((name) => ({ type: 'namespace', name, tools: [TOOLS.responses] }));
    const tool_choice = { type: 'function', name: 'f' };
    expect(() => sent('responses', 'chat', { tools, tool_choice })).toThrow("'tool_choice'");
  });

  it.each(['any', 5, ['any']])('is refused in messages where it is no object: %j', (tool_choice) => {
    const send = () => sent('messages', 'chat', { tools: [TOOLS.messages], tool_choice });
    expect(send).toThrow(expect.objectContaining({ status: 400, param: 'tool_choice' }));
  });
});

describe('tools that are allowed', () => {
  const choices: [Dialect, Dialect, string, (tools: unknown) => object][] = [
    [
      'chat',
      'messages',
      'tool_choice.allowed_tools.tools',
      (tools) => ({ allowed_tools: { mode: 'required', tools } }),
    ],
    ['responses', 'chat', 'tool_choice.tools', (tools) => ({ mode: 'required', tools })],
  ];

  it.each(choices)('are read in one way: %s to %s', (from, to, path, choice) => {
    const allow = (...tools: unknown[]) =>
      sent(from, to, { tools: [TOOLS[from]], tool_choice: { type: 'allowed_tools', ...choice(tools) } }, VLLM);
    const refused = (param: string) => expect.objectContaining({ status: 400, param }) as Error;
    expect(at(allow(TOOLS[from]), 'tools')).toHaveLength(1);
    expect(() => allow(TOOLS[from], 'f')).toThrow(refused(`${path}[1]`));
    expect(() => allow({ type: 'function' })).toThrow(refused(`${path}[0].name`));
    expect(() => allow({ type: 'function', name: 'g' })).toThrow(refused(path));
    expect(() => allow()).toThrow(refused(path));
    const tool_choice = { type: 'allowed_tools', ...choice('f') };
    expect(() => sent(from, to, { tools: [TOOLS[from]], tool_choice }, VLLM)).toThrow(refused(path));
  });

  it('may all run at OpenAI, where none is forced', () => {
    const choice = (mode: string) => ({ type: 'allowed_tools', mode, tools: [{ type: 'web_search' }] });
    const tools = [{ type: 'web_search' }, TOOLS.responses];
    expect(sent('responses', 'chat', { tools, tool_choice: choice('auto') }, VLLM)).not.toHaveProperty('tools');
    expect(() => sent('responses', 'chat', { tools, tool_choice: choice('required') }, VLLM)).toThrow('tool_choice');
  });
});

describe('a field of another shape than the published one', () => {
  it.each<[Dialect, Dialect, string, object]>([
    ['messages', 'chat', 'stop_sequences', { stop_sequences: 'END' }],
    ['messages', 'chat', 'output_config', { output_config: 'low' }],
    ['messages', 'chat', 'output_config.format', { output_config: { format: 'json' } }],
    ['messages', 'chat', 'thinking', { thinking: true }],
    ['chat', 'messages', 'response_format', { response_format: 'json_object' }],
    ['responses', 'chat', 'text', { text: 'json_object' }],
    ['responses', 'chat', 'text.format', { text: { format: 'json_object' } }],
    ['responses', 'chat', 'reasoning', { reasoning: 'low' }],
  ])('is refused by its name: %s to %s, %s', (from, to, param, body) => {
    expect(() => sent(from, to, body, VLLM)).toThrow(expect.objectContaining({ status: 400, param }));
  });

  it.each<[Dialect, Dialect, object]>([
    ['messages', 'chat', { stop_sequences: null, output_config: null, thinking: null, tool_choice: null }],
    ['chat', 'messages', { response_format: null }],
    ['responses', 'chat', { text: null, reasoning: null, tool_choice: null }],
  ])('is none where it is null: %s to %s', (from, to, body) => {
    expect(sent(from, to, body, VLLM)).toBeDefined();
  });
});
