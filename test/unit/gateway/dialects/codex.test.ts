/** What Codex sends to an engine with chat alone, and gets back. */
import { describe, expect, it } from 'vitest';
import {
  chooseUpstream,
  quirksOf,
  requestFeatures,
  StreamTranslator,
  translateRequest,
  translateResponse,
} from '../../../../src/gateway/dialects/index.ts';
import { callDelta, chunk, DONE, ROLE } from './engines.ts';
import { readEvents } from './sse.ts';
import { at, contextOf, DIALECTS, VLLM } from './support.ts';

type Body = Record<string, unknown>;

const parameters = { type: 'object', properties: {} };
const exec = { type: 'custom', name: 'exec', description: 'Runs JavaScript' };
const wait = { type: 'function', name: 'wait', parameters };
const user = { role: 'user', content: 'go' };
const REGISTRY = {
  type: 'additional_tools',
  role: 'developer',
  tools: [{ type: 'namespace', name: 'functions', description: 'x', tools: [exec, wait] }],
};
const SEARCH = { type: 'tool_search', execution: 'client', description: 'Finds tools', parameters };
const FOUND = { type: 'namespace', name: 'mcp__db', tools: [{ type: 'function', name: 'read', description: 'Reads' }] };

const sent = (body: Body): Body =>
  translateRequest('responses', 'chat', { model: 'm', ...body }, { model: 'u', quirks: VLLM });
const names = (chat: Body): unknown[] => ((chat.tools ?? []) as object[]).map((tool) => at(tool, 'function.name'));

function answered(request: Body, name: string, args: string, history: Parameters<typeof contextOf>[1] = []) {
  const call = { id: 'c1', type: 'function', function: { name, arguments: args } };
  const message = { role: 'assistant', content: null, tool_calls: [call] };
  const body = { id: 'x', choices: [{ index: 0, message, finish_reason: 'tool_calls' }] };
  const { body: answer } = translateResponse('chat', 'responses', body, contextOf(request, history));
  const translator = new StreamTranslator('chat', 'responses', contextOf(request, history));
  const stream = [ROLE, chunk(callDelta(0, { id: 'c1', name, arguments: args })), chunk({}, 'tool_calls'), DONE];
  const events = eventsOf(translator.push(Buffer.from(stream.join(''))) + translator.end());
  const done = events.find(({ type }) => type === 'response.output_item.done');
  const item = at(answer, 'output.0');
  // The stream says the same, and nothing of the call before its end that a client would take for a part of a function.
  expect(done?.item).toEqual(JSON.parse(JSON.stringify(item)));
  return { item, types: events.map(({ type }) => type) };
}

function eventsOf(stream: string): { type: string; item?: unknown }[] {
  const all = readEvents(stream).filter(({ data }) => data !== '[DONE]');
  return all.map(({ data }) => JSON.parse(data) as { type: string });
}

describe('tools in the conversation', () => {
  const request = { input: [REGISTRY, user], tools: [] };

  it('are offered like all others, and called by the names of their declaration', () => {
    expect(names(sent(request))).toEqual(['functions__exec', 'functions__wait']);
    expect(answered(request, 'functions__exec', '{"input":"1"}').item).toMatchObject({
      type: 'custom_tool_call',
      namespace: 'functions',
      name: 'exec',
      input: '1',
    });
    expect(answered(request, 'functions__wait', '{}').item).toMatchObject({
      type: 'function_call',
      namespace: 'functions',
      name: 'wait',
    });
  });

  it('count from a stored conversation, too', () => {
    const history = [{ kind: 'tools' as const, tools: REGISTRY.tools }];
    const chat = translateRequest(
      'responses',
      'chat',
      { model: 'm', input: 'go' },
      { model: 'u', quirks: VLLM, history },
    );
    expect(names(chat)).toEqual(['functions__exec', 'functions__wait']);
    expect(answered({ input: 'go' }, 'functions__exec', '{"input":"1"}', history).item).toMatchObject({ name: 'exec' });
  });

  it('may be declared anew, and the last declaration counts', () => {
    const anew = { ...REGISTRY, tools: [{ ...FOUND, tools: [{ ...wait, description: 'old' }] }, wait] };
    const again = { ...anew, tools: [{ ...FOUND, tools: [{ ...wait, description: 'new' }] }] };
    const chat = sent({ input: [anew, again, user], tools: [wait] });
    expect(names(chat)).toEqual(['wait', 'mcp__db__wait']);
    expect(at(chat, 'tools.1.function.description')).toBe('new');
  });

  it.each(DIALECTS)('make a call that goes over chat where %s is there, too', (dialect) => {
    const choice = chooseUpstream(
      'responses',
      ['chat', dialect],
      quirksOf('unknown', '', 'm'),
      requestFeatures('responses', request),
    );
    expect(choice?.dialect).toBe('chat');
  });
});

