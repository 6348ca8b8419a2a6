import { afterAll, beforeAll, expect, it } from 'vitest';
import { runCli } from '../../../src/cli/main.ts';
import { createSession } from '../../../src/cli/session.ts';
import { usageSchema } from '../../../src/http/features/usage/schema.ts';
import { InvalidError } from '../../../src/kube/errors.ts';
import { formatMoney, parseMoney } from '../../../src/resources/money.ts';
import { TOKEN_RECORDS, type TokenRecord } from '../../../src/resources/token-record.ts';
import { type PricedModel, pricedModel } from '../../support/priced-model.ts';
import { waitFor } from '../../support/wait-for.ts';

const MODEL = 'Qwen/Qwen3-8B';
const PRICES = {
  'berth.dev/price-input': '0.333333',
  'berth.dev/price-cached-input': '0.05',
  'berth.dev/price-output': '1.10',
  'berth.dev/price-currency': 'EUR',
};
const CALLS = 3;

let world: PricedModel;
let tenant: PricedModel['tenant'];
let berths: PricedModel['berths'];
let key: PricedModel['key'];
let calls: PricedModel['calls'];

beforeAll(async () => {
  world = await pricedModel({
    model: MODEL,
    prices: PRICES,
    roles: ['api', 'api'],
    key: { displayName: 'tokens', scopes: ['models', 'compute:read'] },
  });
  ({ tenant, berths, key, calls } = world);
  world.engine.behave({ kind: 'answer', reply: { text: 'Hi', inputTokens: 101, outputTokens: 13, cachedTokens: 40 } });
});
afterAll(() => world[Symbol.asyncDispose]());

async function records(): Promise<TokenRecord[]> {
  const { items } = await tenant.client.list(TOKEN_RECORDS, { namespace: tenant.name });
  return items;
}

/** What the command line prints. */
async function printed(...words: string[]): Promise<string> {
  let out = '';
  const none = (): Promise<string> => Promise.resolve('');
  const columns = { out: undefined, say: undefined };
  const terminal = { interactive: false, screen: false, colour: false, columns, ask: none, secret: none, input: none };
  const session = createSession(
    { BERTH_URL: berths[0]?.url ?? '', BERTH_API_KEY: key.token, HOME: '/nowhere' },
    { ...terminal, say: () => undefined, out: async (more) => void (out += more) },
  );
  await runCli(words, { session, version: () => '' });
  return out;
}

it(
  'calls over two replicas are billed to the smallest unit, and interface, CSV, command line and records agree',
  { timeout: 300_000 },
  async () => {
    const body = { model: MODEL, messages: [{ role: 'user', content: 'Hi' }] };
    for (const call of calls)
      for (let count = 0; count < CALLS; count += 1)
        expect((await call('POST', '/chat/completions', body)).status).toBe(200);
    const all = 2 * CALLS;
    await waitFor('the records', async () => {
      const counts = (await records()).map(({ spec }) => spec.calls);
      return counts.length === 2 && counts.every((count) => count === CALLS);
    });
    // 61 fresh input tokens, 40 cached ones and 13 of output, three times: each replica rounds its sum once.
    const each = (BigInt(CALLS) * (61n * 333_333n + 40n * 50_000n + 13n * 1_100_000n) + 500_000n) / 1_000_000n;
    const cost = formatMoney(2n * each);
    const found = await records();
    expect(found.map(({ spec }) => parseMoney(spec.cost))).toEqual([each, each]);
    const counts = { calls: all, input_tokens: 101 * all, cached_input_tokens: 40 * all, output_tokens: 13 * all };
    const amount = { gpu_seconds: 0, cost, currency: 'EUR', open: false, ...counts };
    const [call] = calls;
    if (call === undefined) throw new Error('there is no replica');
    const groups = {
      day: found[0]?.spec.day,
      key: `key/${key.name}`,
      model: `model/${MODEL}`,
      instance: `model/${MODEL}`,
    };
    for (const [group, name] of Object.entries(groups)) {
      const { json, text } = await call('GET', `/usage?group=${group}`);
      const { items, totals } = usageSchema.parse(json, { error: () => text });
      expect([items, totals]).toEqual([
        [{ ...amount, group: name, name: group === 'key' ? 'tokens' : null, product: null }],
        [amount],
      ]);
    }
    const csv = await call('GET', '/usage?group=model&format=csv');
    const cells = Object.values(counts).join();
    expect(csv.text.split('\r\n')[1]).toBe(`model/${MODEL},,0,${cost},EUR,false,${cells},`);
    const line = `^model/${MODEL} +- +0.00 +${101 * all} +${13 * all} +${cost} EUR`;
    expect(await printed('usage', '--by', 'model')).toMatch(new RegExp(line, 'm'));
  },
);

it(
  'a replica that stops writes what it counted, and the counts of a record never shrink',
  { timeout: 300_000 },
  async () => {
    const [, berth] = berths;
    const before = (await records()).reduce((sum, { spec }) => sum + spec.calls, 0);
    const body = { model: MODEL, messages: [{ role: 'user', content: 'Hi' }] };
    expect((await calls[1]?.('POST', '/chat/completions', body))?.status).toBe(200);
    await berth?.[Symbol.asyncDispose]();
    const now = await records();
    expect(now.reduce((sum, { spec }) => sum + spec.calls, 0)).toBe(before + 1);
    const [record] = now;
    const [entry] = record?.spec.entries ?? [];
    if (record === undefined || entry === undefined) throw new Error('there is no record');
    const write = (entries: object[]) =>
      tenant.client.patch(TOKEN_RECORDS, record.metadata, { spec: { entries } }, { type: 'merge' });
    const wrong = [{ inputTokens: 1 }, { calls: 0 }, { by: 'key/other' }, { outputPrice: '0.01' }];
    for (const change of wrong) await expect(write([{ ...entry, ...change }])).rejects.toThrow(InvalidError);
    await expect(write([{ ...entry, by: 'key/other' }, entry])).resolves.toBeDefined();
  },
);
