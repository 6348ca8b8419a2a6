/** What agents of today send and expect, that engines know nothing of. */
import { describe, expect, it } from 'vitest';
import {
  chooseUpstream,
  quirksOf,
  requestFeatures,
  StreamTranslator,
  translateRequest,
  type Dialect,
} from '../../../../src/gateway/dialects/index.ts';
import { callDelta, chunk, DONE, ROLE } from './engines.ts';
import { readEvents } from './sse.ts';
import { at, contextOf, DIALECTS } from './support.ts';

const HELLO = [{ role: 'user', content: 'hello' }];

function sent(from: Dialect, body: object, model = 'Qwen/Qwen3-8B', contextLength?: number): Record<string, unknown> {
  const quirks = quirksOf('vllm', '0.24.0', model);
  return translateRequest(from, 'chat', { model: 'm', ...body }, { model, quirks, contextLength });
}

function route(client: Dialect, engine: [string, string, string], body: object): string {
  return chooseUpstream(client, DIALECTS, quirksOf(...engine), requestFeatures(client, body))?.dialect ?? 'none';
}

describe('messages without thinking', () => {
  const body = { max_tokens: 5, messages: HELLO };
  const off = { enable_thinking: false, thinking: false };

  // Anthropic: extended thinking is off unless the request turns it on. Qwen3's card: enable_thinking is true by default.
  it.each([
    'Qwen/Qwen3-8B',
    'Qwen/Qwen3.5-35B-A3B',
    'zai-org/GLM-4.6',
    'HuggingFaceTB/SmolLM3-3B',
    'moonshotai/Kimi-K2.5',
    'nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-FP8',
  ])('switch it off where it is on unasked: %s', (model) => {
    expect(sent('messages', body, model).chat_template_kwargs).toEqual(off);
  });

  it.each([
    'Qwen/Qwen3-30B-A3B-Thinking-2507',
    'Qwen/Qwen3-Coder-30B-A3B-Instruct',
    'moonshotai/Kimi-K2-Thinking',
    'meta-llama/Llama-3.3-70B',
  ])('say nothing to a model without that switch: %s', (model) => {
    expect(sent('messages', body, model).chat_template_kwargs).toBeUndefined();
  });

  it('leave thinking on for those who ask, and alone in the other dialects', () => {
    const thinking = { type: 'enabled', budget_tokens: 1024 };
    expect(at(sent('messages', { ...body, thinking }), 'chat_template_kwargs.enable_thinking')).toBe(true);
    expect(sent('responses', { input: 'x' }).chat_template_kwargs).toBeUndefined();
  });

  it.each([
    ['vllm', '0.24.0', 'Qwen/Qwen3-8B', 'chat'],
    ['llama.cpp', 'b9000', 'Qwen3-8B-Q4_K_M.gguf', 'chat'],
    ['ollama', '0.32.15', 'qwen3:8b', 'chat'],
    ['vllm', '0.24.0', 'meta-llama/Llama-3.3-70B', 'messages'],
    ['unknown', '', 'Qwen/Qwen3-8B', 'messages'],
  ])('go where that can be said: %s %s with %s over %s', (engine, version, model, dialect) => {
    expect(route('messages', [engine, version, model], body)).toBe(dialect);
  });

  it('are off at Ollama by its own field', () => {
    const quirks = quirksOf('ollama', '0.32.15', 'qwen3:8b');
    const body = translateRequest(
      'messages',
      'chat',
      { model: 'm', max_tokens: 5, messages: HELLO },
      { model: 'q', quirks },
    );
    expect(body.reasoning_effort).toBe('none');
  });
});

