import type { BetaContentBlockParam, MessageCreateParams } from '@anthropic-ai/sdk/resources/beta/messages';
import type OpenAI from 'openai';

/** One value of a field. */
export interface Sample {
  /** Follows the name of the field where it has several parts that fare differently. */
  part?: string;
  value: unknown;
  /** Fields without which this one means nothing. */
  with?: object;
  /** What to compare it with, where that is not the body without the field, or the conversation without the block. */
  without?: unknown;
}

type ItemType = NonNullable<OpenAI.Responses.ResponseInputItem['type']>;

const one = (value: unknown, others: object = {}): Sample[] => [{ value, with: others }];
const parts = (values: Record<string, unknown>, others: object = {}): Sample[] =>
  Object.entries(values).map(([part, value]) => ({ part, value, with: others }));

const part = (name: string, [sample]: Sample[]): Sample => ({ value: undefined, ...sample, part: name });

/** More than the context. */
const TURNS = Array.from({ length: 300 }, (_, turn) => ({
  role: turn % 2 === 0 ? 'user' : 'assistant',
  content: 'word '.repeat(400),
}));
const schema = { type: 'object', properties: { city: { type: 'string' } } };
const IMAGE = 'https://images.example/a.png';
const named = { name: 'weather', description: 'Tells the weather.' };

const chatTools = [{ type: 'function', function: { ...named, parameters: schema } }];
export const CHAT = {
  audio: one({ voice: 'alloy', format: 'wav' }),
  frequency_penalty: one(0.5),
  function_call: one('auto'),
  functions: one([{ ...named, parameters: schema }]),
  logit_bias: one({ '50': -100 }),
  logprobs: one(true),
  max_completion_tokens: one(50),
  max_tokens: one(50),
  messages: one([{ role: 'user', content: 'Another question' }]),
  metadata: one({ a: 'b' }),
  modalities: one(['text', 'audio']),
  model: one('other'),
  moderation: one({ model: 'omni' }),
  n: one(2),
  parallel_tool_calls: one(false, { tools: chatTools }),
  prediction: one({ type: 'content', content: 'x' }),
  presence_penalty: one(0.5),
  prompt_cache_key: one('session-1'),
  prompt_cache_options: one({ mode: 'explicit' }),
  prompt_cache_retention: one('24h'),
  reasoning_effort: one('high'),
  response_format: one({ type: 'json_schema', json_schema: { name: 'x', schema } }),
  safety_identifier: one('user-1'),
  seed: one(7),
  service_tier: one('flex'),
  stop: one(['END']),
  store: one(true),
  stream: one(true),
  stream_options: one({ include_usage: true }, { stream: true }),
  temperature: one(0.5),
  tool_choice: one('required', { tools: chatTools }),
  tools: one(chatTools),
  top_logprobs: one(3, { logprobs: true }),
  top_p: one(0.5),
  user: one('user-1'),
  verbosity: one('low'),
  web_search_options: one({}),
} satisfies Record<keyof OpenAI.ChatCompletionCreateParams, Sample[]>;

