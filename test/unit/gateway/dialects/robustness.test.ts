import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  PassThroughObserver,
  StreamTranslator,
  DialectError,
  inspectRequest,
  observeBody,
  readUpstreamError,
  requestFeatures,
  translateRequest,
  translateResponse,
} from '../../../../src/gateway/dialects/index.ts';
import { chunk, DONE, ROLE, translate } from './engines.ts';
import { contextOf, DIALECTS, VLLM } from './support.ts';

/** Objects whose keys and values are those of the dialects, in the wrong places. */
const KEYS = [
  'type',
  'role',
  'content',
  'messages',
  'input',
  'tools',
  'tool_calls',
  'function',
  'index',
  'delta',
  'choices',
  'item',
  'output',
  'usage',
  'error',
  'message',
  'content_block',
  'response',
  'name',
  'arguments',
  'id',
  'text',
  'thinking',
  'system',
  'tool_choice',
  'source',
  'image_url',
  'call_id',
  'parameters',
  'input_schema',
  'stream_options',
  'reasoning',
];
const WORDS = [
  'function',
  'tool',
  'user',
  'assistant',
  'system',
  'text',
  'tool_use',
  'tool_result',
  'thinking',
  'message',
  'function_call',
  'reasoning',
  'message_start',
  'content_block_start',
  'content_block_delta',
  'text_delta',
  'message_delta',
  'input_json_delta',
  'response.completed',
  'response.output_item.added',
  'response.output_item.done',
  'image',
  'error',
  '',
];

const nonsense = fc.letrec((tie) => ({
  value: fc.oneof({ depthSize: 'small' }, tie('leaf'), tie('list'), tie('object')),
  leaf: fc.oneof(fc.constantFrom(...WORDS), fc.constantFrom(null, true, 0, -1, 1.5, 1e21), fc.string({ maxLength: 5 })),
  list: fc.array(tie('value'), { maxLength: 3 }),
  object: fc.dictionary(fc.constantFrom(...KEYS), tie('value'), { maxKeys: 5 }),
})).object;

function onlyDialectErrors(run: () => unknown): void {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(DialectError);
  }
}

describe.each(DIALECTS)('%s', (from) => {
  it('bodies of nonsense are refused by DialectErrors, never by a crash', () => {
    fc.assert(
      fc.property(nonsense, fc.constantFrom(...DIALECTS), (body, to) => {
        const whole = { model: 'm', max_tokens: 1, messages: [body], input: [body], ...(body as object) };
        onlyDialectErrors(() => inspectRequest(from, whole));
        requestFeatures(from, whole);
        onlyDialectErrors(() => translateRequest(from, to, whole, { model: 'm', quirks: VLLM, contextLength: 10 }));
        onlyDialectErrors(() => translateResponse(from, to, body, contextOf()));
        observeBody(from, Buffer.from(JSON.stringify(body)));
      }),
      { numRuns: 150 },
    );
  });

  it('streams of nonsense end as an answer or an error, never in a crash', () => {
    fc.assert(
      fc.property(fc.array(nonsense, { maxLength: 8 }), fc.constantFrom(...DIALECTS), (events, to) => {
        const machine = new StreamTranslator(from, to, contextOf({ messages: [{ role: 'user', content: 'x' }] }));
        const observer = new PassThroughObserver(from, { hideUsage: true });
        for (const event of events) {
          const bytes = Buffer.from(`data: ${JSON.stringify(event)}\n\n`);
          machine.push(bytes);
          observer.push(bytes);
        }
        machine.end();
        observer.end();
        expect(machine.finished).toBe(true);
      }),
      { numRuns: 150 },
    );
  });
});

describe('bytes', () => {
  it('that are no event at all change nothing', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const machine = new StreamTranslator('chat', 'messages', contextOf({ messages: [] }));
        machine.push(bytes);
        machine.end();
        expect(machine.finished).toBe(true);
        readUpstreamError(500, Buffer.from(bytes).toString());
      }),
    );
  });

  it('of comments, other fields and carriage returns between events are skipped', () => {
    const plain = ROLE + chunk({ content: 'hi' }) + chunk({}, 'stop') + DONE;
    const noisy = `: keep-alive\n\nid: 7\nretry: 10\n${plain.replaceAll('\n', '\r\n')}`;
    expect(translate('chat', 'messages', noisy)).toBe(translate('chat', 'messages', plain));
  });
});
