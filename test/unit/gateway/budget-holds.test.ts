import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { linesOf, statusOfLines } from '../../../src/budgets/accounts.ts';
import { RecordedSpending, Spending, TENANT } from '../../../src/budgets/spending.ts';
import { UncountedBills } from '../../../src/gateway/limits/budget-account.ts';
import { BudgetHolds } from '../../../src/gateway/limits/budget-holds.ts';
import { keyOf, type KubeObject } from '../../../src/kube/types.ts';
import { monthOf } from '../../../src/ledger/month.ts';
import { formatMoney, parseMoney } from '../../../src/resources/money.ts';
import { DEFAULT_CEILINGS } from '../../../src/resources/tenants/ceilings.ts';
import type { Budget, BudgetStatus } from '../../../src/resources/tenants/budget.ts';
import type { TokenRecord } from '../../../src/resources/token-record.ts';
import { CALLER, eventually, post, startGateway, type TestGateway } from '../../support/model-gateway.ts';
import { scaledClock } from '../../support/scaled-clock.ts';
import { type ScriptedEngine, startEngine } from '../../support/scripted-engine.ts';

const BUDGET: Budget = { costs: [{ currency: 'USD', max: '1.00' }] };
/** Of a thousand input and a thousand output tokens. */
const REPLY = { text: 'Hello there', inputTokens: 1000, outputTokens: 1000 };
const MESSAGES = [{ role: 'user', content: 'Hi' }];

/** Token records as the API server keeps them, and a controller that counts what it sees of them. */
class Records {
  readonly #records = new Map<string, TokenRecord>();
  #version = 9;
  /** The controller is there. */
  isCounting = true;
  status: BudgetStatus | undefined;