const responsesTools = [{ type: 'function', ...named, parameters: schema }];
export const RESPONSES = {
  access_programs: one(['x']),
  background: one(true),
  context_management: one([{ type: 'compaction', compact_threshold: 1000 }]),
  conversation: one('conv_1'),
  image: one({ detail: 'low' }),
  include: parts({
    ' (`reasoning.encrypted_content`, which translated answers always have)': ['reasoning.encrypted_content'],
    ' (`message.output_text.logprobs`)': ['message.output_text.logprobs'],
  }),
  input: one('Another question'),
  instructions: one('Be brief.'),
  max_output_tokens: one(50),
  max_tool_calls: one(2, { tools: responsesTools }),
  metadata: one({ a: 'b' }),
  model: one('other'),
  moderation: one({ model: 'omni' }),
  parallel_tool_calls: one(false, { tools: responsesTools }),
  previous_response_id: one('resp_1'),
  prompt: one({ id: 'pmpt_1' }),
  prompt_cache_key: one('session-1'),
  prompt_cache_options: one({ mode: 'explicit' }),
  prompt_cache_retention: one('24h'),
  reasoning: parts({ '.effort': { effort: 'high' }, '.summary': { summary: 'auto' } }),
  safety_identifier: one('user-1'),
  service_tier: one('flex'),
  store: one(false),
  stream: one(true),
  stream_options: one({ include_obfuscation: false }, { stream: true }),
  temperature: one(0.5),
  text: parts({
    '.format': { format: { type: 'json_schema', name: 'x', schema } },
    '.verbosity': { verbosity: 'low' },
  }),
  tool_choice: one('required', { tools: responsesTools }),
  tools: parts({
    ' (functions)': responsesTools,
    ' (`custom`)': [{ type: 'custom', ...named }],
    ' (`namespace`)': [{ type: 'namespace', name: 'n', description: 'x', tools: responsesTools }],
    ' (`shell`, `local_shell`, `apply_patch`)': [{ type: 'shell' }],
    ' (`tool_search` that the client runs)': [{ type: 'tool_search', execution: 'client' }],
    ' (`web_search`)': [{ type: 'web_search' }],
    ' (`code_interpreter` and others that OpenAI runs)': [{ type: 'code_interpreter', container: { type: 'auto' } }],
    ' (`mcp`)': [{ type: 'mcp', server_label: 'x', server_url: 'https://mcp.example' }],
  }),
  top_logprobs: one(3),
  top_p: one(0.5),
  truncation: one('auto', { input: TURNS }),
  user: one('user-1'),
} satisfies Record<keyof OpenAI.Responses.ResponseCreateParams, Sample[]>;

const messagesTool = { ...named, input_schema: schema };
const messagesTools = { tools: [messagesTool] };
export const MESSAGES = {
  betas: one(['some-beta']),
  billing_policy: one('x'),
  cache_control: one({ type: 'ephemeral' }),
  compaction: one({ type: 'auto' }),
  container: one('container_1'),
  context_management: one({ edits: [{ type: 'clear_tool_uses_20250919' }] }),
  diagnostics: one({ previous_message_id: null }),
  fallback_credit_token: one('x'),
  fallbacks: one([{ model: 'other' }]),
  inference_geo: one('eu'),
  max_tokens: one(50),
  mcp_servers: one([{ type: 'url', name: 'x', url: 'https://mcp.example' }]),
  messages: one([{ role: 'user', content: 'Another question' }]),
  metadata: one({ user_id: 'user-1' }),
  model: one('other'),
  output_config: parts({ '.effort': { effort: 'high' }, '.format': { format: { type: 'json_schema', schema } } }),
  output_format: one({ type: 'json_schema', schema }),
  service_tier: one('standard_only'),
  speed: one('fast'),
  stop_sequences: one(['END']),
  stream: one(true),
  system: [
    { value: [{ type: 'text', text: 'Be brief.' }] },
    {
      part: '[].cache_control',
      value: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
      without: [{ type: 'text', text: 'Be brief.' }],
    },
  ],
  thinking: parts({ ' (enabled)': { type: 'enabled', budget_tokens: 2000 }, ' (disabled)': { type: 'disabled' } }),
  thread: one({ id: 'x' }),
  tool_choice: parts(
    {
      ' (`any`)': { type: 'any' },
      ' (`disable_parallel_tool_use`)': { type: 'auto', disable_parallel_tool_use: true },
    },
    messagesTools,
  ),
  tools: parts({
    ' (functions)': [messagesTool],
    ' (`bash_…`, `text_editor_…`, `memory_…`)': [{ type: 'bash_20250124', name: 'bash' }],
    ' (`web_search_…` and others that Anthropic runs)': [{ type: 'web_search_20250305', name: 'web_search' }],
  }),
  user_profile_id: one('x'),
  workspace_id: one('x'),
} satisfies Record<keyof MessageCreateParams, Sample[]>;