describe('calls that Anthropic ran', () => {
  // jwadow/kiro-gateway#177: Claude Code replays them after a change of the model.
  const assistant = [
    { type: 'text', text: 'I search.' },
    { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'oslo' } },
    {
      type: 'web_search_tool_result',
      tool_use_id: 'srvtoolu_1',
      content: [{ type: 'web_search_result', title: 'Oslo', url: 'https://oslo.no', encrypted_content: 'SEALED' }],
    },
    { type: 'text', text: 'It rains.' },
  ];
  const body = (content: object[]) => ({
    max_tokens: 5,
    messages: [...HELLO, { role: 'assistant', content }, ...HELLO],
  });

  it('are calls and results like any other, without what is sealed', () => {
    const chat = sent('messages', body(assistant));
    const roles = (chat.messages as { role: string }[]).map(({ role }) => role);
    expect(roles).toEqual(['user', 'assistant', 'tool', 'assistant', 'user']);
    expect(at(chat, 'messages.1.tool_calls.0.function')).toEqual({ name: 'web_search', arguments: '{"query":"oslo"}' });
    expect(at(chat, 'messages.2')).toMatchObject({ tool_call_id: 'srvtoolu_1', content: 'Oslo (https://oslo.no)' });
    expect(JSON.stringify(chat)).not.toContain('SEALED');
    expect(route('messages', ['vllm', '0.24.0', 'm'], body(assistant))).toBe('chat');
  });

  it('have a result also when they paused, because templates refuse a call without one', () => {
    const chat = sent('messages', body(assistant.slice(0, 2)));
    expect(at(chat, 'messages.2')).toMatchObject({ role: 'tool', content: 'Error: The call gave no result.' });
  });

  it.each([
    [{ type: 'web_search_tool_result_error', error_code: 'max_uses_exceeded' }, 'max_uses_exceeded'],
    [[{ type: 'text', text: 'from MCP' }], 'from MCP'],
    [{ type: 'bash_code_execution_result', stdout: 'out', stderr: '', return_code: 0 }, '"stdout":"out"'],
  ])('have readable results: %j', (content, text) => {
    const call = { type: 'mcp_tool_use', id: 'c', name: 'f', server_name: 's', input: {} };
    const result = { type: 'mcp_tool_result', tool_use_id: 'c', content };
    expect(at(sent('messages', body([call, result])), 'messages.2.content')).toContain(text);
  });
});

describe('tools that Anthropic defines and the client runs', () => {
  it.each([
    ['bash_20250124', 'bash', ['command', 'restart']],
    ['text_editor_20250728', 'str_replace_based_edit_tool', ['command', 'path', 'insert_text']],
    ['text_editor_20250124', 'str_replace_editor', ['command', 'path', 'new_str']],
    ['memory_20250818', 'memory', ['command', 'old_path']],
  ])('%s is a function with its published schema', (type, name, fields) => {
    const body = { max_tokens: 5, messages: HELLO, tools: [{ type, name }] };
    const chat = sent('messages', body);
    expect(at(chat, 'tools.0.function.name')).toBe(name);
    expect(Object.keys(at(chat, 'tools.0.function.parameters.properties') as object)).toEqual(
      expect.arrayContaining(fields),
    );
    expect(route('messages', ['vllm', '0.24.0', 'm'], body)).toBe('chat');
  });

  it('take back an edit in the releases that could', () => {
    const commands = (type: string) =>
      at(
        sent('messages', { max_tokens: 5, messages: HELLO, tools: [{ type, name: 'e' }] }),
        'tools.0.function.parameters.properties.command.enum',
      );
    expect(commands('text_editor_20250124')).toContain('undo_edit');
    expect(commands('text_editor_20250728')).not.toContain('undo_edit');
  });

  it.each(['web_search_20250305', 'code_execution_20250825', 'computer_20250124'])('%s is refused by name', (type) => {
    expect(() => sent('messages', { max_tokens: 5, messages: HELLO, tools: [{ type, name: 'x' }] })).toThrow(type);
  });
});

