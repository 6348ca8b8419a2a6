/** What Gemini's chat servers seal for a call, and want back with it. */
import { describe, expect, it } from 'vitest';
import {
  PassThroughObserver,
  quirksOf,
  StreamTranslator,
  translateRequest,
  translateResponse,
  wholeAsChunks,
  type Dialect,
  type HistoryItem,
} from '../../../../src/gateway/dialects/index.ts';
import { sse } from './engines.ts';
import { readEvents } from './sse.ts';
import { at, contextOf, VLLM } from './support.ts';

const GEMINI = quirksOf('unknown', undefined, 'gemini-3');
const QUESTION = { role: 'user', content: 'q' };

interface Asked {
  id: string;
  signature?: string;
}

function callOf({ id, signature }: Asked, index: number): object {
  return {
    index,
    id,
    type: 'function',
    ...(signature !== undefined && { extra_content: { google: { thought_signature: signature } } }),
    function: { name: `f${index}`, arguments: '{}' },
  };
}

function wholeOf(calls: readonly Asked[]): object {
  const message = { role: 'assistant', content: 'Let me see.', tool_calls: calls.map(callOf) };
  return { choices: [{ index: 0, finish_reason: 'tool_calls', message }] };
}

function streamOf(calls: readonly Asked[]): string {
  const chunk = (delta: object, finish: string | null = null): string =>
    sse({ choices: [{ index: 0, delta, finish_reason: finish }] });
  const told = calls.map((call, index) => chunk({ tool_calls: [callOf(call, index)] }));
  return `${chunk({ role: 'assistant', content: 'Let me see.' })}${told.join('')}${chunk({}, 'tool_calls')}data: [DONE]\n\n`;
}

const context = (upstreamModel = 'gemini-3') => ({ ...contextOf({ store: false }), upstreamModel });

/** The content or output that a client gets, in one piece and as the events of a stream have it. */
const FORMS: Record<string, (client: 'messages' | 'responses', calls: readonly Asked[], by?: string) => object[]> = {
  whole: (client, calls, by) => {
    const { body } = translateResponse('chat', client, wholeOf(calls), context(by));
    return at(body, client === 'messages' ? 'content' : 'output') as object[];
  },
  streamed: (client, calls, by) => {
    const translator = new StreamTranslator('chat', client, context(by));
    const text = translator.push(Buffer.from(streamOf(calls))) + translator.end();
    const events = readEvents(text).map(({ data }) => (data === '[DONE]' ? {} : (JSON.parse(data) as object)));
    const start = client === 'messages' ? 'content_block_start' : 'response.output_item.done';
    const found = events.filter((event) => at(event, 'type') === start);
    return found.map((event) => ({ ...(at(event, client === 'messages' ? 'content_block' : 'item') as object) }));
  },
  'a whole answer for a stream': (client, calls, by) => {
    const translator = new StreamTranslator('chat', client, context(by));
    const events = readEvents(translator.whole(wholeOf(calls))).map(({ data }) =>
      data === '[DONE]' ? {} : (JSON.parse(data) as object),
    );
    const start = client === 'messages' ? 'content_block_start' : 'response.output_item.done';
    const found = events.filter((event) => at(event, 'type') === start);
    return found.map((event) => ({ ...(at(event, client === 'messages' ? 'content_block' : 'item') as object) }));
  },
};

/** The next turn, in which the client sends back what it got. */
function nextTurn(client: 'messages' | 'responses', got: readonly object[]): object {
  const ids = got.flatMap((item) => {
    const id = client === 'messages' ? at(item, 'id') : at(item, 'call_id');
    return typeof id === 'string' && ['tool_use', 'function_call'].includes(String(at(item, 'type'))) ? [id] : [];
  });
  if (client === 'responses')
    return {
      input: [
        { type: 'message', ...QUESTION },
        ...got,
        ...ids.map((id) => ({ type: 'function_call_output', call_id: id, output: 'r' })),
      ],
    };
  const results = ids.map((id) => ({ type: 'tool_result', tool_use_id: id, content: 'r' }));
  const content = got.map((block) => (at(block, 'type') === 'text' ? { ...block, text: 'Let me see.' } : block));
  return { max_tokens: 9, messages: [QUESTION, { role: 'assistant', content }, { role: 'user', content: results }] };
}

function sent(client: Dialect, to: Dialect, body: object, options: object = {}): Record<string, unknown> {
  const server = { model: 'gemini-3', quirks: GEMINI, ...options };
  return translateRequest(client, to, { model: 'alias', ...body }, server);
}

function signaturesIn(body: object): unknown[] {
  return (at(body, 'messages.1.tool_calls') as object[]).map((call) => at(call, 'extra_content'));
}

const google = (data: string): object => ({ google: { thought_signature: data } });
const ONE: Asked[] = [{ id: 'a', signature: 'SIG-A' }];

