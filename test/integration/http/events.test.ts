import { afterAll, beforeAll, expect, it } from 'vitest';
import { API_KEYS } from '../../../src/resources/api-key.ts';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import type { Cluster } from '../../support/http/api.ts';
import { type Events, openEvents } from '../../support/http/events.ts';
import { addNode, gpuNode } from '../../support/http/fleet.ts';
import { openCluster } from '../../support/http/open.ts';
import { type Addresses, callsOf } from '../../support/http/replicas.ts';
import { waitFor } from '../../support/wait-for.ts';

let cluster: Cluster;
let api: Addresses;
let one: string;
let two: string;
let namespace: string;
let token: string;

beforeAll(async () => {
  cluster = await openCluster();
  ({ api } = cluster);
  [one, two] = api.replicas;
  namespace = await cluster.namespace('http-events');
  token = await cluster.key(namespace);
});

afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
});

const spec = {
  type: 'OnDemand',
  installMonitoring: false,
  powerState: 'Running',
  onNoCapacity: 'Queue',
  onExpiry: 'Stop',
  onGPUFailure: 'Keep',
  diskPolicy: 'Delete',
} as const;

async function make(name: string, where = namespace): Promise<void> {
  await cluster.client.create(GPU_INSTANCES, { metadata: { namespace: where, name }, spec });
}

async function rename(name: string, displayName: string): Promise<void> {
  await cluster.client.patch(GPU_INSTANCES, { namespace, name }, { spec: { displayName } }, { type: 'merge' });
}

/** Waits until every replica shows the instance so. */
async function shown(name: string, displayName: string | null): Promise<void> {
  for (const call of callsOf(api, token)) {
    await waitFor(`${name} in the list`, async () => {
      const { data } = await call('GET', '/instances');
      return data.some((one) => one['id'] === name && one['name'] === displayName);
    });
  }
}

function names(events: Events): unknown[] {
  return events.seen.map(({ type, json }) => [type, json['id'], json['name']]);
}

it('streams what happens to the instances of the tenant, and resumes at any replica', async () => {
  const other = await cluster.namespace('http-events-other');
  await make('a');
  await shown('a', null);
  const first = await openEvents(`${one}/api/v1/instances`, token);
  await waitFor('the snapshot', () => first.seen.length === 1);
  expect(first.seen[0]?.type).toBe('snapshot');
  await make('not-mine', other);
  await rename('a', 'x');
  await waitFor('the change', () => first.seen.length === 2);
  const last = first.seen[1]?.id ?? '';
  await first.close();
  await rename('a', 'y');
  await make('b');
  await cluster.client.delete(GPU_INSTANCES, { namespace, name: 'b' });
  await shown('a', 'y');
  const second = await openEvents(`${two}/api/v1/instances`, token, last);
  await waitFor('what was missed', () => second.seen.length === 3);
  expect(names(second)).toEqual([
    ['instance', 'a', 'y'],
    ['instance', 'b', null],
    ['deleted', 'b', undefined],
  ]);
  await second.close();
});

it('says resync when too much was missed, and for ids of elsewhere', async () => {
  for (const id of ['1', 'nonsense']) {
    const events = await openEvents(`${one}/api/v1/instances`, token, id);
    await waitFor('an event', () => events.seen.length === 1);
    expect(events.seen[0]?.type).toBe('resync');
    await events.close();
  }
});

it('follows one instance to its end', async () => {
  await make('c');
  await shown('c', null);
  const events = await openEvents(`${one}/api/v1/instances/c`, token);
  await rename('c', 'z');
  await waitFor('the change', () => events.seen.some(({ json }) => json['name'] === 'z'));
  await cluster.client.delete(GPU_INSTANCES, { namespace, name: 'c' });
  await events.ended;
  expect(events.seen.at(-1)).toMatchObject({ type: 'deleted', json: { id: 'c', deleted: true } });
});

it('streams offers', async () => {
  const events = await openEvents(`${one}/api/v1/offers`, token);
  await waitFor('the snapshot', () => events.seen.length > 0);
  const product = 'TEST-GPU-EVENTS';
  const remove = await addNode(cluster.client, gpuNode('node-test-gpu-events', product, 1));
  const offered = await waitFor('the new offer', () =>
    events.seen.find(({ type, json }) => type === 'offer' && json['gpu_name'] === product && json['available'] === 1),
  );
  await remove();
  await waitFor('its end', () =>
    events.seen.find(({ type, json }) => type === 'deleted' && json['id'] === offered.json['id']),
  );
  await events.close();
  const resumed = await openEvents(`${one}/api/v1/offers`, token, offered.id);
  await waitFor('what was missed', () => resumed.seen.some(({ type }) => type === 'deleted'));
  expect(resumed.seen[0]?.type).not.toBe('resync');
  await resumed.close();
  const elsewhere = await openEvents(`${two}/api/v1/offers`, token, offered.id);
  await waitFor('an event', () => elsewhere.seen.length > 0);
  expect(elsewhere.seen[0]?.type).toBe('resync');
  await elsewhere.close();
});

it.each([
  ['is revoked', { revoked: true }],
  ['may not read any more', { scopes: ['models', 'compute:write'] }],
])('ends when the key %s', async (_name, change) => {
  const short = await cluster.key(namespace);
  const events = await openEvents(`${one}/api/v1/instances`, short);
  const key = cluster.stores.apiKeys.by('namespace', namespace).find(({ spec }) => short.startsWith(spec.prefix));
  const ref = { namespace, name: key?.metadata.name ?? '' };
  await cluster.client.patch(API_KEYS, ref, { spec: change }, { type: 'merge' });
  await events.ended;
});

it('refuses more streams than a key may have', async () => {
  const many = await cluster.key(namespace);
  const open: Events[] = [];
  for (let count = 0; count < 32; count += 1) open.push(await openEvents(`${one}/api/v1/offers`, many));
  const answer = await fetch(`${one}/api/v1/offers`, {
    headers: { authorization: `Bearer ${many}`, accept: 'text/event-stream' },
  });
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '10']);
  await Promise.all(open.map((events) => events.close()));
});
