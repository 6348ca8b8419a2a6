import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { pino } from 'pino';
import { describe, expect, it, vi } from 'vitest';
import { setPrincipal } from '../../../src/access/principal.ts';
import type { ApiContext } from '../../../src/http/server/context.ts';
import { InTurn } from '../../../src/lib/in-turn.ts';
import { ClaimGate } from '../../../src/http/features/instances/claim-gate.ts';
import { createInstance } from '../../../src/http/features/instances/create.ts';
import { PendingRemovals, runReaper } from '../../../src/http/features/instances/reaper.ts';
import { requestHash } from '../../../src/http/interface/idempotency.ts';
import { createInstanceRoute } from '../../../src/http/features/instances/create-route.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { toKubeError } from '../../../src/kube/errors.ts';
import { CONFIRM_BY, type GpuInstance, type GpuInstanceSpec } from '../../../src/resources/instances/gpu-instance.ts';
import { numericId, REQUEST_HASH } from '../../../src/resources/ids.ts';
import { FakeStore } from '../../support/fake-store.ts';
import { DEFAULT_CEILINGS } from '../../../src/resources/tenants/ceilings.ts';
import { fakeClock, settle } from '../../support/fake-clock.ts';

const UID = 'uid-1';
const changed = toKubeError('DELETE /', { status: 409, body: { reason: 'Conflict' } });
const lost = toKubeError('PATCH /', { status: 503, body: 'the answer was lost' });

/** Every place is granted at once. The test decides the outcome of the calls after the grant. */
function world() {
  const clock = fakeClock();
  const client = {
    create: vi.fn<(type: unknown, wanted: GpuInstance) => Promise<GpuInstance>>((_, wanted) =>
      Promise.resolve({ ...wanted, metadata: { ...wanted.metadata, uid: UID } }),
    ),
    patch: vi.fn<() => Promise<GpuInstance>>(),
    delete: vi.fn<(...call: unknown[]) => Promise<void>>(() => Promise.resolve()),
    list: vi.fn<() => Promise<{ items: never[] }>>(() => Promise.resolve({ items: [] })),
  };
  const deps = {
    offers: {
      grant: () => ({ place: { offerClass: { pool: { name: 'default' }, product: 'A100', gpuCount: 2 } } }),
      heldBy: () => [{ pool: 'default', product: 'A100', gpus: 3 }],
      sharesFor: () => [{ pool: 'default', product: 'A100', gpus: 2 }],
      candidates: () => [],
    },
    ceilings: () => DEFAULT_CEILINGS,
    budgets: () => undefined,
    gate: new ClaimGate(1, clock),
    client: client as unknown as KubeClient,
    waiter: { decision: () => Promise.resolve({ decision: 'granted', instance: undefined }) },
    stores: { instances: new FakeStore<GpuInstance>(), sshKeys: new FakeStore() },
    removals: new PendingRemovals(),
    liveLooks: new InTurn(),
    idempotentName: () => Promise.resolve('i'),
    clock,
    log: pino({ level: 'silent' }),
  } as unknown as ApiContext;
  const gone = new AbortController();
  const spec = { type: 'OnDemand', onNoCapacity: 'Fail' } as GpuInstanceSpec;
  const create = () => createInstance(deps, { namespace: 'a', spec, createdBy: 'key/k', signal: gone.signal });
  return { clock, client, deps, gone, create };
}

it('a client that leaves while its answer is confirmed leaves nothing', async () => {
  const { client, gone, create } = world();
  client.patch.mockImplementation(() => {
    gone.abort();
    return Promise.resolve({ metadata: { name: 'i' } } as GpuInstance);
  });
  await expect(create()).rejects.toThrow('Nothing was rented');
  expect(client.delete.mock.calls.map((call) => call[2])).toEqual([{ uid: UID }]);
});