describe('items of OpenAI’s own tools in the history', () => {
  // vllm-project/vllm#55974: a 500 there
  it.each([
    [
      [
        {
          type: 'local_shell_call',
          id: 'lsh_1',
          call_id: 'c',
          action: { type: 'exec', command: ['ls'], env: {} },
          status: 'completed',
        },
        { type: 'local_shell_call_output', id: 'c', output: 'a.txt' },
      ],
      'local_shell',
      'a.txt',
    ],
    [
      [
        { type: 'shell_call', call_id: 'c', action: { commands: ['ls'] }, status: 'completed' },
        {
          type: 'shell_call_output',
          call_id: 'c',
          output: [{ stdout: 'b.txt', stderr: '', outcome: { type: 'exit', exit_code: 0 } }],
        },
      ],
      'shell',
      'b.txt',
    ],
    [
      [
        { type: 'apply_patch_call', call_id: 'c', operation: { type: 'delete_file', path: 'x' }, status: 'completed' },
        { type: 'apply_patch_call_output', call_id: 'c', status: 'completed', output: 'done' },
      ],
      'apply_patch',
      'done',
    ],
    [
      [{ type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'x' } }],
      'web_search',
      'The results are not kept.',
    ],
    [
      [{ type: 'mcp_call', id: 'mcp_1', name: 'roll', arguments: '{"d":6}', output: '4', server_label: 's' }],
      'roll',
      '4',
    ],
  ])('are calls with results: %j', (items, name, output) => {
    const body = { input: [{ role: 'user', content: 'go' }, ...items, { role: 'user', content: 'so?' }] };
    const chat = sent('responses', body);
    expect(at(chat, 'messages.1.tool_calls.0.function.name')).toBe(name);
    expect(at(chat, 'messages.2')).toMatchObject({ role: 'tool', content: output });
    expect(route('responses', ['vllm', '0.24.0', 'openai/gpt-oss-20b'], body)).toBe('chat');
  });

  it.each([
    [{ type: 'file_search_call', id: 'fs', queries: ['x'], results: [{ filename: 'a.md', text: 'found' }] }, 'found'],
    [{ type: 'code_interpreter_call', id: 'ci', code: '1+1', outputs: [{ type: 'logs', logs: '2' }] }, '2'],
    [{ type: 'image_generation_call', id: 'ig', result: 'eA==' }, 'The image was shown to the user.'],
  ])('are one item with both, where OpenAI ran them: %j', (item, output) => {
    const chat = sent('responses', { input: [{ role: 'user', content: 'go' }, item] });
    expect(at(chat, 'messages.1.tool_calls.0.function.name')).toBe(item.type.replace('_call', ''));
    expect(at(chat, 'messages.2')).toMatchObject({ role: 'tool', content: expect.stringContaining(output) as string });
  });

  it.each(['mcp_list_tools', 'mcp_approval_request', 'mcp_approval_response', 'configuration_update'])(
    'are left out when they say nothing to another model: %s',
    (type) => {
      const chat = sent('responses', {
        input: [
          { type, id: 'i' },
          { role: 'user', content: 'go' },
        ],
      });
      expect(chat.messages).toEqual([{ role: 'user', content: 'go' }]);
    },
  );

  it('are refused by name when nobody knows them', () => {
    expect(() => sent('responses', { input: [{ type: 'new_call', id: 'i' }] })).toThrow("'new_call'");
  });
});

describe('input_file', () => {
  const file = (part: object) => ({ input: [{ role: 'user', content: [{ type: 'input_file', ...part }] }] });
  const data = (type: string, text: string) => `data:${type};base64,${Buffer.from(text).toString('base64')}`;

  it.each(['text/plain', 'text/markdown; charset=utf-8', 'application/json'])('of type %s is text', (type) => {
    const body = file({ filename: 'a.txt', file_data: data(type, 'grüß dich') });
    expect(at(sent('responses', body), 'messages.0.content')).toBe('a.txt:\ngrüß dich');
    expect(route('responses', ['vllm', '0.24.0', 'openai/gpt-oss-20b'], body)).toBe('chat');
  });

  it.each([
    [{ file_data: data('application/pdf', '%PDF') }, "Files of type 'application/pdf' are not supported"],
    [{ file_data: 'no data URL' }, 'base64 data URL'],
    [{ file_url: 'http://169.254.169.254/' }, 'does not fetch files'],
    [{ file_id: 'file-1' }, 'Uploaded files are not available'],
  ])('is refused with the reason: %j', (part, reason) => {
    expect(() => sent('responses', file(part))).toThrow(reason);
  });
});

