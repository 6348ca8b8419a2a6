import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { EVENTS } from '../../../src/kube/types.ts';
import { API_KEYS } from '../../../src/resources/api-key.ts';
import { GPU_POOLS, gpuPoolSpecSchema } from '../../../src/resources/gpu-pool.ts';
import {
  GPU_INSTANCES,
  type GpuInstance,
  type GpuInstanceSpec,
} from '../../../src/resources/instances/gpu-instance.ts';
import { parseMoney } from '../../../src/resources/money.ts';
import { TENANT_LIMITS } from '../../../src/resources/tenants/tenant-limit.ts';
import { TENANT_POLICIES, type TenantPolicySpec } from '../../../src/resources/tenants/tenant-policy.ts';
import { TOKEN_RECORDS } from '../../../src/resources/token-record.ts';
import { ENDED_LABEL, USAGE_RECORDS } from '../../../src/resources/usage-record.ts';
import { run } from '../../../tools/lib/shell.ts';
import { readyReason } from '../../faults/support/world.ts';
import { account, BERTH_EDIT } from '../../support/accounts.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import type { Cluster } from '../../support/http/api.ts';
import { type Call, clientOf } from '../../support/http/client.ts';
import { addNode, gpuNode } from '../../support/http/fleet.ts';
import { openCluster } from '../../support/http/open.ts';
import { waitFor } from '../../support/wait-for.ts';

const PRODUCT = 'TEST-GPU-BUDGET';
/** A dollar each second, so that a first hour is 3,600. */
const PRICE = '3600';
const SECOND = parseMoney('1');

let cluster: Cluster;
let controller: BerthProcess;
let tenant: string;
let neighbour: string;
let token: string;
let call: Call;
const ends: (() => Promise<void>)[] = [];

const limit = () => cluster.client.get(TENANT_LIMITS, { namespace: tenant, name: 'berth' });
const read = (namespace: string, name: string) => cluster.client.get(GPU_INSTANCES, { namespace, name });

async function setBudget(budget: object): Promise<void> {
  await cluster.client.patch(TENANT_POLICIES, { name: `${tenant}-policy` }, { spec: { budget } }, { type: 'merge' });
}

function create(namespace: string, name: string, spec: object = {}): Promise<GpuInstance> {
  const wanted = { gpu: { product: PRODUCT }, ...spec } as unknown as GpuInstanceSpec;
  return cluster.client.create(GPU_INSTANCES, { metadata: { namespace, name }, spec: wanted });
}

function isRunning(namespace: string, name: string): Promise<unknown> {
  return waitFor(`${name} to run`, async () => readyReason(await read(namespace, name)) === 'Running');
}

/** A correction by the operator, which counts for now. */
async function charge(name: string, cost: string): Promise<void> {
  const spec = {
    instance: 'none',
    instanceUid: 'none',
    product: '',
    gpuCount: 0,
    gpuSeconds: 0,
    currency: 'USD',
    cost,
  };
  const adjustment = { type: 'Charge', reason: 'A test.' } as const;
  const endedAt = new Date(Date.now() - 1000).toISOString();
  await cluster.client.create(USAGE_RECORDS, {
    metadata: { namespace: tenant, name },
    spec: { ...spec, endedAt, adjustment },
  });
}

beforeAll(async () => {
  cluster = await openCluster();
  const { client } = cluster;
  [tenant, neighbour] = [await cluster.namespace('budget'), await cluster.namespace('budget-neighbour')];
  const own = await cluster.namespace('budget-berth');
  const pool = {
    nodeSelector: { 'nvidia.com/gpu.product': PRODUCT },
    prices: [{ product: '*', onDemand: PRICE, interruptible: PRICE }],
  };
  await client.create(GPU_POOLS, { metadata: { name: tenant }, spec: gpuPoolSpecSchema.parse(pool) });
  ends.push(() => client.delete(GPU_POOLS, { name: tenant }));
  ends.push(await addNode(client, gpuNode('node-test-gpu-budget', PRODUCT, 8)));
  await client.create(TENANT_POLICIES, {
    metadata: { name: `${tenant}-policy` },
    spec: {
      namespaceLabels: { 'kubernetes.io/metadata.name': tenant },
      budget: { costs: [{ currency: 'USD', max: '10000' }] },
    } as unknown as TenantPolicySpec,
  });
  ends.push(() => client.delete(TENANT_POLICIES, { name: `${tenant}-policy` }));
  token = await cluster.key(tenant);
  call = clientOf(cluster.api.url, token);
  controller = await startBerth(inject('cluster').kubeconfig, 'controller', own);
  ends.push(async () => controller[Symbol.asyncDispose]());
}, 120_000);

afterAll(async () => {
  for (const namespace of [tenant, neighbour]) {
    for (const { metadata } of (await cluster.client.list(GPU_INSTANCES, { namespace })).items) {
      await cluster.client.delete(GPU_INSTANCES, metadata);
    }
    await waitFor(
      'the instances to go',
      async () => (await cluster.client.list(GPU_INSTANCES, { namespace })).items.length === 0,
    );
  }
  for (const end of ends.toReversed()) await end();
  await cluster[Symbol.asyncDispose]();
});