  readonly client = {
    apply: (_type: unknown, object: KubeObject) => {
      this.#version += 1;
      const record = structuredClone(object) as TokenRecord;
      record.metadata.resourceVersion = String(this.#version);
      this.#records.set(keyOf(record), record);
      if (this.isCounting) this.count();
      return Promise.resolve(record as never);
    },
    list: () => Promise.reject(new Error('no record was refused')),
  };

  count(): void {
    const month = monthOf(Date.now());
    const recorded = new RecordedSpending(month);
    for (const record of this.#records.values()) recorded.countTokens(record, 1);
    const spent = recorded.of(CALLER.namespace, TENANT) ?? new Spending();
    const account = { spent, reserved: new Spending(), perHour: new Spending() };
    const tokensVersion = recorded.tokensVersionOf(CALLER.namespace, TENANT);
    this.status = {
      ...statusOfLines(linesOf(BUDGET, account), month, Date.now()),
      ...(tokensVersion !== undefined && { tokensVersion }),
    };
  }

  /** What all calls cost together. */
  get billed(): bigint {
    return [...this.#records.values()].reduce((sum, { spec }) => sum + parseMoney(spec.cost), 0n);
  }
}

/** Prices at which a call of REPLY costs so much. */
function pricedAt(cost: string): Record<string, string> {
  const price = formatMoney(parseMoney(cost) * 500n);
  return { 'berth.dev/price-input': price, 'berth.dev/price-output': price, 'berth.dev/price-currency': 'USD' };
}

let records: Records;
let engine: ScriptedEngine;
let gateways: TestGateway[];

beforeEach(async () => {
  records = new Records();
  engine = await startEngine({ contextLength: 2000 });
  engine.behave({ kind: 'answer', reply: REPLY, delayMs: 20 });
  const start = () =>
    startGateway(undefined, {
      client: records.client,
      ceilings: () => ({ ...DEFAULT_CEILINGS, budget: BUDGET, policies: ['gold'] }),
      budgets: () => records.status,
      clock: scaledClock(20),
    });
  gateways = await Promise.all([start(), start()]);
});
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.close();
  await engine.close();
});

async function serve(cost: string): Promise<void> {
  for (const gateway of gateways) {
    gateway.cluster.serve({ name: 'llm', annotations: pricedAt(cost), ports: [engine.port] });
    await gateway.ready('tiny');
  }
}

/** Connections that call without a pause until they are told that nothing is left. */
async function drain(connections: number, body: object = {}): Promise<void> {
  const work = async (gateway: TestGateway): Promise<void> => {
    for (;;) {
      const answer = await post(gateway, 'chat/completions', { model: 'tiny', messages: MESSAGES, ...body });
      if ((await answer.text()).includes('insufficient_quota')) return;
    }
  };
  await Promise.all(gateways.flatMap((gateway) => Array.from({ length: connections }, () => work(gateway))));
  for (const gateway of gateways.splice(0)) await gateway.close();
}

describe('fifty connections that spend a budget at two replicas', () => {
  it.each([
    ['1.00', {}],
    ['0.30', { stream: true }],
    ['0.05', { stream: true }],
  ])('are billed one call more for each replica at most, where a call costs %s', async (cost, body) => {
    await serve(cost);
    await drain(50, body);
    expect(records.billed).toBeGreaterThanOrEqual(parseMoney('1.00'));
    expect(records.billed).toBeLessThanOrEqual(parseMoney('1.00') + 2n * parseMoney(cost));
  });

  it('are billed no more where the controller counts nothing', async () => {
    records.isCounting = false;
    await serve('0.30');
    const calls = gateways.flatMap((gateway) =>
      Array.from({ length: 10 }, async () => {
        const answer = await post(gateway, 'chat/completions', { model: 'tiny', messages: MESSAGES });
        return [answer.status, answer.headers.get('retry-after')];
      }),
    );
    const answers = await Promise.all(calls);
    expect(answers.filter(([status]) => status === 200)).toHaveLength(2);
    expect(answers).toContainEqual([429, '5']);
  });
});

it('a stream that its client leaves gives its hold back, and its bill stays until it is counted', async () => {
  await serve('0.30');
  const [gateway] = gateways;
  if (gateway === undefined) throw new Error('there is no gateway');
  engine.behave({ kind: 'stall', reply: REPLY, events: 3 }, { kind: 'answer', reply: REPLY });
  const leaving = new AbortController();
  const body = { model: 'tiny', messages: MESSAGES, stream: true };
  const left = await post(gateway, 'chat/completions', body, { signal: leaving.signal });
  await left.body?.getReader().read();
  leaving.abort();
  expect((await post(gateway, 'chat/completions', { ...body, stream: false })).status).toBe(200);
  await eventually(() => expect(records.billed).toBeGreaterThan(0n));
  expect(records.billed).toBeLessThan(parseMoney('0.60'));
});

describe('what a replica holds', () => {
  const PRICES = { input: '1', cachedInput: '1', output: '1', currency: 'USD' };
  /** Of a dollar, in millionths of a millionth. */
  const CENT = 10_000_000_000n;

  function setup(status?: Partial<BudgetStatus>) {
    const world = {
      now: Date.parse('2026-11-30T23:59:59Z'),
      spent: '0.00',
      tenant: 'first',
      budget: { costs: [{ currency: 'USD', max: '10.00' }] } as Budget,
    };
    const holds = new BudgetHolds({
      ceilings: () => ({ ...DEFAULT_CEILINGS, budget: world.budget }),
      budgets: () => ({
        month: '2026-11',
        renewsAt: '',
        at: '',
        percent: 0,
        lines: [{ unit: 'USD', max: '10.00', spent: world.spent }],
        ...status,
      }),
      keyBudgets: () => undefined,
      tenantId: () => world.tenant,
      holdings: undefined,
      clock: { now: () => world.now, setTimeout: () => () => undefined },
    });
    const take = (cost: bigint, caller = CALLER, prices = PRICES) => holds.take(caller, prices, cost);
    return { world, holds, take };
  }

  it('is one per cent of a budget or one call, and comes back when a call ends', async () => {
    const { take } = setup();
    const first = await take(50n * CENT);
    expect(await take(1n)).toHaveProperty('full');
    if ('hold' in first) first.hold.release();
    const small = await Promise.all(Array.from({ length: 10 }, () => take(CENT)));
    expect(small.every((one) => 'hold' in one)).toBe(true);
    expect(await take(CENT)).toHaveProperty('full');
    const [one] = small;
    if (one && 'hold' in one) one.hold.release();
    expect(await take(CENT)).toHaveProperty('hold');
  });

  it('is never more than what is left', async () => {
    const { take, world } = setup();
    world.spent = '9.97';
    expect(await take(2n * CENT)).toHaveProperty('hold');
    expect(await take(2n * CENT)).toHaveProperty('full');
    expect(await take(CENT)).toHaveProperty('hold');
    world.spent = '10.00';
    expect(await take(0n)).toHaveProperty('spent');
  });

  it('leaves what starts have set aside for their first hour', async () => {
    const { take } = setup({ lines: [{ unit: 'USD', max: '10.00', spent: '4.00', reserved: '5.98' }] });
    expect(await take(CENT)).toHaveProperty('hold');
    expect(await take(CENT)).toHaveProperty('hold');
    expect(await take(CENT)).toMatchObject({ passing: true, full: expect.stringContaining('6.00 are held') as string });
    const promised = setup({ lines: [{ unit: 'USD', max: '10.00', spent: '4.00', reserved: '6.00' }] });
    expect(await promised.take(1n)).toMatchObject({ passing: false });
  });

  it('is held against the budget of the key too, and what one refuses is held against none', async () => {
    const { take } = setup();
    const poor = { ...CALLER, name: 'poor', limits: { budget: { costs: [{ currency: 'USD', max: '1.00' }] } } };
    expect(await take(CENT, poor)).toHaveProperty('hold');
    expect(await take(CENT, poor)).toMatchObject({ full: expect.stringContaining('APIKey poor') as string });
    const rich = await Promise.all(Array.from({ length: 9 }, () => take(CENT)));
    expect(rich.every((one) => 'hold' in one)).toBe(true);
    expect(await take(CENT)).toMatchObject({ full: expect.stringContaining('this tenant') as string });
  });

  it('is nothing for a call that is free, in a budget that is spent or of nothing', async () => {
    const { take, world } = setup();
    world.spent = '10.00';
    const free = { input: '0', cachedInput: '0.00', output: '0', currency: 'USD' };
    expect(await take(0n, CALLER, free)).toMatchObject({ hold: { accounts: [] } });
    world.spent = '0.00';
    world.budget = { costs: [{ currency: 'USD', max: '0' }] };
    expect(await take(0n, CALLER, free)).toHaveProperty('hold');
    expect(await take(1n)).toMatchObject({ spent: expect.stringContaining('is spent: 0.00 of 0.00 USD') as string });
  });

  it('is refused in a currency that the budget does not name, and in GPU-hours concerns nobody', async () => {
    const { take, world } = setup({ lines: [{ unit: 'EUR', max: '0.00', spent: '3.00' }] });
    expect(await take(CENT, CALLER, { ...PRICES, currency: 'EUR' })).toHaveProperty('spent');
    expect(await take(CENT)).toHaveProperty('hold');
    world.budget = { costs: [], gpuHours: 0 };
    expect(await take(100_000n * CENT, CALLER, { ...PRICES, currency: 'EUR' })).toMatchObject({
      hold: { accounts: [] },
    });
  });

  it('is nothing of what the tenant spent that had the namespace before', async () => {
    const { take, world } = setup();
    const taken = await take(50n * CENT);
    if (!('hold' in taken)) throw new Error('the call was refused');
    taken.hold.accounts[0]?.billsOf('2026-11').add(50n * CENT);
    taken.hold.release();
    expect(await take(CENT)).toHaveProperty('full');
    world.tenant = 'second';
    expect(await take(CENT)).toHaveProperty('hold');
  });

  it('counts a bill of the new month that came before its first call', async () => {
    const { take, world } = setup();
    const taken = await take(50n * CENT);
    if (!('hold' in taken)) throw new Error('the call was refused');
    world.now += 1000;
    taken.hold.accounts[0]?.billsOf('2026-12').add(50n * CENT);
    taken.hold.release();
    expect(await take(CENT)).toHaveProperty('full');
  });

  it('counts bills of the month that no count has, and those of the month before no more', async () => {
    const { take, world } = setup();
    const taken = await take(CENT);
    if (!('hold' in taken)) throw new Error('was not taken');
    const [account] = taken.hold.accounts;
    account?.billsOf('2026-11').add(999n * CENT);
    taken.hold.release();
    expect(await take(CENT)).toHaveProperty('full');
    account?.billsOf('2026-11').add(CENT);
    expect(await take(CENT)).toMatchObject({ spent: expect.stringContaining('10.00 of 10.00 USD') as string });
    world.now += 2000;
    expect(await take(CENT)).toHaveProperty('hold');
  });
});

describe('bills that a count may lack', () => {
  it('are those of records that it does not have, and those of none', () => {
    const bills = new UncountedBills();
    for (const cost of [1n, 10n, 100n]) bills.add(cost);
    bills.noteRecorded(1n, '99');
    bills.noteRecorded(10n, '100');
    expect(bills.beyond(undefined)).toBe(111n);
    expect(bills.beyond('99')).toBe(110n);
    expect(bills.beyond('100')).toBe(100n);
    bills.drop(100n);
    expect(bills.beyond('100')).toBe(0n);
  });

  it('take a bounded room while nothing is counted, and none is lost', () => {
    const bills = new UncountedBills();
    for (let version = 1; version <= 10_000; version += 1) {
      bills.add(1n);
      bills.noteRecorded(1n, String(version));
    }
    expect(bills.beyond(undefined)).toBe(10_000n);
    // Merged ones are counted together.
    expect(bills.beyond('9000')).toBe(10_000n);
    expect(bills.beyond('9999')).toBe(1n);
    expect(bills.beyond('10000')).toBe(0n);
  });
});