describe.each(Object.keys(FORMS))('the signature of a call, %s', (form) => {
  const answer = FORMS[form] as (typeof FORMS)[string];

  describe.each(['messages', 'responses'] as const)('through a client of %s', (client) => {
    it.each<[string, Asked[], unknown[]]>([
      ['one call', ONE, [google('SIG-A')]],
      ['parallel calls, signed on the first', [...ONE, { id: 'b' }], [google('SIG-A'), undefined]],
      ['each signed', [...ONE, { id: 'b', signature: 'SIG-B' }], [google('SIG-A'), google('SIG-B')]],
      ['the second signed', [{ id: 'a' }, { id: 'b', signature: 'SIG-B' }], [undefined, google('SIG-B')]],
      ['calls without ids', [{ id: '', signature: 'SIG-A' }], [google('SIG-A')]],
      ['none signed', [{ id: 'a' }], [undefined]],
      ['an empty one', [{ id: 'a', signature: '' }], [undefined]],
      ['one that is too long', [{ id: 'a', signature: 'x'.repeat(65_537) }], [undefined]],
    ])('comes back to its server: %s', (_what, calls, expected) => {
      const got = answer(client, calls);
      expect(JSON.stringify(got)).not.toContain('SIG-');
      expect(signaturesIn(sent(client, 'chat', nextTurn(client, got)))).toEqual(expected);
    });

    it('goes to no server of another model, and to no engine', () => {
      const turn = nextTurn(client, answer(client, ONE));
      for (const options of [{ model: 'gpt-6' }, { quirks: VLLM }])
        expect(JSON.stringify(sent(client, 'chat', turn, options))).not.toMatch(/extra_content|SIG|berth1/);
      for (const to of ['messages', 'responses'] as const)
        // No call with such a block goes to an engine in messages.
        for (const quirks of client === to && to === 'messages' ? [GEMINI] : [GEMINI, VLLM])
          expect(JSON.stringify(sent(client, to, turn, { quirks }))).not.toMatch(
            /extra_content|SIG|"berth1|"type":"reasoning"/,
          );
    });

    it('of another model takes that of no other call', () => {
      const [foreign, own] = ['gpt-6', 'gemini-3'].map((by) => answer(client, ONE, by));
      const turn = nextTurn(client, [...(foreign ?? []), ...(own ?? [])]);
      expect(signaturesIn(sent(client, 'chat', turn))).toEqual([undefined, google('SIG-A')]);
    });

    it('says nothing of the name that the server has for the model', () => {
      const sealed = JSON.stringify(answer(client, ONE)).matchAll(/berth1\.([\w-]+)/g);
      const texts = [...sealed].map(([, data = '']) => Buffer.from(data, 'base64url').toString());
      expect(texts.join(' ')).toContain('SIG-A');
      expect(texts.join(' ')).not.toContain('gemini');
    });
  });
});

it('a signature comes back out of a stored conversation', () => {
  const { items } = translateResponse('chat', 'responses', wholeOf(ONE), context());
  const stored = JSON.parse(JSON.stringify(items)) as HistoryItem[];
  const question = { kind: 'message', role: 'user', parts: [{ type: 'text', text: 'q' }] };
  const input = [{ type: 'function_call_output', call_id: 'a', output: 'r' }];
  const body = sent('responses', 'chat', { input }, { history: [question, ...stored] });
  expect(signaturesIn(body)).toEqual([google('SIG-A')]);
});

it('a client that wants one call gets the signature of that one', () => {
  const request = { tool_choice: { type: 'auto', disable_parallel_tool_use: true } };
  const both: Asked[] = [...ONE, { id: 'b', signature: 'SIG-B' }];
  const one = { ...contextOf(request), upstreamModel: 'gemini-3' };
  const translator = new StreamTranslator('chat', 'messages', one);
  const stream = translator.push(Buffer.from(streamOf(both))) + translator.end();
  const whole = JSON.stringify(translateResponse('chat', 'messages', wholeOf(both), one).body);
  for (const text of [stream, whole]) expect(text.match(/berth1\./g)).toHaveLength(1);
});

it('what a client of chat sends and gets stays as it is', () => {
  const messages = [QUESTION, at(wholeOf(ONE), 'choices.0.message'), { role: 'tool', tool_call_id: 'a', content: 'r' }];
  expect(sent('chat', 'chat', { messages }).messages).toBe(messages);
  const stream = streamOf(ONE);
  const observer = new PassThroughObserver('chat', { hideUsage: false });
  expect(Buffer.from(observer.push(Buffer.from(stream)) ?? []).toString()).toBe(stream);
  expect(wholeAsChunks(wholeOf(ONE))).toContain(JSON.stringify(google('SIG-A')));
});

it.each([
  // OpenRouter wants it back.
  { reasoning_details: [{ type: 'reasoning.encrypted', data: 'SEALED' }] },
  { function_call: { name: 'f', arguments: '{}' } },
  { annotations: [{ type: 'url_citation', url_citation: { url: 'https://example.org' } }] },
])('a whole answer for a stream of a client of chat keeps what no translation knows: %j', (member) => {
  const answer = {
    choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Hi', ...member } }],
  };
  expect(wholeAsChunks(answer)).toContain(JSON.stringify(member).slice(1, -1));
  const [name = ''] = Object.keys(member);
  for (const none of [null, []]) {
    const plain = { choices: [{ index: 0, message: { role: 'assistant', content: 'Hi', [name]: none } }] };
    expect(wholeAsChunks(plain)).toBeUndefined();
  }
});

it.each([{}, { g: 'x' }, { g: 1, b: 'x' }, { g: 'x'.repeat(65_537), b: 'x' }, { g: 'x', b: 'forged' }])(
  'a seal that a client made up is none: %j',
  (payload) => {
    const data = `berth1.${Buffer.from(JSON.stringify({ t: '', ...payload })).toString('base64url')}`;
    const blocks = [
      { type: 'redacted_thinking', data },
      { type: 'tool_use', id: 'a', name: 'f', input: {} },
    ];
    expect(signaturesIn(sent('messages', 'chat', nextTurn('messages', blocks)))).toEqual([undefined]);
  },
);