it('a claim reserves its first hour, and is refused with what is spent and who can raise the budget', async () => {
  await create(tenant, 'first', { type: 'Interruptible' });
  await create(tenant, 'second');
  await Promise.all([isRunning(tenant, 'first'), isRunning(tenant, 'second')]);
  await create(tenant, 'third');
  await waitFor('the third to wait', async () => readyReason(await read(tenant, 'third')) === 'BudgetExceeded');
  const refused = await call('POST', '/instances', { gpu: { name: PRODUCT, count: 1 } });
  expect([refused.status, refused.error['code']]).toEqual([403, 'budget_exceeded']);
  expect(refused.error['message']).toMatch(
    /Nothing was rented\. The budget of this tenant for \d{4}-\d\d has no room for the first hour of this instance, which takes 36 per cent: of 10000\.00 USD, .* The operator can change budget in TenantPolicy budget-/,
  );
  await cluster.client.delete(GPU_INSTANCES, { namespace: tenant, name: 'third' });
});

it(
  'a budget that is spent stops the tenant within a minute, and a neighbour notices nothing',
  { timeout: 300_000 },
  async () => {
    await create(neighbour, 'honest');
    await isRunning(neighbour, 'honest');
    const before = await read(neighbour, 'honest');
    // Some ten seconds are left.
    const { lines } = await waitFor('the count', async () => (await limit()).status?.budget);
    expect(lines.map(({ unit, max }) => [unit, max])).toEqual([['USD', '10000.00']]);
    const running = await Promise.all(['first', 'second'].map((name) => read(tenant, name)));
    const spent = running.reduce(
      (sum, { status }) => sum + (Date.now() - Date.parse(status?.stages?.ready ?? '')) / 1000,
      0,
    );
    await charge('correction', String(10_000 - Math.ceil(spent) - 20));
    const stopped = await waitFor(
      'the instances to be stopped',
      async () => {
        const all = await Promise.all(['first', 'second'].map((name) => read(tenant, name)));
        return all.every((one) => readyReason(one) === 'BudgetSpent') && all;
      },
      60_000,
    );
    expect(stopped[0]?.status?.ending?.message).toMatch(
      /^The budget of this tenant for .* is spent: .* of 10000\.00 USD/,
    );
    const sum = stopped
      .flatMap(({ status }) => status?.intervals ?? [])
      .reduce((all, { cost }) => all + parseMoney(cost), 0n);
    const charged = parseMoney(String(10_000 - Math.ceil(spent) - 20));
    // Two instances cost two dollars a second.
    expect(sum + charged - parseMoney('10000') <= 2n * 60n * SECOND).toBe(true);
    expect(sum + charged >= parseMoney('10000')).toBe(true);

    const { json } = await call('GET', '/limits');
    expect(json).toMatchObject({
      budget: { percent: 100, lines: [{ unit: 'USD', limit: '10000.00', left: '0.00' }] },
      key_budget: null,
    });
    const labels = '{tenant="other",policy="other"}';
    expect(await (await fetch(`${controller.metricsUrl}/metrics`)).text()).toMatch(
      new RegExp(`^berth_budget_used_ratio${labels} 1(\\.\\d+)?$`, 'm'),
    );
    const events = await waitFor('the warning', async () => {
      const { items } = await cluster.client.list(EVENTS, { namespace: tenant });
      const told = items
        .filter(({ involvedObject }) => involvedObject.kind === 'TenantLimit')
        .map(({ reason }) => reason);
      return told.includes('BudgetSpent') && told;
    });
    expect(events.length).toBeLessThanOrEqual(3);

    const after = await read(neighbour, 'honest');
    expect(after.status).toEqual(before.status);
  },
);

it(
  'a new leader counts the same, and what waits goes on when the operator raises the budget',
  { timeout: 300_000 },
  async () => {
    await create(tenant, 'late');
    await controller[Symbol.asyncDispose]();
    ends.pop();
    controller = await startBerth(inject('cluster').kubeconfig, 'controller', await cluster.namespace('budget-berth'));
    ends.push(async () => controller[Symbol.asyncDispose]());
    await waitFor('the late one to wait', async () => readyReason(await read(tenant, 'late')) === 'BudgetExceeded');
    await setBudget({ costs: [{ currency: 'USD', max: '20000' }] });
    await isRunning(tenant, 'late');
    // What was stopped stays stopped.
    expect(readyReason(await read(tenant, 'first'))).toBe('BudgetSpent');
  },
);