const call = { id: 'call_1', name: 'weather', input: { city: 'Oslo' } };
const asked = { type: 'tool_use', ...call };
const inUser = (...blocks: object[]): Sample[] =>
  one([{ role: 'user', content: [{ type: 'text', text: 'Hello' }, ...blocks] }]);
/** With what the client says after it. */
const inAssistant = (...blocks: object[]): Sample[] =>
  one([
    { role: 'user', content: 'Hello' },
    { role: 'assistant', content: [...blocks, { type: 'text', text: 'Well.' }] },
    { role: 'user', content: 'Go on' },
  ]);
const served = (type: string, content: unknown): Sample[] =>
  inAssistant(
    { type: 'server_tool_use', id: 'srv_1', name: type.replace('_tool_result', ''), input: { a: 1 } },
    { type, tool_use_id: 'srv_1', content },
  );
const text = { type: 'text', text: 'Some text' };
const answered = (more: object): object[] => [
  { role: 'user', content: 'Hello' },
  { role: 'assistant', content: [asked] },
  { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: 'Sun', ...more }] },
];

/** A block of each kind, in the place of the conversation where it belongs. */
export const BLOCKS = {
  advisor_tool_result: served('advisor_tool_result', { type: 'advisor_result', text: 'x' }),
  bash_code_execution_tool_result: served('bash_code_execution_tool_result', { stdout: 'x' }),
  code_execution_tool_result: served('code_execution_tool_result', { stdout: 'x' }),
  compaction: inAssistant({ type: 'compaction', content: 'What was said' }),
  container_upload: inUser({ type: 'container_upload', file_id: 'file_1' }),
  document: [
    part(' (text)', inUser({ type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'x' } })),
    part(
      ' (PDF)',
      inUser({ type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'eA==' } }),
    ),
  ],
  fallback: inAssistant({ type: 'fallback', from: { model: 'a' }, to: { model: 'b' } }),
  image: inUser({ type: 'image', source: { type: 'url', url: IMAGE } }),
  mcp_tool_listing: inAssistant({ type: 'mcp_tool_listing', server_name: 'x', tools: [] }),
  mcp_tool_result: inAssistant(
    { type: 'mcp_tool_use', id: 'm_1', name: 'x', server_name: 's', input: {} },
    { type: 'mcp_tool_result', tool_use_id: 'm_1', is_error: false, content: [text] },
  ),
  mcp_tool_use: inAssistant({ type: 'mcp_tool_use', id: 'm_1', name: 'x', server_name: 's', input: {} }),
  redacted_thinking: inAssistant({ type: 'redacted_thinking', data: 'c2VhbGVk' }),
  search_result: inUser({ type: 'search_result', source: 'https://a.example', title: 'A', content: [text] }),
  server_tool_use: inAssistant({ type: 'server_tool_use', id: 'srv_1', name: 'web_search', input: { query: 'x' } }),
  text: [
    { value: inUser(text)[0]?.value, without: inUser()[0]?.value },
    {
      part: ' with `cache_control`',
      value: inUser({ ...text, cache_control: { type: 'ephemeral' } })[0]?.value,
      without: inUser(text)[0]?.value,
    },
    {
      part: ' with `citations`',
      value: inAssistant({ ...text, citations: [{ type: 'char_location', cited_text: 'x', document_index: 0 }] })[0]
        ?.value,
      without: inAssistant(text)[0]?.value,
    },
  ],
  text_editor_code_execution_tool_result: served('text_editor_code_execution_tool_result', { type: 'x' }),
  thinking: inAssistant({ type: 'thinking', thinking: 'Hm', signature: 'c2lnbmVk' }),
  tool_addition: inUser({ type: 'tool_addition', tool: { type: 'tool_reference', name: 'x' } }),
  tool_removal: inUser({ type: 'tool_removal', tool: { type: 'tool_reference', name: 'x' } }),
  tool_result: [
    { value: answered({}) },
    { part: ' with `is_error`', value: answered({ is_error: true }), without: answered({}) },
    {
      part: ' with an image',
      value: answered({ content: [{ type: 'image', source: { type: 'url', url: IMAGE } }] }),
      without: answered({ content: [] }),
    },
    {
      part: ' with a `tool_reference`',
      value: answered({ content: [{ type: 'tool_reference', tool_name: 'x' }] }),
      without: answered({ content: [] }),
    },
  ],
  tool_search_tool_result: served('tool_search_tool_result', { type: 'x', tool_references: [] }),
  tool_use: inAssistant(asked),
  web_fetch_tool_result: served('web_fetch_tool_result', { type: 'x' }),
  web_search_tool_result: served('web_search_tool_result', [
    { type: 'web_search_result', title: 'A', url: 'https://a.example' },
  ]),
} satisfies Record<BetaContentBlockParam['type'], Sample[]>;