describe('two tools of one name', () => {
  const twin = { type: 'function', name: 'mcp__read', parameters };
  const inside = { type: 'namespace', name: 'mcp', tools: [{ type: 'function', name: 'read', parameters }] };

  it.each([
    ['in a namespace and beside it', { input: 'x', tools: [twin, inside] }],
    ['in an item and beside it', { input: [{ ...REGISTRY, tools: [inside] }, user], tools: [twin] }],
    ['in one list', { input: 'x', tools: [twin, { ...twin, description: 'another' }] }],
    ['of which OpenAI defines one', { input: 'x', tools: [{ type: 'shell' }, { ...twin, name: 'shell' }] }],
  ])('are refused: %s', (_where, body) => {
    expect(() => sent(body)).toThrow(expect.objectContaining({ status: 400, param: 'tools' }));
  });

  it('are one when they are the same', () => {
    expect(names(sent({ input: 'x', tools: [twin, twin] }))).toEqual(['mcp__read']);
  });

  it.each(['chat', 'messages'] as const)('are refused in %s', (from) => {
    const make = (description: string) =>
      from === 'chat'
        ? { type: 'function', function: { name: 'f', description } }
        : { name: 'f', description, input_schema: parameters };
    const body = { model: 'm', max_tokens: 5, messages: [user], tools: [make('a'), make('b')] };
    const to = from === 'chat' ? 'messages' : 'chat';
    expect(() => translateRequest(from, to, body, { model: 'u', quirks: VLLM })).toThrow(/name of its own/);
  });
});

describe('a search for tools that the client runs', () => {
  const request = { input: 'x', tools: [SEARCH] };

  it('is a function, and its call an item of its own', () => {
    expect(at(sent(request), 'tools.0.function')).toMatchObject({ name: 'tool_search', description: 'Finds tools' });
    const { item, types } = answered(request, 'tool_search', '{"query":"db","limit":9223372036854775807}');
    expect(JSON.stringify(item)).toContain('"arguments":{"query":"db","limit":9223372036854775807}');
    expect(item).toMatchObject({ type: 'tool_search_call', execution: 'client', call_id: 'c1', status: 'completed' });
    expect(types.filter((type) => type.includes('delta') || type.includes('arguments'))).toEqual([]);
  });

  it('finds tools that can be called from then on', () => {
    const found = [
      { type: 'tool_search_call', id: 't', call_id: 'c1', execution: 'client', arguments: { query: 'db' } },
      { type: 'tool_search_output', call_id: 'c1', execution: 'client', tools: [FOUND] },
    ];
    const next = { input: [user, ...found], tools: [SEARCH] };
    const chat = sent(next);
    expect(names(chat)).toEqual(['tool_search', 'mcp__db__read']);
    expect(at(chat, 'messages.1.tool_calls.0.function')).toEqual({ name: 'tool_search', arguments: '{"query":"db"}' });
    expect(at(chat, 'messages.2.content')).toContain('mcp__db__read: Reads');
    expect(answered(next, 'mcp__db__read', '{}').item).toMatchObject({ namespace: 'mcp__db', name: 'read' });
  });

  it('is left out where OpenAI runs it, with all that it could find on offer', () => {
    const deferred = { ...wait, defer_loading: true };
    expect(names(sent({ input: 'x', tools: [{ type: 'tool_search' }, deferred] }))).toEqual(['wait']);
  });
});