it('what was perhaps confirmed and could not be removed is removed later', async () => {
  const { client, clock, create, deps } = world();
  client.patch.mockRejectedValue(lost);
  client.delete.mockRejectedValueOnce(lost).mockRejectedValueOnce(lost);
  await expect(create()).rejects.toThrow('the answer was lost');
  const end = new AbortController();
  const running = runReaper(deps, end.signal);
  const removals = async (): Promise<number> => {
    await clock.advance(5_000);
    return client.delete.mock.calls.length;
  };
  expect([await removals(), await removals(), await removals()]).toEqual([2, 3, 3]);
  expect(client.delete.mock.calls[2]).toEqual([...(client.delete.mock.calls[0] ?? [])]);
  end.abort();
  await running;
});

it.each([0, 3_600_000, -3_600_000])(
  'an instance without an answer goes half a minute after a replica saw it, whose clock is ahead by %i ms',
  async (ahead) => {
    const { client, clock, deps } = world();
    const annotations = { [CONFIRM_BY]: new Date(clock.now() + 30_000).toISOString() };
    const left = { metadata: { namespace: 'a', name: 'left', uid: UID, annotations } } as unknown as GpuInstance;
    clock.jumpWall(ahead);
    vi.spyOn(deps.stores.instances, 'by').mockReturnValue([left]);
    const end = new AbortController();
    const running = runReaper(deps, end.signal);
    await clock.advance(30_000);
    expect(client.delete).not.toHaveBeenCalled();
    await clock.advance(5_000);
    expect(client.delete).toHaveBeenCalledOnce();
    end.abort();
    await running;
  },
);

it.each([
  { onNoCapacity: 'Fail', entries: [{ reason: 'Scheduled', start: 1 }] },
  // No leader saw it wait.
  { onNoCapacity: 'Queue', entries: [{ reason: 'Stopped', start: 0 }] },
] as const)(
  'a request that is repeated while its instance is being removed rents no other: $onNoCapacity',
  async ({ onNoCapacity, entries }) => {
    const { client, deps, gone } = world();
    const annotations = { [REQUEST_HASH]: 'hash' };
    const removed = { metadata: { namespace: 'a', name: 'i', uid: UID, annotations, deletionTimestamp: 'now' } };
    let isThere = true;
    client.list.mockResolvedValue({ items: [{ metadata: {}, spec: { instanceUid: 'uid-0', entries } }] as never[] });
    const missing = toKubeError('GET /', { status: 404, body: '' });
    Object.assign(deps.client, { get: () => (isThere ? Promise.resolve(removed) : Promise.reject(missing)) });
    Object.assign(deps.waiter, { removal: () => Promise.resolve(!(isThere = false)) });
    const spec = { type: 'OnDemand', onNoCapacity } as GpuInstanceSpec;
    const idempotency = { key: 'one', hash: 'hash' };
    const request = { namespace: 'a', spec, createdBy: 'key/k', signal: gone.signal, idempotency };
    await expect(createInstance(deps, request)).rejects.toThrow('was deleted');
    expect(client.create).not.toHaveBeenCalled();
  },
);

it('what was deleted before the answer was confirmed is not answered with a success', async () => {
  const { client, create } = world();
  client.patch.mockResolvedValue({ metadata: { name: 'i', deletionTimestamp: 'now' } } as GpuInstance);
  await expect(create()).rejects.toThrow('deleted the instance');
});