const hello = { role: 'user', content: 'Hello' };
const items = (...values: object[]): Sample[] => one([hello, ...values, { role: 'user', content: 'Go on' }]);
const said = (part: object): object => ({ type: 'message', role: 'user', content: [part] });
const output = { call_id: 'call_1', output: 'x' };
const shell = { type: 'exec', command: ['ls'], env: {} };

/** An item of each kind in the input. */
export const ITEMS = {
  additional_tools: items({ type: 'additional_tools', tools: responsesTools }),
  apply_patch_call: items({
    type: 'apply_patch_call',
    call_id: 'call_1',
    status: 'completed',
    operation: { type: 'delete_file', path: 'a' },
  }),
  apply_patch_call_output: items(
    { type: 'apply_patch_call', call_id: 'call_1', status: 'completed', operation: { type: 'delete_file', path: 'a' } },
    { type: 'apply_patch_call_output', ...output, status: 'completed' },
  ),
  code_interpreter_call: items({
    type: 'code_interpreter_call',
    id: 'ci_1',
    code: '1',
    container_id: 'c',
    outputs: [],
  }),
  compaction: items({ type: 'compaction', encrypted_content: 'c2VhbGVk' }),
  compaction_trigger: one([hello, { type: 'compaction_trigger' }]),
  computer_call: items({ type: 'computer_call', id: 'cu_1', call_id: 'call_1', action: { type: 'screenshot' } }),
  computer_call_output: items({
    type: 'computer_call_output',
    call_id: 'call_1',
    output: { type: 'computer_screenshot' },
  }),
  configuration_update: items({ type: 'configuration_update' }),
  custom_tool_call: items({ type: 'custom_tool_call', call_id: 'call_1', name: 'x', input: 'y' }),
  custom_tool_call_output: items(
    { type: 'custom_tool_call', call_id: 'call_1', name: 'x', input: 'y' },
    { type: 'custom_tool_call_output', ...output },
  ),
  file_search_call: items({ type: 'file_search_call', id: 'fs_1', queries: ['x'], status: 'completed' }),
  function_call: items({ type: 'function_call', call_id: 'call_1', name: 'x', arguments: '{}' }),
  function_call_output: items(
    { type: 'function_call', call_id: 'call_1', name: 'x', arguments: '{}' },
    { type: 'function_call_output', ...output },
  ),
  image_generation_call: items({ type: 'image_generation_call', id: 'ig_1', result: 'eA==', status: 'completed' }),
  item_reference: items({ type: 'item_reference', id: 'msg_1' }),
  local_shell_call: items({
    type: 'local_shell_call',
    id: 'ls_1',
    call_id: 'call_1',
    action: shell,
    status: 'completed',
  }),
  local_shell_call_output: items(
    { type: 'local_shell_call', id: 'ls_1', call_id: 'call_1', action: shell, status: 'completed' },
    { type: 'local_shell_call_output', id: 'call_1', output: 'x' },
  ),
  mcp_approval_request: items({
    type: 'mcp_approval_request',
    id: 'a_1',
    name: 'x',
    arguments: '{}',
    server_label: 's',
  }),
  mcp_approval_response: items({ type: 'mcp_approval_response', approval_request_id: 'a_1', approve: true }),
  mcp_call: items({ type: 'mcp_call', id: 'm_1', name: 'x', arguments: '{}', server_label: 's', output: 'y' }),
  mcp_list_tools: items({ type: 'mcp_list_tools', id: 'l_1', server_label: 's', tools: [] }),
  message: parts({
    '': [hello, said({ type: 'input_text', text: 'More' })],
    ' with `input_image`': [hello, said({ type: 'input_image', image_url: IMAGE, detail: 'low' })],
    ' with `input_file` (text)': [
      hello,
      said({ type: 'input_file', filename: 'a.txt', file_data: 'data:text/plain;base64,eA==' }),
    ],
    ' with `input_file` (`file_id`)': [hello, said({ type: 'input_file', file_id: 'file_1' })],
    ' with `input_audio`': [hello, said({ type: 'input_audio', input_audio: { data: 'eA==', format: 'wav' } })],
  }),
  program: items({ type: 'program', id: 'p_1', call_id: 'call_1', code: 'x', fingerprint: 'f' }),
  program_output: items({ type: 'program_output', id: 'p_2', call_id: 'call_1', result: 'x', status: 'completed' }),
  reasoning: items({ type: 'reasoning', id: 'rs_1', summary: [], content: [{ type: 'reasoning_text', text: 'Hm' }] }),
  shell_call: items({ type: 'shell_call', id: 'sh_1', call_id: 'call_1', action: { commands: ['ls'] } }),
  shell_call_output: items(
    { type: 'shell_call', id: 'sh_1', call_id: 'call_1', action: { commands: ['ls'] } },
    {
      type: 'shell_call_output',
      call_id: 'call_1',
      output: [{ stdout: 'x', stderr: '', outcome: { type: 'exit', exit_code: 0 } }],
    },
  ),
  tool_search_call: items({ type: 'tool_search_call', id: 't_1', arguments: {}, call_id: 'call_1' }),
  tool_search_output: items({ type: 'tool_search_output', id: 't_2', call_id: 'call_1', tools: [] }),
  web_search_call: items({
    type: 'web_search_call',
    id: 'ws_1',
    status: 'completed',
    action: { type: 'search', query: 'x' },
  }),
} satisfies Record<ItemType, Sample[]>;

