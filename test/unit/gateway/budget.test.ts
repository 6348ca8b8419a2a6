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

function pricedIn(currency: string): Record<string, string> {
  return { 'berth.dev/price-input': '1.00', 'berth.dev/price-output': '1.00', 'berth.dev/price-currency': currency };
}

let gateway: TestGateway;
let engine: ScriptedEngine;
/** Serves a model that is priced in EUR, one that is free, and one that costs nothing by its price. */
let others: ScriptedEngine[];
/** Of the caller's tenant. */
let budget: BudgetStatus | undefined;

beforeAll(async () => {
  const embeddings = { contentType: 'application/json', body: '{"object":"list","data":[]}' };
  engine = await startEngine({ plain: { '/v1/embeddings': embeddings } });
  gateway = await startGateway(undefined, {
    budgets: (tenant) => (tenant === CALLER.namespace ? budget : undefined),
    keyBudgets: ({ name }) => (name === 'spender' ? SPENT : undefined),
  });
  gateway.cluster.serve({ name: 'tiny-server', annotations: pricedIn('USD'), ports: [engine.port] });
  await gateway.ready('tiny');
  const annotations = {
    euro: pricedIn('EUR'),
    free: {},
    nothing: { ...pricedIn('USD'), 'berth.dev/price-input': '0', 'berth.dev/price-output': '0.00' },
  };
  others = await Promise.all(
    Object.entries(annotations).map(async ([name, own]) => {
      const other = await startEngine({ models: [name] });
      gateway.cluster.serve({ name, annotations: own, ports: [other.port] });
      await gateway.ready(name);
      return other;
    }),
  );
});
afterAll(async () => {
  await gateway.close();
  for (const one of [engine, ...others]) await one.close();
});

function chat(model: string): Promise<Response> {
  return post(gateway, 'chat/completions', { messages: MESSAGES, model });
}
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

it('a budget in one currency refuses a call that is priced in another, the first one too, and nothing else', async () => {
  budget = status(['USD', '500.00', '1.00']);
  const refused = await chat('euro');
  expect([refused.status, await refused.text()]).toEqual([
    429,
    expect.stringContaining('The budget of this tenant for 2026-11 is spent: 0.00 of 0.00 EUR.'),
  ]);
  expect((await chat('tiny')).status).toBe(200);
  // What was spent of another currency before the budget was set.
  budget = status(['EUR', '0.00', '0.002'], ['USD', '500.00', '1.00']);
  for (const model of ['tiny', 'free', 'nothing']) expect((await chat(model)).status).toBe(200);
});

it('a spent budget refuses no call that is free, and hours of GPUs concern none', async () => {
  for (const model of ['free', 'nothing']) expect((await chat(model)).status).toBe(200);
  budget = status(['GPU-hours', '4.00', '4.00']);
  for (const model of ['tiny', 'euro']) expect((await chat(model)).status).toBe(200);
});

it('a budget of nothing refuses the first call, before anybody has counted', async () => {
  budget = undefined;
  gateway.callAs({ ...CALLER, limits: { budget: { costs: [{ currency: 'USD', max: '0' }] } } });
  const refused = await chat('tiny');
  expect([refused.status, await refused.text()]).toEqual([429, expect.stringContaining('0.00 of 0.00 USD')]);
  expect((await chat('free')).status).toBe(200);
});

it.each([
  ['messages/count_tokens', 402],
  ['responses/input_tokens', 429],
] as const)('%s asks no model server that costs something for a caller whose budget is spent', async (path, code) => {
  const asked = engine.probes.length + engine.received.length;
  const count = (model: string) => post(gateway, path, { model, messages: MESSAGES, input: 'Say hello' });
  expect((await count('tiny')).status).toBe(code);
  expect(engine.probes.length + engine.received.length).toBe(asked);
  expect((await count('free')).status).toBe(200);
});

it('another tenant, and a tenant with something left, are served', async () => {
  gateway.callAs({ ...CALLER, namespace: 'neighbour' });
  expect((await post(gateway, 'chat/completions', { messages: MESSAGES, model: 'tiny' })).status).toBe(200);
  gateway.callAs(CALLER);
  budget = status(['USD', '500.00', '499.99']);
  expect((await post(gateway, 'chat/completions', { messages: MESSAGES, model: 'tiny' })).status).toBe(200);
});