describe('truncation: auto', () => {
  const long = 'word '.repeat(400);
  const input = [
    { role: 'developer', content: 'Be brief.' },
    { role: 'user', content: `first ${long}` },
    { type: 'function_call', call_id: 'old', name: 'f', arguments: '{}' },
    { type: 'function_call_output', call_id: 'old', output: long },
    { role: 'assistant', content: [{ type: 'output_text', text: 'second' }] },
    { role: 'user', content: 'last' },
    { type: 'function_call', call_id: 'new', name: 'f', arguments: '{}' },
    { type: 'function_call_output', call_id: 'new', output: 'x' },
  ];
  const texts = (truncation: string, room: number) =>
    JSON.stringify(sent('responses', { input, truncation, max_output_tokens: 100 }, 'm', room).messages);

  it('leaves out the oldest items, and a result with its call', () => {
    const kept = texts('auto', 600);
    expect(kept).toContain('Be brief.');
    expect(kept).not.toContain('first');
    expect(kept).not.toContain('old');
    expect(kept).toContain('last');
    expect(kept).toContain('new');
  });

  it('leaves out nothing that fits, and nothing unasked', () => {
    expect(texts('auto', 8000)).toContain('first');
    expect(texts('disabled', 600)).toContain('first');
  });

  it('goes where it is done', () => {
    const gpt: [string, string, string] = ['vllm', '0.24.0', 'openai/gpt-oss-20b'];
    expect(route('responses', gpt, { input: 'x', truncation: 'auto' })).toBe('chat');
    expect(route('responses', gpt, { input: 'x', truncation: 'disabled' })).toBe('responses');
  });
});

describe('the input of a custom tool', () => {
  const request = { input: 'x', tools: [{ type: 'custom', name: 'apply_patch' }] };

  /** The deltas of the input, for arguments that come in these fragments. */
  function deltas(fragments: readonly string[]): { parts: string[]; done: unknown } {
    const machine = new StreamTranslator('chat', 'responses', contextOf(request));
    const head = ROLE + chunk(callDelta(0, { id: 'c', name: 'apply_patch', arguments: '' }));
    let out = machine.push(Buffer.from(head));
    const before = out.length;
    for (const text of fragments) out += machine.push(Buffer.from(chunk(callDelta(0, { arguments: text }))));
    expect(out.length).toBeGreaterThanOrEqual(before);
    out += machine.push(Buffer.from(chunk({}, 'tool_calls') + DONE)) + machine.end();
    const events = readEvents(out).filter(({ data }) => data !== '[DONE]');
    const bodies = events.map(({ data }) => JSON.parse(data) as object);
    const of = (type: string) =>
      bodies.filter((body) => at(body, 'type') === `response.custom_tool_call_input.${type}`);
    return { parts: of('delta').map((body) => String(at(body, 'delta'))), done: at(of('done')[0], 'input') };
  }

  it('comes as it is written', () => {
    const { parts, done } = deltas(['{"inp', 'ut": "*** Begin', ' Patch\\n', '+x"', '}']);
    expect(parts).toEqual(['*** Begin', ' Patch\n', '+x']);
    expect(done).toBe('*** Begin Patch\n+x');
  });

  it.each(['plain "quoted" text', 'back\\slash \\u0041 \\', 'emoji 😀 and ü\u0000', '', 'line\r\nline\ttab'])(
    'is whole however it is cut: %j',
    (input) => {
      const escaped = [JSON.stringify({ input }), `{ "input" : ${asciiJson(input)} }`];
      for (const text of escaped)
        for (let size = 1; size < text.length; size += 1) {
          const { parts, done } = deltas(text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []);
          expect(parts.join('')).toBe(input);
          expect(done).toBe(input);
        }
    },
  );

  it.each(['not JSON at all', '{"other":"x"}', '{"input":5}', '{"input":"cut'])(
    'comes at the end when it is not as agreed: %s',
    (text) => {
      const { parts, done } = deltas(text.split(''));
      expect(done).toBe(text);
      // What was read of it before is the start of nothing else.
      if (!text.startsWith('{"input":"')) expect(parts.join('')).toBe(text);
    },
  );
});

/** JSON of a string in ASCII, with escapes for everything else, as Python writes it. */
function asciiJson(text: string): string {
  return JSON.stringify(text).replaceAll(
    /[^\x20-\x7e]/g,
    (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