/** What holds the others, and what the gateway writes itself. */
type Frame = 'choices' | 'created' | 'id' | 'index' | 'message' | 'model' | 'object' | 'role';

/** What an answer of chat may have, each in its place. */
export const ANSWERS = {
  annotations: { message: { annotations: [{ type: 'url_citation', url_citation: { url: IMAGE, title: 'A' } }] } },
  audio: { message: { audio: { id: 'a', data: 'eA==', expires_at: 1, transcript: 'Hi' } } },
  content: { message: { content: 'Other' } },
  finish_reason: { choice: { finish_reason: 'length' } },
  function_call: { message: { function_call: { name: 'weather', arguments: '{}' } } },
  logprobs: { choice: { logprobs: { content: [{ token: 'Hi', logprob: -1, bytes: null, top_logprobs: [] }] } } },
  metadata: { metadata: { a: 'b' } },
  moderation: { moderation: { results: [] } },
  reasoning: { message: { reasoning_content: undefined, reasoning: 'Other' } },
  reasoning_content: { message: { reasoning_content: 'Other' } },
  refusal: { message: { refusal: 'No.' } },
  service_tier: { service_tier: 'flex' },
  stop_reason: { choice: { stop_reason: 'END' } },
  system_fingerprint: { system_fingerprint: 'f' },
  tool_calls: {
    message: { tool_calls: [{ id: 'c', type: 'function', function: { name: 'weather', arguments: '{}' } }] },
  },
  usage: { usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } },
} satisfies Record<
  | Exclude<
      keyof OpenAI.ChatCompletion | keyof OpenAI.ChatCompletion.Choice | keyof OpenAI.ChatCompletionMessage,
      Frame
    >
  // Engines' own.
  | 'reasoning'
  | 'reasoning_content'
  | 'stop_reason',
  object
>;
