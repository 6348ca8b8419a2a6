import { describe, expect, it } from 'vitest';
import {
  checkMessages,
  estimateTokens,
  inspectRequest,
  translateRequest,
} from '../../../../src/gateway/dialects/index.ts';
import { promptPrefix } from '../../../../src/gateway/dialects/inspect/inspect-request.ts';
import { at, DIALECTS, VLLM, WEATHER } from './support.ts';

const NONCE = 'x-anthropic-billing-header: cc_version=2.1.0; cch=';
const claude = (nonce: string, extra: object[] = []) => ({
  model: 'm',
  max_tokens: 5,
  system: [
    { type: 'text', text: `${NONCE}${nonce};` },
    { type: 'text', text: 'You help.', cache_control: { type: 'ephemeral' } },
  ],
  tools: [{ name: 'weather', input_schema: WEATHER }],
  messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }, ...extra],
});

describe('the routing prefix', () => {
  it('is the same in every dialect', () => {
    const chat = {
      messages: [
        { role: 'system', content: 'You help.' },
        { role: 'user', content: 'hi' },
      ],
      tools: [{ type: 'function', function: { name: 'weather' } }],
    };
    const responses = { instructions: 'You help.', input: 'hi', tools: [{ type: 'function', name: 'weather' }] };
    const expected = ['You help.', 'weather', 'hi'];
    expect(promptPrefix('chat', chat)).toEqual(expected);
    expect(promptPrefix('responses', responses)).toEqual(expected);
    expect(promptPrefix('messages', claude('1'))).toEqual(expected);
  });

  it('does not change with the billing line, nor as the conversation grows', () => {
    const first = inspectRequest('messages', claude('aaa')).promptPrefix;
    const later = [
      { role: 'assistant', content: 'hello' },
      { role: 'user', content: 'more' },
    ];
    expect(inspectRequest('messages', claude('bbb', later)).promptPrefix).toEqual(first);
  });

  it('of a continued response is the one of its chain', () => {
    const history = [
      { kind: 'message' as const, role: 'user' as const, parts: [{ type: 'text' as const, text: 'hi' }] },
    ];
    expect(promptPrefix('responses', { input: 'more' }, history)).toEqual(promptPrefix('responses', { input: 'hi' }));
  });
});

describe('the billing line', () => {
  it('does not reach a backend in any form', () => {
    for (const to of ['messages', 'chat'] as const) {
      const sent = translateRequest('messages', to, claude('aaa'), { model: 'u', quirks: VLLM });
      expect(JSON.stringify(sent)).not.toContain('cch=');
    }
    const line = { ...claude('x'), system: `${NONCE}zzz\nYou help.` };
    expect(at(translateRequest('messages', 'messages', line, { model: 'u', quirks: VLLM }), 'system')).toBe(
      'You help.',
    );
  });
});

describe('session hints', () => {
  it.each([
    ['chat', { prompt_cache_key: 'k1' }, 'k1'],
    ['responses', { prompt_cache_key: 'k2' }, 'k2'],
    ['messages', { metadata: { user_id: 'user_ab_account_cd_session_1b2c-3d' } }, '1b2c-3d'],
    ['messages', { metadata: { user_id: '{"device_id":"d","session_id":"s9"}' } }, 's9'],
    ['messages', { metadata: { user_id: 'plain' } }, undefined],
  ] as const)('%s %j', (dialect, extra, expected) => {
    const body = { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'x' }], input: 'x', ...extra };
    expect(inspectRequest(dialect, body).sessionHint).toBe(expected);
  });
});

describe('inspectRequest', () => {
  it('finds what routing needs', () => {
    const body = {
      model: 'm',
      stream: true,
      previous_response_id: 'resp_1',
      max_output_tokens: 9,
      input: [{ type: 'item_reference', id: 'msg_1' }],
    };
    expect(inspectRequest('responses', body)).toMatchObject({
      model: 'm',
      stream: true,
      store: true,
      previousResponseId: 'resp_1',
      itemReferences: ['msg_1'],
      wantsUsage: false,
    });
    const chat = { model: 'm', messages: [{ role: 'user', content: 'x' }], stream_options: { include_usage: true } };
    expect(inspectRequest('chat', chat)).toMatchObject({ stream: false, store: false, wantsUsage: true });
  });

  it.each([
    ['chat', null, null],
    ['chat', [], null],
    ['chat', {}, 'model'],
    ['chat', { model: '' }, 'model'],
    ['chat', { model: 'm' }, 'messages'],
    ['chat', { model: 'm', messages: 'hi' }, 'messages'],
    ['chat', { model: 'm', messages: [] }, 'messages'],
    ['chat', { model: 'm', messages: [3] }, 'messages[0]'],
    ['chat', { model: 'm', messages: [{}] }, 'messages[0].role'],
    ['chat', { model: 'm', stream: 'yes', messages: [{ role: 'user' }] }, 'stream'],
    ['messages', { model: 'm', messages: [{ role: 'user', content: 'x' }] }, 'max_tokens'],
    ['responses', { model: 'm' }, 'input'],
    ['responses', { model: 'm', input: 3 }, 'input'],
  ] as const)('refuses %s %j', (dialect, body, param) => {
    expect(() => inspectRequest(dialect, body)).toThrow(
      expect.objectContaining({ name: 'DialectError', status: 400, param }),
    );
  });

  it('accepts nulls, which official clients send for fields that are not set', () => {
    const body = {
      model: 'm',
      max_tokens: 1,
      stream: null,
      tools: null,
      tool_choice: null,
      stop: null,
      stream_options: null,
    };
    const filled = { ...body, messages: [{ role: 'user', content: 'x' }], input: 'x', instructions: null, text: null };
    for (const from of DIALECTS) {
      expect(inspectRequest(from, filled).stream).toBe(false);
      for (const to of DIALECTS) translateRequest(from, to, filled, { model: 'u', quirks: VLLM });
    }
  });
});

describe('the estimate of a prompt', () => {
  it('needs no limit, but messages', () => {
    expect(() => checkMessages({ model: 'm', messages: [{ role: 'user', content: 'x' }] })).not.toThrow();
    expect(() => checkMessages({ model: 'm' })).toThrow(expect.objectContaining({ status: 400, param: 'messages' }));
  });

  it('grows with text, tools and images and is about right for English', () => {
    const words = 'The quick brown fox jumps over the lazy dog. '.repeat(100);
    const tokens = estimateTokens('chat', { messages: [{ role: 'user', content: words }] });
    // 1001 tokens with the o200k vocabulary.
    expect(tokens).toBeGreaterThan(800);
    expect(tokens).toBeLessThan(1300);
    const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(100_000)}` } };
    expect(estimateTokens('chat', { messages: [{ role: 'user', content: [image] }] })).toBeLessThan(3000);
    expect(estimateTokens('messages', claude('1'))).toBeGreaterThan(20);
    expect(estimateTokens('chat', { messages: [{ role: 'user', content: '你好世界'.repeat(100) }] })).toBeGreaterThan(
      200,
    );
  });
});
