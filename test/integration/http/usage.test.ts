import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { createKey } from '../../../src/access/create-key.ts';
import { runCli } from '../../../src/cli/main.ts';
import { createSession } from '../../../src/cli/session.ts';
import { usageSchema } from '../../../src/http/features/usage/schema.ts';
import { InvalidError } from '../../../src/kube/errors.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { addMoney } from '../../../src/resources/money.ts';
import { USAGE_RECORDS, type UsageRecord } from '../../../src/resources/usage-record.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { type Call, clientOf } from '../../support/http/client.ts';
import { kindsCounted } from '../../support/kinds-counted.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';

const GPU = { product: 'NVIDIA-A100-SXM4-80GB', count: 1 };

let berth: BerthProcess;
let tenant: TestNamespace;
let stranger: TestNamespace;
let key: { name: string; token: string };
let call: Call;
let other: Call;

beforeAll(async () => {
  [tenant, stranger] = await Promise.all([testNamespace(), testNamespace()]);
  await kindsCounted(tenant.client);
  berth = await startBerth(inject('cluster').kubeconfig);
  const callOf = async ({ name, client }: TestNamespace): Promise<[typeof key, Call]> => {
    const made = await createKey(client, { namespace: name, displayName: 'usage' });
    const caller = clientOf(berth.url, made.token);
    await waitFor('the key', async () => (await caller('GET', '/offers')).status === 200);
    return [made, caller];
  };
  [key, call] = await callOf(tenant);
  [, other] = await callOf(stranger);
});
afterAll(async () => {
  await berth[Symbol.asyncDispose]();
  await Promise.all([tenant[Symbol.asyncDispose](), stranger[Symbol.asyncDispose]()]);
});

async function usage(caller: Call, query = '') {
  const { json, text } = await caller('GET', `/usage${query}`);
  return usageSchema.parse(json, { error: () => text });
}

/** What the command line prints. */
async function printed(...words: string[]): Promise<string> {
  let out = '';
  const none = (): Promise<string> => Promise.resolve('');
  const columns = { out: undefined, say: undefined };
  const terminal = { interactive: false, screen: false, colour: false, columns, ask: none, secret: none, input: none };
  const session = createSession(
    { BERTH_URL: berth.url, BERTH_API_KEY: key.token, HOME: '/nowhere' },
    { ...terminal, say: () => undefined, out: async (more) => void (out += more) },
  );
  await runCli(words, { session, version: () => '' });
  return out;
}

async function isIn(id: string, state: string): Promise<void> {
  await waitFor(`${id} to be ${state}`, async () => (await call('GET', `/instances/${id}`)).json['state'] === state);
}

async function recordsOf(instance: string): Promise<UsageRecord[]> {
  const { items } = await tenant.client.list(USAGE_RECORDS, { namespace: tenant.name });
  return items.filter(({ spec }) => spec.instance === instance);
}

it(
  'the interface, its CSV, the command line and the records agree to the smallest unit',
  { timeout: 300_000 },
  async () => {
    const rented = await call('POST', '/instances', { gpu: { name: GPU.product, count: 1 } });
    const { id } = rented;
    await isIn(id, 'running');
    const open = await usage(call, '?group=instance');
    expect(open.items).toMatchObject([{ group: id, product: GPU.product, open: true }]);
    for (const state of ['stopped', 'running'] as const) {
      await call('PATCH', `/instances/${id}`, { state });
      await isIn(id, state);
    }
    await call('DELETE', `/instances/${id}`);
    await waitFor('its end', async () => (await call('GET', `/instances/${id}`)).status === 404);
    const [record, ...more] = await recordsOf(id);
    if (record === undefined) throw new Error('there is no record');
    const { cost, gpuSeconds, currency, intervals = [] } = record.spec;
    expect(more).toEqual([]);
    expect(intervals.map(({ start, createdBy }) => [start, createdBy])).toEqual([
      [1, `key/${key.name}`],
      [2, `key/${key.name}`],
    ]);
    const none = { calls: 0, input_tokens: 0, cached_input_tokens: 0, output_tokens: 0 };
    const amount = { gpu_seconds: gpuSeconds, cost, currency, open: false, ...none };
    for (const [group, of, name] of [
      ['instance', id, null],
      ['key', `key/${key.name}`, 'usage'],
    ]) {
      const { items, totals } = await usage(call, `?group=${group}`);
      expect([items, totals]).toEqual([[{ ...amount, group: of, name, product: GPU.product }], [amount]]);
    }
    expect((await usage(call)).totals).toEqual([amount]);
    const csv = await call('GET', '/usage?group=instance&format=csv');
    expect(csv.text.split('\r\n')[1]).toBe(`${id},${GPU.product},${gpuSeconds},${cost},${currency},false,0,0,0,0,`);
    expect(await printed('usage')).toMatch(new RegExp(`^${id} .*${cost} ${currency}`, 'm'));
    // Another tenant has none of it.
    expect((await usage(other)).items).toEqual([]);
  },
);

