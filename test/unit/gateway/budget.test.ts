import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { BudgetStatus } from '../../../src/resources/tenants/budget.ts';
import { CALLER, post, startGateway, type TestGateway } from '../../support/model-gateway.ts';
import { type ScriptedEngine, startEngine } from '../../support/scripted-engine.ts';

const MESSAGES = [{ role: 'user' as const, content: 'Say hello' }];
const BODIES = {
  'chat/completions': { messages: MESSAGES },
  responses: { input: 'Say hello' },
  messages: { messages: MESSAGES, max_tokens: 50 },
  embeddings: { input: 'hello' },
} as const;
const PATHS = Object.keys(BODIES) as (keyof typeof BODIES)[];

function status(...lines: [unit: string, max: string, spent: string][]): BudgetStatus {
  const counted = {
    month: '2026-11',
    renewsAt: '2026-12-01T00:00:00.000Z',
    at: '2026-11-23T00:00:00.000Z',
    percent: 0,
  };
  return { ...counted, lines: lines.map(([unit, max, spent]) => ({ unit, max, spent })) };
}

const SPENT = status(['USD', '500.00', '500.01']);

let gateway: TestGateway;
let engine: ScriptedEngine;
/** Of the caller's tenant. */
let budget: BudgetStatus | undefined;

beforeAll(async () => {
  engine = await startEngine({});
  gateway = await startGateway(undefined, {
    budgets: (tenant) => (tenant === CALLER.namespace ? budget : undefined),
    keyBudgets: ({ name }) => (name === 'spender' ? SPENT : undefined),
  });
  gateway.cluster.serve({ name: 'tiny-server', ports: [engine.port] });
  await gateway.ready('tiny');
});
afterAll(async () => {
  await gateway.close();
  await engine.close();
});
beforeEach(() => {
  budget = SPENT;
  gateway.callAs(CALLER);
});

it.each(PATHS)('%s: a spent budget is refused in the words of the dialect, and no engine is asked', async (path) => {
  const before = engine.received.length;
  const refused = await post(gateway, path, { ...BODIES[path], model: 'tiny' });
  const { error } = (await refused.json()) as { error: Record<string, unknown> };
  const message = expect.stringMatching(
    /^The budget of this tenant for 2026-11 is spent: 500\.01 of 500\.00 USD\. .*2026-12-01.* The operator can change budget in/,
  ) as string;
  if (path === 'messages') {
    expect(refused.status).toBe(402);
    expect(error).toEqual({ type: 'billing_error', message });
  } else {
    expect(refused.status).toBe(429);
    expect(error).toEqual({ type: 'insufficient_quota', code: 'insufficient_quota', param: null, message });
  }
  expect(refused.headers.get('x-should-retry')).toBe('false');
  expect(engine.received.length).toBe(before);
});

it('the clients of OpenAI and Anthropic ask once', async () => {
  let calls = 0;
  const counted: typeof fetch = (...call) => {
    calls += 1;
    return fetch(...call);
  };
  const openai = new OpenAI({ baseURL: `${gateway.base}/v1`, apiKey: 'k', fetch: counted });
  await expect(openai.chat.completions.create({ model: 'tiny', messages: MESSAGES })).rejects.toMatchObject({
    status: 429,
    code: 'insufficient_quota',
  });
  const anthropic = new Anthropic({ baseURL: gateway.base, apiKey: 'k', fetch: counted });
  const wanted = { model: 'tiny', messages: MESSAGES, max_tokens: 50 };
  await expect(anthropic.messages.create(wanted)).rejects.toMatchObject({ status: 402 });
  expect(calls).toBe(2);
});

it('a key whose own budget is spent is refused, and other keys of the tenant are not', async () => {
  budget = undefined;
  gateway.callAs({ ...CALLER, name: 'spender' });
  const refused = await post(gateway, 'chat/completions', { messages: MESSAGES, model: 'tiny' });
  expect(refused.status).toBe(429);
  expect(await refused.text()).toMatch(
    /The budget of APIKey spender for 2026-11 is spent: .* An administrator of the tenant can change limits\.budget in APIKey spender\./,
  );
  gateway.callAs(CALLER);
  expect((await post(gateway, 'chat/completions', { messages: MESSAGES, model: 'tiny' })).status).toBe(200);
});

it('another tenant, and a tenant with something left, are served', async () => {
  gateway.callAs({ ...CALLER, namespace: 'neighbour' });
  expect((await post(gateway, 'chat/completions', { messages: MESSAGES, model: 'tiny' })).status).toBe(200);
  gateway.callAs(CALLER);
  budget = status(['USD', '500.00', '499.99']);
  expect((await post(gateway, 'chat/completions', { messages: MESSAGES, model: 'tiny' })).status).toBe(200);
});
