import { afterEach, expect, it } from 'vitest';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import {
  CREATED_BY,
  GPU_INSTANCES,
  type GpuInstance,
  STARTED_BY,
} from '../../../src/resources/instances/gpu-instance.ts';
import { wishOf } from '../../../src/resources/instances/rented.ts';
import { budgetSchema } from '../../../src/resources/tenants/budget.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { type LoneApi, startLoneApi } from '../../support/http/lone-api.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';

// What another key created, with a disk that is kept.
const STOPPED: GpuInstance = gpuInstance(
  'theirs',
  { powerState: 'Stopped' },
  { incarnation: 1, rented: { wish: wishOf({}), price: { pricePerHour: '19.92', currency: 'USD' } } },
);
const RUNNING: GpuInstance = gpuInstance(
  'busy',
  { powerState: 'Running', maxDuration: '1h', idleTimeout: '10m' },
  { incarnation: 1, claim: claimOn('n', { pricePerHour: '19.92', createdBy: 'key/theirs' }) },
);

const WAITING: GpuInstance = gpuInstance('dear', { powerState: 'Running' }, STOPPED.status);

/** Others leave a place for it, for whose first hour the controller has set aside what it costs. */
function coming(name: string, createdBy: string): GpuInstance {
  const reserved = { pool: 'default', node: 'n', product: 'H100', resourceName: 'nvidia.com/gpu', gpuCount: 8 };
  const one = gpuInstance(name, {}, { ...STOPPED.status, othersEnded: true, reserved });
  return { ...one, metadata: { ...one.metadata, annotations: { [CREATED_BY]: createdBy } } };
}

let api: LoneApi;
let patches: { metadata: { annotations?: Record<string, string> }; spec: Record<string, unknown> }[];
afterEach(() => api.close());

/** Sends a PATCH with a key that has this budget. */
async function patch(budget: object | undefined, id: string, body: object): Promise<[number, string]> {
  patches = [];
  const client: Partial<KubeClient> = {
    patch: ((type: unknown, _ref: unknown, change: (typeof patches)[number]) => {
      if (type === GPU_INSTANCES) patches.push(change);
      return Promise.resolve(STOPPED);
    }) as KubeClient['patch'],
  };
  const limits = budget && { budget: budgetSchema.parse(budget) };
  api = await startLoneApi({
    tenants: ['default'],
    keys: { default: { ...(limits && { limits }) } },
    instances: [STOPPED, RUNNING, WAITING, coming('own', 'key/key'), coming('other', 'key/theirs')],
    client,
    // The last hour of a month would be shorter.
    clock: { ...systemClock(), now: () => Date.parse('2026-11-20T00:00:00Z') },
  });
  const { host, port } = api.address;
  const answer = await fetch(`http://${host}:${port}/api/v1/instances/${id}`, {
    method: 'PATCH',
    headers: { authorization: 'Bearer default', 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return [answer.status, await answer.text()];
}

it.each<[string, object, string]>([
  ['nothing', { costs: [{ currency: 'USD', max: '0' }] }, 'is spent: 0.00 of 0.00 USD'],
  ['less than an hour', { costs: [{ currency: 'USD', max: '5.00' }] }, 'which takes 399 per cent'],
  ['another currency', { costs: [{ currency: 'EUR', max: '500.00' }] }, 'is spent: 0.00 of 0.00 USD'],
  ['no hours of GPUs', { gpuHours: 0 }, 'is spent: 0.00 of 0.00 GPU-hours'],
])('a key with a budget of %s starts nothing that another key created', async (_what, budget, words) => {
  const [status, text] = await patch(budget, 'theirs', { state: 'running' });
  expect([status, text]).toEqual([
    403,
    expect.stringMatching(/Nothing was started\. The budget of APIKey key .*"budget_exceeded"/),
  ]);
  expect(text).toContain(words);
  expect(patches).toEqual([]);
});

it('nor does it by a stop before, or by a change beside', async () => {
  const nothing = { costs: [{ currency: 'USD', max: '0' }] };
  const [status] = await patch(nothing, 'busy', { state: 'running', max_duration: '9h' });
  expect([status, patches]).toEqual([403, []]);
});

it('nor does it by a price at which an instance need wait no more', async () => {
  const nothing = { costs: [{ currency: 'USD', max: '0' }] };
  const price = { max_price_per_hour: '500.00' };
  expect([(await patch(nothing, 'dear', price))[0], patches]).toEqual([403, []]);
  await api.close();
  // This starts nothing.
  expect((await patch(nothing, 'theirs', price))[0]).toBe(200);
});

it.each([{ max_duration: '720h' }, { max_duration: null }, { idle_timeout: null }, { idle_timeout: '9h' }])(
  'nor does it let run longer what another key pays for: %j',
  async (body) => {
    const [status, text] = await patch({ costs: [{ currency: 'USD', max: '0' }] }, 'busy', body);
    expect([status, patches]).toEqual([403, []]);
    expect(text).toContain('Nothing was lengthened. The budget of APIKey key');
  },
);

it.each([{ max_duration: '30m' }, { idle_timeout: '5m' }])('it may shorten it: %j', async (body) => {
  expect((await patch({ costs: [{ currency: 'USD', max: '0' }] }, 'busy', body))[0]).toBe(200);
});

it('a key with room, or without a budget, starts it, and the instance notes who asked', async () => {
  for (const budget of [{ costs: [{ currency: 'USD', max: '20.00' }] }, undefined]) {
    const [status] = await patch(budget, 'theirs', { state: 'running' });
    expect(status).toBe(200);
    const startRequest = String(patches[0]?.spec['startRequest']);
    const metadata = { annotations: { [STARTED_BY]: `${startRequest} key/key` } };
    expect(patches).toMatchObject([{ metadata, spec: { powerState: 'Running', startRequest } }]);
    await api.close();
  }
});

it('a start whose first hour is set aside needs no other, but of a key that has not set it aside', async () => {
  const less = { costs: [{ currency: 'USD', max: '5.00' }] };
  expect((await patch(less, 'own', { state: 'running' }))[0]).toBe(200);
  await api.close();
  expect((await patch(less, 'other', { state: 'running' }))[0]).toBe(403);
});

it('a key without money may still stop and rename', async () => {
  const nothing = { costs: [{ currency: 'USD', max: '0' }] };
  const [status] = await patch(nothing, 'busy', { state: 'stopped', name: 'theirs' });
  expect(status).toBe(200);
  expect(patches[0]?.metadata.annotations).toBeUndefined();
});
