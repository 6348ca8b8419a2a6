import { afterAll, beforeAll, expect, it } from 'vitest';
import { Standings } from '../../../src/gateway/limits/standings.ts';
import { CALLER, gatewayTo, post, type TestGateway } from '../../support/model-gateway.ts';
import type { ScriptedEngine } from '../../support/scripted-engine.ts';

let gateway: TestGateway;
let engine: ScriptedEngine;
let close: () => Promise<void>;
beforeAll(async () => {
  const started = await gatewayTo({ dialects: ['chat'], countTokens: true });
  ({ gateway, close } = started);
  engine = started.engines[0] as ScriptedEngine;
});
afterAll(() => close());

const messages = [{ role: 'user', content: 'x'.repeat(400) }];
const body = (stream: boolean) => ({ model: 'tiny', max_tokens: 5, messages, stream });
let keys = 0;

/** A key of its own for each test, whose minute begins with its first call. */
function callWith(limits: object): void {
  gateway.callAs({ ...CALLER, keyId: `limited-${(keys += 1)}`, limits });
}

it.each([false, true])('OpenAI’s clients get what is left of the minute, stream %s', async (stream) => {
  callWith({ requestsPerMinute: 10, tokensPerMinute: 1000 });
  engine.behave({ kind: 'answer', reply: { text: 'Hi', inputTokens: 100, outputTokens: 10 } });
  const first = await post(gateway, 'chat/completions', body(stream));
  await first.text();
  const estimate = Math.ceil(JSON.stringify(body(stream)).length / 4);
  expect(Object.fromEntries(first.headers)).toMatchObject({
    'x-ratelimit-limit-requests': '10',
    'x-ratelimit-remaining-requests': '9',
    'x-ratelimit-limit-tokens': '1000',
    // The prompt is set aside until its real usage is known.
    'x-ratelimit-remaining-tokens': String(1000 - estimate),
  });
  const reset = /^([\d.]+)s$/.exec(first.headers.get('x-ratelimit-reset-requests') ?? '')?.[1];
  expect(Number(reset)).toBeGreaterThan(0);
  expect(Number(reset)).toBeLessThanOrEqual(60);
  const second = await post(gateway, 'chat/completions', body(stream));
  await second.text();
  expect(second.headers.get('x-ratelimit-remaining-requests')).toBe('8');
  expect(second.headers.get('x-ratelimit-remaining-tokens')).toBe(String(1000 - 110 - estimate));
});

it('Anthropic’s clients get theirs, also with token counts', async () => {
  callWith({ requestsPerMinute: 10, tokensPerMinute: 1000 });
  for (const [path, remaining] of [
    ['messages', '9'],
    ['messages/count_tokens', '8'],
  ] as const) {
    const answer = await post(gateway, path, body(false));
    await answer.text();
    expect(answer.headers.get('anthropic-ratelimit-requests-limit')).toBe('10');
    expect(answer.headers.get('anthropic-ratelimit-requests-remaining')).toBe(remaining);
    const reset = answer.headers.get('anthropic-ratelimit-requests-reset') ?? '';
    expect(reset).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    expect(Date.parse(reset)).toBeGreaterThan(Date.now());
    expect([...answer.headers.keys()].filter((name) => name.startsWith('x-ratelimit'))).toEqual([]);
  }
});

it.each(['requestsPerMinute', 'tokensPerMinute'])('a refusal by %s says when to come again', async (limit) => {
  callWith({ [limit]: 1 });
  await (await post(gateway, 'chat/completions', body(false))).text();
  const refused = await post(gateway, 'chat/completions', body(false));
  expect(refused.status).toBe(429);
  const kind = limit === 'requestsPerMinute' ? 'requests' : 'tokens';
  expect(refused.headers.get(`x-ratelimit-remaining-${kind}`)).toBe('0');
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
});

it('a caller without limits per minute gets none', async () => {
  gateway.callAs(CALLER);
  const answer = await post(gateway, 'chat/completions', body(false));
  expect([...answer.headers.keys()].join()).not.toContain('ratelimit');
});

it('the tightest of the limits of key and tenant counts', () => {
  const standings = new Standings();
  standings.note('requests', { max: 100, total: 10, resetMs: 30_000 });
  standings.note('requests', { max: 50, total: 55, resetMs: 1200 });
  standings.note('requests', { max: 10, total: 1, resetMs: 60_000 });
  expect(standings.headers('chat', 0)).toEqual({
    'x-ratelimit-limit-requests': '50',
    'x-ratelimit-remaining-requests': '0',
    'x-ratelimit-reset-requests': '1.2s',
  });
  expect(standings.headers('messages', 500)['anthropic-ratelimit-requests-reset']).toBe('1970-01-01T00:00:02Z');
});