describe('a tenant at its GPU ceiling', () => {
  const at = (max: number) => ({
    ...DEFAULT_CEILINGS,
    gpus: [{ pool: '*', product: 'A100', max }],
    policies: ['gold'],
  });

  it('is refused without a write, in the words of the controller', async () => {
    const { client, clock, create, deps } = world();
    deps.ceilings = () => at(4);
    const created = create();
    await clock.advance(200);
    await expect(created).resolves.toMatchObject({
      outcome: 'foreseen',
      refusal: { reason: 'TenantLimit', message: expect.stringMatching(/holds 3, .* needs 2\. .* TenantPolicy gold/) },
    });
    expect(client.create).not.toHaveBeenCalled();
  });

  it('is refused without a write when its budget is spent', async () => {
    const { client, clock, create, deps } = world();
    const lines = [{ unit: 'GPU-hours', max: '5.00', spent: '5.00' }];
    deps.budgets = () => ({ month: '2026-01', renewsAt: '2026-02-01T00:00:00.000Z', at: '', percent: 100, lines });
    const grant = deps.offers.grant.bind(deps.offers);
    const prices = { onDemand: '1', interruptible: '1', currency: 'USD' };
    deps.offers.grant = (request) => {
      const { place } = grant(request) as Extract<ReturnType<typeof grant>, { place: unknown }>;
      return { place: { ...place, offerClass: { ...place.offerClass, prices } } };
    };
    const created = create();
    await clock.advance(200);
    await expect(created).resolves.toMatchObject({
      outcome: 'foreseen',
      refusal: { reason: 'BudgetExceeded', message: expect.stringContaining('5.00 of 5.00 GPU-hours') },
    });
    expect(client.create).not.toHaveBeenCalled();
  });

  it('is granted what came free while the caches may have lagged', async () => {
    const { client, clock, create, deps } = world();
    client.patch.mockResolvedValue({ metadata: { name: 'i' } } as GpuInstance);
    deps.ceilings = () => at(4);
    const created = create();
    await settle();
    deps.ceilings = () => at(5);
    await clock.advance(200);
    await expect(created).resolves.toMatchObject({ outcome: 'granted' });
  });
});

describe('a refusal that another replica has seen pass', () => {
  const idempotency = { key: 'k', hash: 'h' };
  const version = (resourceVersion: string, status: object): GpuInstance =>
    ({ metadata: { namespace: 'a', name: 'i', uid: UID, resourceVersion }, spec: {}, status }) as GpuInstance;
  const refused = version('2', {});

  function late() {
    const { client, deps, gone } = world();
    const get = vi.fn<() => Promise<GpuInstance>>();
    // There is none before the request.
    get.mockRejectedValueOnce(toKubeError('GET /', { status: 404, body: '' }));
    Object.assign(client, { get });
    deps.waiter.decision = () => Promise.resolve({ decision: 'refused', instance: refused });
    const spec = { onNoCapacity: 'Fail' } as GpuInstanceSpec;
    const request = { namespace: 'a', spec, createdBy: 'key/k', idempotency };
    const versions = () => client.delete.mock.calls.map((call) => (call[2] as GpuInstance['metadata']).resourceVersion);
    return { client, get, versions, create: () => createInstance(deps, { ...request, signal: gone.signal }) };
  }

  it('leaves what was granted since, and answers so', async () => {
    const { client, get, versions, create } = late();
    client.delete.mockRejectedValue(changed);
    get.mockResolvedValue(version('3', { incarnation: 1 }));
    await expect(create()).resolves.toMatchObject({ outcome: 'granted', instance: { status: { incarnation: 1 } } });
    expect(versions()).toEqual(['2']);
  });

  it('stands when only words have changed', async () => {
    const { client, get, versions, create } = late();
    client.delete.mockRejectedValueOnce(changed);
    get.mockResolvedValue(version('3', {}));
    await expect(create()).resolves.toMatchObject({ outcome: 'refused' });
    expect(versions()).toEqual(['2', '3']);
  });

  it('stands when another replica has removed the instance', async () => {
    const { client, get, create } = late();
    client.delete.mockRejectedValue(changed);
    get.mockRejectedValue(toKubeError('GET /', { status: 404, body: '' }));
    await expect(create()).resolves.toMatchObject({ outcome: 'refused' });
  });

  it('is left to the next request when it changes all the time', async () => {
    const { client, get, versions, create } = late();
    client.delete.mockRejectedValue(changed);
    get.mockResolvedValue(version('3', {}));
    await expect(create()).rejects.toThrow('Send the same request again');
    expect(versions()).toHaveLength(5);
  });
});

