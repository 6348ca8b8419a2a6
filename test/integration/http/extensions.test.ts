import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { createKey } from '../../../src/access/create-key.ts';
import { timeSchema } from '../../../src/http/interface/schema.ts';
import { instanceListSchema } from '../../../src/http/features/instances/schema.ts';
import { NODES, PODS } from '../../../src/kube/types.ts';
import { INSTANCE_HISTORIES } from '../../../src/resources/instance-history.ts';
import { ANSWERED, GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { type Answer, type Call, clientOf } from '../../support/http/client.ts';
import { addNode, gpuNode } from '../../support/http/fleet.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';

// What a key can do beside the specification, with the controllers behind it.

const PRODUCT = `TEST-GPU-${Math.random().toString(36).slice(2, 8)}`;
const PUBLIC_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me@laptop';

let berth: BerthProcess;
let tenant: TestNamespace;
let call: Call;
let reader: Call;
let removeNode: () => Promise<void>;

beforeAll(async () => {
  tenant = await testNamespace();
  removeNode = await addNode(tenant.client, gpuNode(`node-${PRODUCT.toLowerCase()}`, PRODUCT, 2));
  berth = await startBerth(inject('cluster').kubeconfig);
  const { token } = await createKey(tenant.client, { namespace: tenant.name, displayName: 'all' });
  const scopes = ['compute:read'] as const;
  const narrow = await createKey(tenant.client, { namespace: tenant.name, displayName: 'read', scopes: [...scopes] });
  call = clientOf(berth.url, token);
  reader = clientOf(berth.url, narrow.token);
  await waitFor('the offers of the test node', async () => {
    const { data } = await call('GET', '/offers');
    return data.some((offer) => offer['gpu_name'] === PRODUCT && offer['available'] === 2);
  });
  await waitFor('the other key', async () => (await reader('GET', '/offers')).status === 200);
});

afterAll(async () => {
  await berth[Symbol.asyncDispose]();
  await removeNode();
  await tenant[Symbol.asyncDispose]();
});

async function state(id: string, wanted: string): Promise<Answer['json']> {
  return waitFor(`${id} to be ${wanted}`, async () => {
    const { json } = await call('GET', `/instances/${id}`);
    return json['state'] === wanted && json;
  });
}

async function remove(...ids: string[]): Promise<void> {
  for (const id of ids) await call('DELETE', `/instances/${id}`);
  for (const id of ids) {
    await waitFor(`${id} to go`, async () => (await call('GET', `/instances/${id}`)).status === 404);
  }
}

it('every field of the creation reaches the pod and comes back in the record, without values of variables', async () => {
  const template = await call('POST', '/templates', { name: 't', env: { A: 'template', B: 'template' }, disk_gb: 7 });
  const answer = await call('POST', '/instances', {
    template_id: template.json['id'],
    template_image: 'app:1',
    gpu: { name: PRODUCT, count: 1, memory_mb: 80_000 },
    env: { B: 'instance', TOKEN: 'very-secret' },
    ports: [{ container_port: 8000, name: 'http' }],
    command: ['serve'],
    args: ['--fast'],
    registry: 'my-registry',
    max_duration: '12h',
    idle_timeout: '30m',
    on_expiry: 'delete',
    disk_policy: 'retain',
  });
  expect(answer.status, answer.text).toBe(201);
  const record = {
    gpu_name: PRODUCT,
    env_names: ['B', 'TOKEN'],
    ports: [{ container_port: 8000, protocol: 'tcp', name: 'http' }],
    command: ['serve'],
    args: ['--fast'],
    runtype: 'args',
    disk_gb: 7,
    registry: 'my-registry',
    max_duration: '12h',
    idle_timeout: '30m',
    on_expiry: 'delete',
    on_no_capacity: 'fail',
    disk_policy: 'retain',
    place_in_line: null,
    template_changed: false,
  };
  expect(answer.json).toMatchObject(record);
  const running = await state(answer.id, 'running');
  const ready = Date.parse((running['stages'] as { ready: string }).ready);
  expect(Date.parse(timeSchema.parse(running['expires_at'])) - ready).toBe(12 * 3_600_000);
  for (const path of ['/instances', `/instances/${answer.id}`]) {
    const { text } = await reader('GET', path);
    expect([text.includes('TOKEN'), text.includes('very-secret')]).toEqual([true, false]);
  }
  const { items } = await tenant.client.list(PODS, { namespace: tenant.name });
  const pod = items.find(({ metadata }) => metadata.name.startsWith(answer.id))?.spec;
  expect(pod?.imagePullSecrets).toEqual([{ name: 'my-registry' }]);
  expect(pod?.containers[0]).toMatchObject({ image: 'app:1', command: ['serve'], args: ['--fast'] });
  const env = Object.fromEntries((pod?.containers[0]?.env ?? []).map(({ name, value }) => [name, value]));
  expect(env).toMatchObject({ A: 'template', B: 'instance', TOKEN: 'very-secret' });

  await call('PUT', `/templates/${template.id}`, { name: 't', env: {} });
  const warned = await waitFor('the warning', async () => {
    const { json } = await call('GET', `/instances/${answer.id}`);
    return json['template_changed'] === true && json;
  });
  expect(warned['warnings']).toEqual([
    expect.stringMatching(/^No SSH key opens this instance/),
    expect.stringMatching(/^The template has changed since/),
  ]);
  await remove(answer.id);
});

it('a request that is repeated from the deletion of its instance on rents no other', async () => {
  for (const over of [{}, { on_no_capacity: 'queue', gpu: { name: PRODUCT, count: 3 } }]) {
    const headers = { 'idempotency-key': `deleted-${Object.keys(over).length}` };
    const body = { gpu: { name: PRODUCT }, ...over };
    const { id, status } = await call('POST', '/instances', body, headers);
    expect(status).toBe(201);
    const gone = await call('DELETE', `/instances/${id}`);
    expect(gone.status, gone.text).toBe(200);
    const repeat = async (): Promise<void> => {
      const answer = await call('POST', '/instances', body, headers);
      expect([answer.status, answer.error['code']]).toEqual([409, 'idempotency_conflict']);
    };
    await Promise.all([1, 2, 3].map(repeat));
    await waitFor(`${id} to go`, async () => (await call('GET', `/instances/${id}`)).status === 404);
    await repeat();
    const { items } = await tenant.client.list(INSTANCE_HISTORIES, { namespace: tenant.name });
    const marks = items.filter(({ spec }) => spec.instance === id).map(({ metadata }) => metadata.annotations);
    expect(marks).toEqual([expect.objectContaining({ [ANSWERED]: 'true' })]);
  }
});

it('an instance that queues is there at once, shows its place, and gets it when there is one', async () => {
  const gpu = { name: PRODUCT, count: 2 };
  const first = await call('POST', '/instances', { gpu, on_no_capacity: 'queue' });
  expect(first.json).toMatchObject({ gpu_count: 2, place_in_line: null });
  const refused = await call('POST', '/instances', { gpu });
  expect([refused.status, refused.error['code']]).toEqual([409, 'offer_unavailable']);
  const key = { 'idempotency-key': 'queue' };
  const body = { gpu, on_no_capacity: 'queue', name: 'waiting' };
  const answers = [await call('POST', '/instances', body, key), await call('POST', '/instances', body)];
  answers.push(await call('POST', '/instances', { gpu: { name: PRODUCT }, type: 1, on_no_capacity: 'queue' }));
  const waiting = { state: 'pending', reason: 'WaitingForCapacity', on_no_capacity: 'queue' };
  for (const { json, status } of answers) expect([status, json]).toMatchObject([201, waiting]);
  const again = await call('POST', '/instances', body, key);
  expect([again.status, again.id, again.headers.get('idempotent-replayed')]).toEqual([201, answers[0]?.id, 'true']);
  // Two that came in the same second are served in the order of their names.
  const places = async () => {
    const { data } = await call('GET', '/instances');
    const inLine = instanceListSchema
      .parse({ object: 'list', data })
      .data.map(({ place_in_line: place, id }) => ({ place, id }));
    return inLine.filter(({ place }) => place !== null).toSorted((a, b) => Number(a.place) - Number(b.place));
  };
  const before = await waitFor('all in line', async () => {
    const inLine = await places();
    return inLine.length === 3 && inLine;
  });
  expect(before.map(({ place }) => place)).toEqual([1, 2, 3]);
  expect(before[2]?.id).toBe(answers[2]?.id);
  await remove(first.id);
  await state(before[0]?.id ?? '', 'running');
  expect(await places()).toEqual([
    { place: 1, id: before[1]?.id },
    { place: 2, id: before[2]?.id },
  ]);
  await remove(...before.map(({ id }) => id));
});

it('queueing for what can never be is refused, and leaves nothing', async () => {
  const answer = await call('POST', '/instances', { gpu: { name: PRODUCT }, disk_gb: 16_384, on_no_capacity: 'queue' });
  expect([answer.status, answer.error['code']], answer.text).toEqual([409, 'offer_unavailable']);
  await waitFor('nothing', async () => {
    return (await tenant.client.list(GPU_INSTANCES, { namespace: tenant.name })).items.length === 0;
  });
});

it('a running instance is extended, changed and opened to other keys', async () => {
  const { id } = await call('POST', '/instances', { gpu: { name: PRODUCT }, max_duration: '1h', name: 'mine' });
  const before = await state(id, 'running');
  expect(before['warnings']).toEqual([expect.stringMatching(/^No SSH key opens this instance/)]);
  const key = await call('POST', '/ssh-keys', { name: 'laptop', public_key: PUBLIC_KEY });
  const patch = (body: object) => call('PATCH', `/instances/${id}`, body);
  const changes = { max_duration: '48h', idle_timeout: '2h', on_expiry: 'delete', ssh_key_ids: [key.json['id']] };
  const label = 'at the same time';
  const [extended, labelled] = await Promise.all([patch(changes), patch({ label })]);
  expect([extended.status, extended.json], extended.text).toMatchObject([200, changes]);
  expect([labelled.status, labelled.json], labelled.text).toMatchObject([200, { label }]);
  // A read comes from the cache of the replica, which may not have the second change yet.
  const json = await waitFor('both changes', async () => {
    const read = (await call('GET', `/instances/${id}`)).json;
    return read['max_duration'] === changes.max_duration && read['label'] === label && read;
  });
  expect(json).toMatchObject({ ...changes, label, name: 'mine', state: 'running' });
  const expires = (one: Answer['json']): number => Date.parse(timeSchema.parse(one['expires_at']));
  expect(expires(json) - expires(before)).toBe(47 * 3_600_000);
  await waitFor('the warning to go', async () => {
    return JSON.stringify((await call('GET', `/instances/${id}`)).json['warnings']) === '[]';
  });
  const cleared = await patch({ max_duration: null, idle_timeout: null, on_expiry: null, ssh_key_ids: null });
  const gone = { max_duration: null, idle_timeout: null, on_expiry: 'stop', ssh_key_ids: [], expires_at: null };
  expect(cleared.json).toMatchObject(gone);
  const refusedFields = async (body: object): Promise<unknown> => (await patch(body)).error['fields'];
  expect(await refusedFields({ ssh_key_ids: [1], max_duration: '0.001s' })).toMatchObject([
    { path: 'max_duration', expected: expect.stringContaining('which this start has run') as string },
    { path: 'ssh_key_ids[0]' },
  ]);
  expect(await refusedFields({ max_duration: 'a day' })).toMatchObject([{ path: 'max_duration' }]);
  await remove(id);
});

it('what is preempted waits under the default for no capacity, and comes back though its offer is another by then', async () => {
  const offers = async () => (await call('GET', '/offers')).data.filter((offer) => offer['gpu_name'] === PRODUCT);
  const both = await waitFor('an offer of both GPUs', async () => {
    return (await offers()).find((offer) => offer['gpu_count'] === 2 && offer['available'] === 1);
  });
  const rent = (type: 0 | 1) => call('POST', '/instances', { ask_id: both['id'], type });
  const spot = await rent(1);
  expect([spot.status, spot.json['on_no_capacity']], spot.text).toEqual([201, 'fail']);
  const before = await state(spot.id, 'running');
  const sure = await rent(0);
  expect(sure.status, sure.text).toBe(201);
  await state(sure.id, 'running');
  expect(await state(spot.id, 'interrupted')).toMatchObject({
    reason: 'Preempted',
    node: null,
    gpu_name: PRODUCT,
    gpu_count: 2,
    price_per_hour: before['price_per_hour'],
  });
  // As a driver of another version reports it.
  const node = { name: `node-${PRODUCT.toLowerCase()}` };
  const report = (memory: string) =>
    tenant.client.patch(NODES, node, { metadata: { labels: { 'nvidia.com/gpu.memory': memory } } }, { type: 'merge' });
  await report('81555');
  await waitFor('the offer to be another', async () => (await offers()).every(({ id }) => id !== both['id']));
  await remove(sure.id);
  const after = await state(spot.id, 'running');
  expect(after).toMatchObject({ gpu_count: 2, gpu_memory_mb: 81_555, max_price_per_hour: before['price_per_hour'] });
  expect(after['offer_id']).not.toBe(both['id']);
  await remove(spot.id);
  await report('81559');
  await waitFor('the offer to be as before', async () => (await offers()).some(({ id }) => id === both['id']));
});
