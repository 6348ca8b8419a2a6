import {
  chooseUpstream,
  DialectError,
  inspectRequest,
  PLAIN,
  quirksOf,
  requestFeatures,
  translateRequest,
  translateResponse,
  type Dialect,
  type Engine,
  type RequestFeatures,
} from '../../../../src/gateway/dialects/index.ts';
import { isObject } from '../../../../src/lib/json.ts';
import type { Sample } from './samples.ts';

export interface Server {
  name: string;
  engine: Engine;
  version: string;
  dialects: readonly Dialect[];
}

const ALL = ['chat', 'responses', 'messages'] as const;
export const SERVERS: readonly Server[] = [
  { name: 'vLLM 0.27', engine: 'vllm', version: '0.27.1', dialects: ALL },
  { name: 'SGLang 0.5.17', engine: 'sglang', version: '0.5.17', dialects: ALL },
  { name: 'llama.cpp b9000', engine: 'llama.cpp', version: 'b9000', dialects: ALL },
  { name: 'Ollama 0.32', engine: 'ollama', version: '0.32.15', dialects: ALL },
  { name: 'TGI 3.3', engine: 'tgi', version: '3.3.6', dialects: ['chat'] },
  { name: 'only messages', engine: 'unknown', version: '', dialects: ['messages'] },
  { name: 'only responses', engine: 'unknown', version: '', dialects: ['responses'] },
];

const MODEL = 'some-model';
const CONTEXT = 100_000;
const BASE: Record<Dialect, object> = {
  chat: { model: 'a', messages: [{ role: 'user', content: 'Hello' }] },
  responses: { model: 'a', input: 'Hello' },
  messages: { model: 'a', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 10 },
};
const STORED = new Map([['msg_1', [{ kind: 'text' as const, text: 'Said before', id: 'msg_1' }]]]);
const MESSAGE = { role: 'assistant', content: 'Hi', reasoning_content: 'Hm' };
const USAGE = { prompt_tokens: 1, completion_tokens: 1 };
const ANSWER = { id: 'c', choices: [{ index: 0, message: MESSAGE, finish_reason: 'stop' }], usage: USAGE };

/** A client's dialect, and a server that its calls go to. */
export interface Way {
  client: Dialect;
  server: Server;
}

/** How one field of a client fares at one server: how it goes there, or what becomes of it. */
export function fareOf(way: Way, field: string, sample: Sample): string {
  const base = BASE[way.client];
  const before = { ...base, ...sample.with, ...(sample.without !== undefined && { [field]: sample.without }) };
  return fare(way, field, { before, after: { ...before, [field]: sample.value } });
}

/** The same for a block or an item of this type, which the sample's conversation has. */
export function fareOfPart(way: Way, type: string, sample: Sample): string {
  const field = way.client === 'responses' ? 'input' : 'messages';
  const before = { ...BASE[way.client], [field]: sample.without ?? withoutType(sample.value, type) };
  return fare(way, field, { before, after: { ...before, [field]: sample.value } });
}

type Body = Record<string, unknown>;

function fare({ client, server }: Way, field: string, { before, after }: { before: Body; after: Body }): string {
  const quirks = quirksOf(server.engine, server.version, MODEL);
  const choice = chooseUpstream(client, server.dialects, quirks, requestFeatures(client, after));
  if (choice === undefined) throw new Error('every server has a dialect');
  const options = { model: MODEL, quirks, references: STORED, contextLength: CONTEXT };
  const send = (body: Body): Body => translateRequest(client, choice.dialect, body, options);
  let sent: Body;
  try {
    inspectRequest(client, after);
    sent = send(after);
  } catch (error) {
    if (error instanceof DialectError) return 'refused';
    throw error;
  }
  if (choice.native && same(sent[field], after[field])) return 'native';
  const words = differences(send(before), sent);
  if (words.length > 0) return words.join(', ');
  if (!same(inspectRequest(client, before), inspectRequest(client, after))) return 'gateway';
  return same(answerTo(client, before), answerTo(client, after)) ? '**lost**' : 'in the answer';
}

/** How a field of an engine's chat answer fares on its way to a client of another dialect. */
export function fareOfAnswer(client: Dialect, more: object): string {
  const context = { id: 'x', createdAt: 1, model: 'a', request: { ...BASE[client], stop_sequences: ['END'] } };
  const render = (answer: object): unknown => translateResponse('chat', client, answer, context).body;
  try {
    return same(render(ANSWER), render(withMore(more))) ? '**lost**' : 'told';
  } catch (error) {
    if (error instanceof DialectError) return 'an error';
    throw error;
  }
}

