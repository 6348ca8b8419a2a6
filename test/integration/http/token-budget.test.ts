import { afterAll, beforeAll, expect, it } from 'vitest';
import { API_KEYS } from '../../../src/resources/api-key.ts';
import { parseMoney } from '../../../src/resources/money.ts';
import { TOKEN_RECORDS } from '../../../src/resources/token-record.ts';
import type { Call } from '../../support/http/client.ts';
import { type PricedModel, pricedModel } from '../../support/priced-model.ts';
import { waitFor } from '../../support/wait-for.ts';

const MODEL = 'Qwen/Qwen3-8B';
const PRICES = {
  'berth.dev/price-input': '1000.00',
  'berth.dev/price-output': '1000.00',
  'berth.dev/price-currency': 'EUR',
};
/** Of a call with a hundred tokens at these prices. */
const COST = parseMoney('0.10');
const BUDGET = { costs: [{ currency: 'EUR', max: '1.00' }] };
const CONNECTIONS = 25;

let world: PricedModel;
let tenant: PricedModel['tenant'];
let berths: PricedModel['berths'];
let key: PricedModel['key'];
let calls: PricedModel['calls'];

beforeAll(async () => {
  world = await pricedModel({
    model: MODEL,
    prices: PRICES,
    roles: ['controller', 'api', 'api'],
    key: { displayName: 'spender', scopes: ['models'], limits: { budget: BUDGET } },
  });
  ({ tenant, berths, key, calls } = world);
  world.engine.behave({ kind: 'answer', reply: { text: 'Hi', inputTokens: 80, outputTokens: 20 } });
});
afterAll(() => world[Symbol.asyncDispose]());

async function billed(): Promise<bigint> {
  const { items } = await tenant.client.list(TOKEN_RECORDS, { namespace: tenant.name });
  return items.reduce((sum, { spec }) => sum + parseMoney(spec.cost), 0n);
}

it(
  'fifty connections at two replicas spend the budget of a key, and no more than a call beyond it at each',
  { timeout: 300_000 },
  async () => {
    const body = { model: MODEL, max_tokens: 50, messages: [{ role: 'user', content: 'Hi' }] };
    const drain = async (call: Call): Promise<void> => {
      for (;;) {
        const { status, text } = await call('POST', '/chat/completions', body);
        if (text.includes('insufficient_quota')) return;
        expect([200, 429]).toContain(status);
      }
    };
    await Promise.all(calls.flatMap((call) => Array.from({ length: CONNECTIONS }, () => drain(call))));
    const most = parseMoney('1.00') + BigInt(calls.length) * COST;
    await waitFor('the records', async () => (await billed()) >= parseMoney('1.00'));
    // The last records are written when the replicas stop.
    await Promise.all(berths.splice(1).map((one) => one[Symbol.asyncDispose]()));
    expect(await billed()).toBeLessThanOrEqual(most);
    const counted = await waitFor('the count', async () => {
      const { status } = await tenant.client.get(API_KEYS, { namespace: tenant.name, name: key.name });
      return (status?.budget?.percent ?? 0) >= 100 ? status?.budget : undefined;
    });
    expect(counted?.tokensVersion).toMatch(/^\d+$/);
  },
);