describe('a search of the web', () => {
  it.each(['web_search', 'web_search_preview', 'web_search_2025_08_26'])(
    'is left out when nobody forces it: %s',
    (type) => {
      expect(names(sent({ input: 'x', tools: [{ type }, wait] }))).toEqual(['wait']);
      expect(sent({ input: 'x', tools: [{ type }] }).tools).toBeUndefined();
      expect(() => sent({ input: 'x', tools: [{ type }, wait], tool_choice: { type } })).toThrow(/not available here/);
      expect(() => sent({ input: 'x', tools: [{ type }], tool_choice: 'required' })).toThrow(type);
    },
  );

  it('is left out of messages beside other tools', () => {
    const search = { type: 'web_search_20250305', name: 'web_search' };
    const own = { name: 'f', input_schema: parameters };
    const ask = (tools: object[], more: object = {}): Body =>
      translateRequest(
        'messages',
        'chat',
        { model: 'm', max_tokens: 5, messages: [user], tools, ...more },
        { model: 'u', quirks: VLLM },
      );
    expect(names(ask([search, own]))).toEqual(['f']);
    expect(() => ask([search])).toThrow('web_search_20250305');
    expect(() => ask([search, own], { tool_choice: { type: 'tool', name: 'web_search' } })).toThrow(
      'web_search_20250305',
    );
  });
});

describe('a message of another agent', () => {
  const of = (content: unknown) => ({
    type: 'agent_message',
    id: 'm',
    author: '/root',
    recipient: '/root/worker',
    content,
  });

  it.each([
    ['a plain task', [{ type: 'encrypted_content', encrypted_content: 'count the files' }], /count the files/],
    ['a text', [{ type: 'input_text', text: 'done' }], /done/],
    ['text alone', 'done', /done/],
    [
      'a sealed task',
      [{ type: 'encrypted_content', encrypted_content: `gAAAAAB${'x'.repeat(100)}==` }],
      /cannot be read here/,
    ],
    ['nothing', null, /^Message from \/root to \/root\/worker:$/],
  ])('is one of the user, who says who wrote to whom: %s', (_what, content, text) => {
    const chat = sent({ input: [user, of(content), user] });
    const read = JSON.stringify(at(chat, 'messages.1.content'));
    expect(at(chat, 'messages.1.role')).toBe('user');
    expect(read).toContain('Message from /root to /root/worker:');
    const parts = at(chat, 'messages.1.content');
    expect(
      typeof parts === 'string' ? parts : (parts as { text: string }[]).map((part) => part.text).join('\n'),
    ).toMatch(text);
    expect(read).not.toContain('gAAAA');
  });
});