describe('an instance that others end for', () => {
  const conditions = [{ type: 'Claimed', status: 'False', reason: 'PlaceComing', message: '' }];
  const metadata = { namespace: 'a', name: 'i', uid: UID, resourceVersion: '3' };
  const coming = { metadata, spec: {}, status: { conditions } } as unknown as GpuInstance;

  it('stays when its client has left, and its answer counts as given', async () => {
    const { client, deps, gone, create } = world();
    deps.waiter.decision = () => Promise.resolve({ decision: 'queued', instance: coming });
    client.patch.mockResolvedValue(coming);
    gone.abort();
    deps.gate.enter = () => Promise.resolve(() => undefined);
    await expect(create()).resolves.toMatchObject({ outcome: 'queued' });
    expect(client.patch).toHaveBeenCalledOnce();
    expect(client.delete).not.toHaveBeenCalled();
  });

  it('stays when the controller said so just before its removal', async () => {
    const { client, deps, create } = world();
    const early = { ...coming, metadata: { ...metadata, resourceVersion: '2' }, status: {} };
    deps.waiter.decision = () => Promise.resolve({ decision: 'timeout', instance: early });
    Object.assign(client, { get: () => Promise.resolve(coming) });
    client.delete.mockRejectedValue(changed);
    client.patch.mockResolvedValue(coming);
    await expect(create()).resolves.toMatchObject({ outcome: 'queued' });
    expect(client.delete.mock.calls.map((call) => call[2])).toEqual([{ uid: UID, resourceVersion: '2' }]);
    expect(client.patch).toHaveBeenCalledOnce();
  });

  it('is left by the reaper until it has its place', async () => {
    const { client, clock, deps } = world();
    const seen = vi.spyOn(deps.stores.instances, 'by').mockReturnValue([coming]);
    vi.spyOn(deps.stores.instances, 'get').mockReturnValue(coming);
    deps.removals.add({ namespace: 'a', name: 'i', uid: UID });
    const end = new AbortController();
    const running = runReaper(deps, end.signal);
    await clock.advance(60_000);
    expect(client.delete).not.toHaveBeenCalled();
    seen.mockReturnValue([]);
    vi.spyOn(deps.stores.instances, 'get').mockReturnValue({ ...coming, status: {} });
    await clock.advance(5_000);
    expect(client.delete).toHaveBeenCalledOnce();
    end.abort();
    await running;
  });
});

it('remembers the newest of what could not be removed', () => {
  const removals = new PendingRemovals();
  for (let n = 1; n <= 1001; n += 1) removals.add({ namespace: 'a', name: `i-${n}`, uid: String(n) });
  expect(removals.all().map(({ name }) => name)).toHaveLength(1000);
  expect(removals.all()[0]?.name).toBe('i-2');
});

it.each(['before', 'while'])('a client that leaves %s its request is checked makes nothing', async (moment) => {
  const { client, deps } = world();
  const handle = createInstanceRoute.serve(deps);
  const handled = Promise.withResolvers<unknown>();
  const app = express();
  app.post('/', express.json(), async (request, response) => {
    setPrincipal(request, { keyId: 'k', namespace: 'a', name: 'k', scopes: [] });
    const leave = async (): Promise<void> => {
      call.destroy();
      await once(response, 'close');
    };
    if (moment === 'before') await leave();
    client.list.mockImplementation(async () => {
      if (moment === 'while') await leave();
      return { items: [{ metadata: { name: 'key', uid: 'uid-key' } }] as never[] };
    });
    await Promise.resolve(handle(request, response, () => undefined)).catch(handled.resolve);
  });
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const headers = { 'content-type': 'application/json' };
  const call = httpRequest({ port, host: '127.0.0.1', method: 'POST', headers });
  call.on('error', () => undefined).end(JSON.stringify({ ssh_key_ids: [numericId('uid-key')] }));
  expect(String(await handled.promise)).toContain('Nothing was rented');
  expect(client.create).not.toHaveBeenCalled();
  await new Promise((resolve) => server.close(resolve));
});