it(
  'an instance with a full bill gets a record before it starts again, and nothing is lost or counted twice',
  { timeout: 300_000 },
  async () => {
    const { client, name: namespace } = tenant;
    const ref = { namespace, name: 'often' };
    const at = (minute: number): string => new Date(Date.now() - 86_400_000 + minute * 60_000).toISOString();
    const one = {
      gpuSeconds: 60,
      cost: '0.10',
      currency: 'USD',
      product: GPU.product,
      gpuCount: 1,
      pricePerHour: '6.00',
    };
    const intervals = Array.from({ length: 8 }, (_, index) => {
      return { ...one, start: index + 1, from: at(2 * index), to: at(2 * index + 1) };
    });
    const spec = { gpu: GPU, powerState: 'Stopped' };
    const { metadata } = await client.create(GPU_INSTANCES, { metadata: ref, spec } as unknown as GpuInstance);
    const bill = { gpuSeconds: 480, cost: '0.80', currency: 'USD', until: at(15) };
    const status = { incarnation: 8, intervals, usage: bill, lastProduct: { product: GPU.product, gpuCount: 1 } };
    await client.patch(GPU_INSTANCES, ref, { status }, { type: 'merge', subresource: 'status' });
    await client.patch(GPU_INSTANCES, ref, { spec: { powerState: 'Running' } }, { type: 'merge' });
    await isIn('often', 'running');
    const now = await client.get(GPU_INSTANCES, ref);
    expect(now.status).toMatchObject({ incarnation: 9, intervals: [], records: 1, usage: bill });
    const [full, ...others] = await recordsOf('often');
    expect([full?.spec.cost, full?.spec.intervals, others]).toEqual(['0.80', intervals, []]);
    expect(full?.spec.instanceUid).toBe(metadata.uid);
    await client.delete(GPU_INSTANCES, ref);
    await waitFor('its end', async () => (await call('GET', '/instances/often')).status === 404);
    const records = await recordsOf('often');
    expect(new Set(records.map(({ spec }) => spec.intervals?.[0]?.start))).toEqual(new Set([1, 9]));
    const sum = records.map((record) => record.spec.cost).reduce(addMoney, '0.00');
    const days = `from=${at(0).slice(0, 10)}`;
    const found = (await usage(call, `?group=instance&${days}`)).items.find(({ group }) => group === 'often');
    expect(found).toMatchObject({ cost: sum, open: false });
  },
);

it('a record never changes, and a correction is another record', async () => {
  const { client, name: namespace } = tenant;
  const credit: UsageRecord = {
    metadata: { namespace, name: 'credit' },
    spec: {
      instance: 'often',
      instanceUid: '',
      product: '',
      gpuCount: 0,
      gpuSeconds: 0,
      cost: '1000000.00',
      currency: 'USD',
      endedAt: new Date().toISOString(),
      adjustment: { type: 'Credit', reason: 'The node was slow.' },
    },
  };
  const refused = (spec: Partial<UsageRecord['spec']>) =>
    client.create(USAGE_RECORDS, { ...credit, spec: { ...credit.spec, ...spec } });
  for (const cost of ['12,50', '-5', '1e3', ''])
    await expect(refused({ cost })).rejects.toThrow(/spec\.cost: .*write a decimal amount/);
  await expect(refused({ currency: '' })).rejects.toThrow('name the currency that is corrected');
  await expect(refused({ currency: 'usd' })).rejects.toThrow('write an ISO 4217 code');
  await client.create(USAGE_RECORDS, credit);
  const { items, totals } = await usage(call, '?group=key');
  expect(items.find(({ group }) => group === 'adjustment')?.cost).toBe('-1000000.00');
  expect(totals[0]?.cost).toMatch(/^-9/);
  const change = client.patch(USAGE_RECORDS, credit.metadata, { spec: { cost: '1.00' } }, { type: 'merge' });
  await expect(change).rejects.toThrow(InvalidError);
});