describe('tools that OpenAI defines and the client runs', () => {
  it.each([
    [
      'shell',
      '{"commands":["ls"],"timeout_ms":5}',
      'shell_call',
      { action: { commands: ['ls'], timeout_ms: 5, max_output_length: null } },
    ],
    [
      'local_shell',
      '{"command":["ls","-l"]}',
      'local_shell_call',
      { action: { type: 'exec', command: ['ls', '-l'], env: {} } },
    ],
    [
      'apply_patch',
      '{"type":"create_file","path":"a","diff":"+x"}',
      'apply_patch_call',
      { operation: { type: 'create_file', path: 'a', diff: '+x' } },
    ],
    [
      'apply_patch',
      '{"type":"delete_file","path":"a"}',
      'apply_patch_call',
      { operation: { type: 'delete_file', path: 'a' } },
    ],
    // What cannot be read runs nothing.
    ['shell', 'rm -rf /', 'shell_call', { action: { commands: [] } }],
  ])('%s is called by an item of its own: %s', (type, args, item, fields) => {
    const request = { input: 'x', tools: [{ type }] };
    expect(names(sent(request))).toEqual([type]);
    expect(answered(request, type, args).item).toMatchObject({ type: item, call_id: 'c1', ...fields });
  });

  it('may be chosen, and the only ones allowed', () => {
    const tools = [{ type: 'shell' }, { type: 'apply_patch' }, { type: 'namespace', name: 'n', tools: [wait] }];
    expect(at(sent({ input: 'x', tools, tool_choice: { type: 'shell' } }), 'tool_choice.function.name')).toBe('shell');
    const only = (...named: object[]) =>
      names(sent({ input: 'x', tools, tool_choice: { type: 'allowed_tools', mode: 'auto', tools: named } }));
    expect(only({ type: 'apply_patch' })).toEqual(['apply_patch']);
    expect(only({ type: 'namespace', name: 'n' })).toEqual(['n__wait']);
    const choice = { type: 'function', namespace: 'n', name: 'wait' };
    expect(at(sent({ input: 'x', tools, tool_choice: choice }), 'tool_choice.function.name')).toBe('n__wait');
  });

  it('are hosted in a container of OpenAI', () => {
    const tools = [{ type: 'shell', environment: { type: 'container_auto' } }];
    expect(() => sent({ input: 'x', tools })).toThrow(/runs at OpenAI/);
  });
});

describe('a conversation that is to be summed up', () => {
  const request = {
    input: [user, { type: 'compaction_trigger' }],
    tools: [wait],
    tool_choice: 'required',
    text: { format: { type: 'json_object' } },
  };
  const summary = { role: 'assistant', content: 'The task: count.' };
  const answer = { id: 'x', choices: [{ index: 0, message: summary, finish_reason: 'stop' }] };

  it('ends with a question to the model, which may call nothing', () => {
    const chat = sent(request);
    expect(at(chat, 'messages.1.content')).toMatch(/^Sum up this conversation/);
    expect([chat.tool_choice, chat.response_format]).toEqual(['none', undefined]);
  });

  it('is one item, which the next call has in the place of the conversation', () => {
    const { body } = translateResponse('chat', 'responses', answer, contextOf(request));
    const items = at(body, 'output') as { type: string; encrypted_content: string }[];
    expect(items.map(({ type }) => type)).toEqual(['compaction']);
    expect(at(body, 'store')).toBe(false);
    const chat = sent({ input: [items[0], user] });
    expect(at(chat, 'messages.0.content')).toBe('Summary of the conversation until here:\n\nThe task: count.');
  });

  it('is the same item in a stream', () => {
    const translator = new StreamTranslator('chat', 'responses', contextOf(request));
    const stream = [ROLE, chunk({ content: 'The task' }), chunk({ content: ': count.' }), chunk({}, 'stop'), DONE];
    const events = eventsOf(translator.push(Buffer.from(stream.join(''))) + translator.end());
    const { body } = translateResponse('chat', 'responses', answer, contextOf(request));
    expect(events.map(({ type }) => type)).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.output_item.done',
      'response.completed',
    ]);
    expect(at(events[3], 'item.encrypted_content')).toBe(at(body, 'output.0.encrypted_content'));
  });

  it('is asked for by the gateway itself, also of a server of responses', () => {
    const choice = chooseUpstream(
      'responses',
      ['responses'],
      quirksOf('unknown', '', 'm'),
      requestFeatures('responses', request),
    );
    expect(choice).toEqual({ dialect: 'responses', native: false });
    const body = translateRequest(
      'responses',
      'responses',
      { model: 'm', ...request },
      { model: 'u', quirks: quirksOf('unknown', '', 'm') },
    );
    expect(JSON.stringify(body)).not.toContain('compaction_trigger');
    expect(body.tool_choice).toBe('none');
  });

  it('says so where another provider did it', () => {
    const chat = sent({ input: [{ type: 'compaction', encrypted_content: 'c2VhbGVk' }, user] });
    expect(at(chat, 'messages.0.content')).toMatch(/summed up by another provider/);
  });
});