it('a key has a budget of its own, for what it created', { timeout: 300_000 }, async () => {
  await setBudget({ costs: [{ currency: 'USD', max: '100000' }] });
  const limited = await cluster.key(tenant, { limits: { budget: { costs: [{ currency: 'USD', max: '4000' }] } } });
  const caller = clientOf(cluster.api.url, limited);
  const rented = await waitFor('room', async () => {
    const answer = await caller('POST', '/instances', { gpu: { name: PRODUCT, count: 1 } });
    return answer.status === 201 && answer;
  });
  const refused = await caller('POST', '/instances', { gpu: { name: PRODUCT, count: 1 } });
  expect([refused.status, refused.error['code']]).toEqual([403, 'budget_exceeded']);
  expect(refused.error['message']).toMatch(/The budget of APIKey key-\w+ .* An administrator of the tenant can change/);
  const { json } = await waitFor('the count', async () => {
    const answer = await caller('GET', '/limits');
    const [budget] = [answer.json['key_budget'] as { at: string | null } | null];
    return budget?.at != null && answer;
  });
  expect(json).toMatchObject({ key_budget: { lines: [{ unit: 'USD', limit: '4000.00' }] } });
  const { items } = await cluster.client.list(API_KEYS, { namespace: tenant });
  const key = items.find(({ spec }) => spec.limits?.budget !== undefined);
  await cluster.client.patch(
    API_KEYS,
    { namespace: tenant, name: key?.metadata.name ?? '' },
    { spec: { limits: { budget: { costs: [{ currency: 'USD', max: '1' }] } } } },
    { type: 'merge' },
  );
  await waitFor('it to be stopped', async () => readyReason(await read(tenant, rented.id)) === 'BudgetSpent');
  expect(readyReason(await read(tenant, 'late'))).toBe('Running');
  const warningsOf = async (id: string): Promise<unknown> => (await caller('GET', `/instances/${id}`)).json['warnings'];
  const words = expect.stringContaining(`per cent of the budget of APIKey ${key?.metadata.name} for `);
  await waitFor('the warning', async () => String(await warningsOf(rented.id)).includes('of APIKey'));
  expect(await warningsOf(rented.id)).toContainEqual(words);
  expect(await warningsOf('late')).not.toContainEqual(words);
});

it('what calls to models cost counts for the tenant and for the key that called', async () => {
  const { items } = await cluster.client.list(API_KEYS, { namespace: tenant });
  const key = items.find(({ spec }) => spec.limits?.budget !== undefined);
  const day = new Date().toISOString().slice(0, 10);
  const counts = { calls: 1, unreported: 0, inputTokens: 1, cachedInputTokens: 0, outputTokens: 1 };
  const prices = { inputPrice: '1', cachedInputPrice: '1', outputPrice: '1' };
  const entry = { by: `key/${key?.metadata.name}`, model: 'm', ...prices, ...counts, cost: '500000.00' };
  await cluster.client.create(TOKEN_RECORDS, {
    metadata: { namespace: tenant, name: 'tokens', labels: { [ENDED_LABEL]: day.slice(0, 7) } },
    spec: { day, replica: 'r', calls: 1, cost: '500000.00', currency: 'USD', entries: [entry] },
  });
  await waitFor('all to be stopped', async () => readyReason(await read(tenant, 'late')) === 'BudgetSpent');
  const told = await waitFor('the count of the key', async () => {
    const budget = (await cluster.client.get(API_KEYS, key?.metadata ?? { name: '' })).status?.budget;
    return Number(budget?.lines[0]?.spent) >= 500_000 && budget;
  });
  expect(told.percent).toBeGreaterThanOrEqual(100);
});

describe('an administrator of the tenant', () => {
  const ADMIN = [...BERTH_EDIT, { apiGroups: ['berth.dev'], resources: ['apikeys'], verbs: ['*'] }];

  /** What the API server says to the administrator. */
  async function asAdmin(args: readonly string[]): Promise<string> {
    const { programs, kubeconfig } = inject('cluster');
    const program = programs === undefined ? 'kubectl' : join(programs, 'kubectl');
    const who = ['--kubeconfig', kubeconfig, '-n', tenant, '--as', `system:serviceaccount:${tenant}:admin`];
    const { code, stdout, stderr } = await run(program, [...who, ...args]);
    return code === 0 ? 'done' : `${stdout}${stderr}`;
  }

  beforeAll(async () => {
    await account(cluster.client, tenant, 'admin', ADMIN);
  });

  it('reads what is spent', async () => {
    expect(await asAdmin(['get', 'tenantlimit', 'berth'])).toBe('done');
  });

  it.each([
    ['takes the budget away', ['patch', 'tenantlimit', 'berth', '-p', '{"spec":{"budget":{"costs":[]}}}']],
    [
      'writes that nothing is spent',
      ['patch', 'tenantlimit', 'berth', '--subresource=status', '-p', '{"status":{"budget":null}}'],
    ],
    ['deletes the ceilings', ['delete', 'tenantlimit', 'berth']],
    ['deletes what was charged', ['delete', 'usagerecord', 'correction']],
    ['makes a policy of its own', ['create', '-f', 'deploy/samples/tenantpolicy.yaml']],
  ])('cannot lift the budget: %s', async (_what, args) => {
    const merge = args[0] === 'patch' ? ['--type=merge'] : [];
    expect(await asAdmin([...args, ...merge])).toMatch(/forbidden/i);
  });
});