/** The answer with other fields in it, in its choice, or in the message of that. */
function withMore({ choice, message, ...rest }: { choice?: object; message?: object }): object {
  return { ...ANSWER, choices: [{ ...ANSWER.choices[0], ...choice, message: { ...MESSAGE, ...message } }], ...rest };
}

function answerTo(client: Dialect, request: object): unknown {
  return translateResponse('chat', client, ANSWER, { id: 'x', createdAt: 1, model: 'a', request }).body;
}

function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** What a server gets more or otherwise, by the names that its dialect has for it. */
function differences(before: Body, after: Body): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  const changed = [...names].filter((name) => !same(before[name], after[name]));
  return changed.flatMap((name) => {
    if (name !== 'messages' && name !== 'input') return [`\`${name}\``];
    const [old, now] = [countParts(before[name]), countParts(after[name])];
    const more = [...now].filter(([part, count]) => count > (old.get(part) ?? 0)).map(([part]) => part);
    if (more.length > 0) return more;
    return [lengthOf(after[name]) < lengthOf(before[name]) ? 'shortened' : 'text'];
  });
}

function lengthOf(value: unknown): number {
  return Array.isArray(value) ? value.length : 0;
}

/** How often each kind of part is in a conversation, and how long its texts are. */
function countParts(value: unknown, counts = new Map<string, number>()): Map<string, number> {
  const add = (name: string, count = 1): void => void counts.set(name, (counts.get(name) ?? 0) + count);
  if (Array.isArray(value)) for (const each of value) countParts(each, counts);
  if (!isObject(value)) return counts;
  if (value.role === 'tool') add('`tool` message');
  if (typeof value.type === 'string' && !/^(?:input_|output_)?text$|^function$|^message$/.test(value.type))
    add(`\`${value.type}\``);
  for (const [name, each] of Object.entries(value)) {
    if (name === 'tool_calls') add('`tool_calls`', (each as unknown[]).length);
    else if (name.startsWith('reasoning') && typeof each === 'string') add(`\`${name}\``, each.length);
    else if ((name === 'content' || name === 'text' || name === 'input') && typeof each === 'string')
      add('text', each.length);
    if (name === 'content' && value.role !== 'tool') countParts(each, counts);
  }
  return counts;
}

/** A conversation without the blocks or items of one type. */
function withoutType(value: unknown, type: string): unknown {
  const kept = (value as { type?: string; content?: unknown }[]).filter((each) => each.type !== type);
  return kept.flatMap((each) => {
    if (!Array.isArray(each.content)) return [each];
    const content = (each.content as { type?: string }[]).filter((block) => block.type !== type);
    return content.length === 0 ? [] : [{ ...each, content }];
  });
}

const WORDS: Record<keyof RequestFeatures, string> = {
  tools: 'tools',
  clientTools: 'tools that the gateway emulates (`custom`, `namespace`, `shell`, `bash_…`)',
  hostedTools: 'tools that OpenAI runs',
  toolHistory: 'calls and results in the history',
  thinking: '`thinking` or `reasoning`',
  redactedThinking: '`redacted_thinking`',
  disableParallel: '`disable_parallel_tool_use`',
  toolErrors: '`is_error`',
  documents: 'documents and search results',
  vendorHistory: 'calls that the vendor ran',
  truncates: '`truncation: auto`',
  files: '`input_file`',
  stopSequences: '`stop_sequences`',
  structured: 'a JSON schema',
  midSystem: 'system messages amid the conversation',
  compacts: '`compaction_trigger`',
};

/** Features that a request of each dialect can have. */
const FEATURES: Record<Dialect, readonly (keyof RequestFeatures)[]> = {
  chat: ['tools'],
  responses: [
    'tools',
    'clientTools',
    'hostedTools',
    'toolHistory',
    'thinking',
    'vendorHistory',
    'truncates',
    'files',
    'structured',
  ],
  messages: [
    'tools',
    'clientTools',
    'toolHistory',
    'thinking',
    'redactedThinking',
    'disableParallel',
    'toolErrors',
    'documents',
    'vendorHistory',
    'stopSequences',
    'structured',
    'midSystem',
  ],
};

/** Whether calls of a dialect pass through to a server, and with which features they do not. */
export function routeOf(client: Dialect, { engine, version, dialects }: Server): string {
  const quirks = quirksOf(engine, version, MODEL);
  const isNative = (features: RequestFeatures): boolean =>
    chooseUpstream(client, dialects, quirks, features)?.native === true;
  const to = chooseUpstream(client, dialects, quirks, PLAIN)?.dialect;
  if (!isNative(PLAIN)) return `as ${to}`;
  const not = FEATURES[client].filter((feature) => !isNative({ ...PLAIN, [feature]: true }));
  return not.length === 0 ? 'native' : `native; as chat with ${not.map((feature) => WORDS[feature]).join(', ')}`;
}