it('a retry with an Idempotency-Key is answered although an SSH key of its body was deleted since', async () => {
  const { client, deps } = world();
  const body = { ssh_key_ids: [7] };
  const annotations = { [REQUEST_HASH]: requestHash(body) };
  const instance = { metadata: { namespace: 'a', name: 'i', uid: UID, annotations }, status: { incarnation: 1 } };
  Object.assign(client, { get: () => Promise.resolve(instance) });
  Object.assign(deps, { instances: { json: () => '{}' } });
  const handle = createInstanceRoute.serve(deps);
  const app = express();
  app.post('/', express.json(), (request, response) => {
    setPrincipal(request, { keyId: 'k', namespace: 'a', name: 'k', scopes: [] });
    const fail = (error: unknown) => response.status(500).send(String(error));
    return Promise.resolve(handle(request, response, () => undefined)).catch(fail);
  });
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const send = async (key: Record<string, string>): Promise<[number, string | null]> => {
    const headers = { 'content-type': 'application/json', ...key };
    const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body: JSON.stringify(body) });
    await answer.text();
    return [answer.status, answer.headers.get('idempotent-replayed')];
  };
  expect(await send({ 'idempotency-key': 'one' })).toEqual([201, 'true']);
  expect(await send({})).toEqual([500, null]);
  instance.metadata.annotations = { [REQUEST_HASH]: 'of another body' };
  expect(await send({ 'idempotency-key': 'one' })).toEqual([500, null]);
  expect(client.create).not.toHaveBeenCalled();
  await new Promise((resolve) => server.close(resolve));
});

describe('a retry with an Idempotency-Key after its instance was deleted', () => {
  const HASH = 'the hash';
  const retry = (entries: { start: number; reason: string }[], onNoCapacity: 'Fail' | 'Queue' = 'Fail') => {
    const { client, deps, gone } = world();
    const get = vi.fn<() => Promise<never>>(() => Promise.reject(toKubeError('GET /', { status: 404, body: {} })));
    Object.assign(client, { get });
    client.list.mockResolvedValue({
      items: [{ metadata: { name: 'h-1' }, spec: { instanceUid: 'uid-0', entries } }] as never[],
    });
    const spec = { type: 'OnDemand', onNoCapacity } as GpuInstanceSpec;
    const idempotency = { key: 'k', hash: HASH };
    const answer = createInstance(deps, { namespace: 'a', spec, createdBy: 'key/k', idempotency, signal: gone.signal });
    return { answer, client };
  };

  it.each([
    [
      'had a place',
      [
        { start: 1, reason: 'Claimed' },
        { start: 1, reason: 'Scheduled' },
      ],
      'Fail',
    ],
    ['had a place that a quota refused then', [{ start: 1, reason: 'Claimed' }], 'Fail'],
    ['had others end for it', [{ start: 0, reason: 'PlaceComing' }], 'Fail'],
    ['stood in line', [{ start: 0, reason: 'WaitingForCapacity' }], 'Queue'],
  ] as const)('that %s rents no other', async (_what, entries, onNoCapacity) => {
    const { answer, client } = retry([...entries], onNoCapacity);
    await expect(answer).rejects.toMatchObject({ code: 'idempotency_conflict' });
    expect(client.create).not.toHaveBeenCalled();
  });

  it('that was refused asks again', async () => {
    const { answer } = retry([
      { start: 0, reason: 'Accepted' },
      { start: 0, reason: 'QuotaExceeded' },
      { start: 0, reason: 'WaitingForCapacity' },
    ]);
    await expect(answer).resolves.toMatchObject({ outcome: 'granted', replayed: false });
  });
});
