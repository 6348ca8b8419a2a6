import { request } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CONFIRM_BY } from '../../../src/resources/instances/gpu-instance.ts';
import { PendingRemovals, runReaper } from '../../../src/http/features/instances/reaper.ts';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import type { Cluster } from '../../support/http/api.ts';
import { clientOf } from '../../support/http/client.ts';
import { addNode, gpuNode } from '../../support/http/fleet.ts';
import { openCluster } from '../../support/http/open.ts';
import { type Addresses, callsOf } from '../../support/http/replicas.ts';
import { waitFor } from '../../support/wait-for.ts';

let cluster: Cluster;
let api: Addresses;
let namespace: string;
let token: string;
let removeNode: () => Promise<void>;

beforeAll(async () => {
  cluster = await openCluster();
  ({ api } = cluster);
  namespace = await cluster.namespace('http-abandoned');
  token = await cluster.key(namespace);
  removeNode = await addNode(cluster.client, gpuNode('node-test-gpu-abandoned', 'TEST-GPU-ABANDONED', 8));
  // Where nothing is free the answer would be no at once.
  await waitFor('a free GPU', () =>
    cluster.inventory.offers().some(({ product, available }) => product === 'TEST-GPU-ABANDONED' && available > 0),
  );
});

afterAll(async () => {
  await removeNode();
  await cluster[Symbol.asyncDispose]();
});

async function names(): Promise<string[]> {
  return (await cluster.client.list(GPU_INSTANCES, { namespace })).items.map(({ metadata }) => metadata.name);
}

/** Asks for an instance and hangs up when it exists; no controller answers here. */
async function hangUp(headers: Record<string, string> = {}): Promise<void> {
  const call = request(`${api.url}/api/v1/instances`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, ...headers },
  });
  call.on('error', () => undefined);
  call.end();
  await waitFor('the instance', async () => (await names()).length === 1);
  call.destroy();
}

it('an instance whose client hung up goes', async () => {
  await hangUp();
  await waitFor('nothing', async () => (await names()).length === 0);
});

/** Writes what a controller would about a place that was granted once. */
async function report(name: string, claimed: 'True' | 'False', reason: string): Promise<void> {
  const lastTransitionTime = new Date().toISOString();
  const conditions = [
    { type: 'Claimed', status: claimed, reason: claimed === 'True' ? 'Granted' : reason, message: '' },
    { type: 'Ready', status: 'False', reason, message: '' },
  ].map((condition) => ({ ...condition, lastTransitionTime }));
  const status = { incarnation: 1, conditions };
  const options = { type: 'merge', subresource: 'status' } as const;
  await cluster.client.patch(GPU_INSTANCES, { namespace, name }, { status }, options);
}

it('one with an Idempotency-Key stays for the retry, whatever became of it', async () => {
  const headers = { 'idempotency-key': 'later' };
  await hangUp(headers);
  const call = clientOf(api.url, token);
  const [name = ''] = await names();
  const retry = async (): Promise<unknown[]> => {
    const answer = await call('POST', '/instances', undefined, headers);
    return [answer.status, answer.id, answer.json['state'], answer.headers.get('idempotent-replayed')];
  };
  await report(name, 'True', 'Starting');
  expect(await retry()).toEqual([201, name, 'starting', 'true']);
  for (const [reason, state] of [
    ['ContainerFailed', 'failed'],
    ['Stopped', 'stopped'],
    ['NoCapacity', 'failed'],
  ] as const) {
    await report(name, 'False', reason);
    for (const replica of callsOf(api, token)) {
      await waitFor(state, async () => (await replica('GET', `/instances/${name}`)).json['state'] === state);
    }
    expect(await retry()).toEqual([201, name, state, 'true']);
    const { metadata } = await cluster.client.get(GPU_INSTANCES, { namespace, name });
    expect(metadata.deletionTimestamp).toBeUndefined();
  }
  await call('DELETE', `/instances/${name}`);
  // It stays for a controller, which would write its history, and there is none.
  expect(await names()).toEqual([name]);
  await cluster.client.patch(GPU_INSTANCES, { namespace, name }, { metadata: { finalizers: [] } }, { type: 'merge' });
});

it('without a controller nothing is rented, and the client is told', async () => {
  const answer = await clientOf(api.url, token)('POST', '/instances');
  expect([answer.status, answer.error['code'], answer.headers.get('retry-after')]).toEqual([503, 'claim_timeout', '5']);
  expect(answer.error['incident_id']).toMatch(/^[0-9a-f-]{36}$/);
  expect(await names()).toEqual([]);
});

it('an instance of a replica that died goes after a while, one that was answered stays', async () => {
  const spec = {
    type: 'OnDemand',
    installMonitoring: false,
    powerState: 'Running',
    onNoCapacity: 'Fail',
    onExpiry: 'Stop',
    onGPUFailure: 'Keep',
    diskPolicy: 'Delete',
  } as const;
  // The reaper of this test lives through half a minute at once, and so is the first to find it due.
  const clock = fakeClock();
  const annotations = { [CONFIRM_BY]: new Date().toISOString() };
  await cluster.client.create(GPU_INSTANCES, { metadata: { namespace, name: 'orphan', annotations }, spec });
  await cluster.client.create(GPU_INSTANCES, { metadata: { namespace, name: 'answered' }, spec });
  await waitFor('both in the cache', () => cluster.stores.instances.by('namespace', namespace).length === 2);
  const abort = new AbortController();
  const { client, stores, log } = cluster;
  const running = runReaper({ client, stores, removals: new PendingRemovals(), clock, log }, abort.signal);
  await clock.advance(30_000);
  expect(await names()).toContain('orphan');
  await clock.advance(5_000);
  await waitFor('the orphan to go', async () => (await names()).length === 1);
  expect(await names()).toEqual(['answered']);
  abort.abort();
  await running;
});
