import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { offerListSchema } from '../../../src/http/features/offers/schema.ts';
import { instanceListSchema, instanceSchema } from '../../../src/http/features/instances/schema.ts';
import { type Call, clientOf } from '../../support/http/client.ts';
import { addNode, gpuNode } from '../../support/http/fleet.ts';
import { startGranter } from '../../support/http/granter.ts';
import type { Cluster } from '../../support/http/api.ts';
import { openCluster } from '../../support/http/open.ts';
import type { Addresses } from '../../support/http/replicas.ts';
import { waitFor } from '../../support/wait-for.ts';

const PRODUCT = `TEST-GPU-${Math.random().toString(36).slice(2, 8)}`;

let cluster: Cluster;
let api: Addresses;
let namespace: string;
let call: Call;
let removeNode: () => Promise<void>;
let stopGranter: () => void;

async function offerOf(gpuCount: number): Promise<number> {
  const { data } = await call('GET', '/offers');
  const offer = data.find((one) => one['gpu_name'] === PRODUCT && one['gpu_count'] === gpuCount);
  return Number(offer?.['id']);
}

async function rent(body: object = {}): Promise<string> {
  const answer = await call('POST', '/instances', { ask_id: await offerOf(1), ...body });
  expect(answer.status, answer.text).toBe(201);
  return answer.id;
}

beforeAll(async () => {
  cluster = await openCluster();
  ({ api } = cluster);
  removeNode = await addNode(cluster.client, gpuNode(`node-${PRODUCT.toLowerCase()}`, PRODUCT, 8));
  namespace = await cluster.namespace('http-instances');
  const serves = (name: string): boolean => name === namespace;
  stopGranter = startGranter({ ...cluster, ...cluster.stores, serves });
  call = clientOf(api.url, await cluster.key(namespace));
  await waitFor('the offers of the test node', async () => {
    const { data } = await call('GET', '/offers');
    return data.some((offer) => offer['gpu_name'] === PRODUCT && offer['available'] === 8);
  });
});

afterAll(async () => {
  stopGranter();
  await removeNode();
  await cluster[Symbol.asyncDispose]();
});

describe('GET /offers', () => {
  it('lists offers as the schema has them', async () => {
    const answer = await call('GET', '/offers');
    expect(answer.status).toBe(200);
    const list = offerListSchema.parse(answer.json);
    const offer = list.data.find(({ gpu_name, gpu_count }) => gpu_name === PRODUCT && gpu_count === 8);
    expect(offer).toMatchObject({ object: 'offer', isolation: 'whole', simulated: true, driver_version: '550.54.15' });
  });

  it('costs nothing to ask again with If-None-Match', async () => {
    const first = await call('GET', '/offers');
    const etag = first.headers.get('etag') ?? '';
    const second = await call('GET', '/offers', undefined, { 'if-none-match': etag });
    expect([second.status, second.text]).toEqual([304, '']);
  });
});

describe('POST /instances', () => {
  it('answers 201 with the place granted and every field of the payload', async () => {
    const body = {
      type: 1,
      ask_id: await offerOf(2),
      name: 'my "instance" \u{1F680}',
      stats: '{"a":1}',
      template_image: 'nvidia/cuda:12.4.1-base-ubuntu22.04',
      runtype: 'jupyter_direc ssh_direc ssh_proxy',
      disk_gb: 20,
      offer_disk_space: 12.5,
      install_monitoring: true,
      ssh_key_ids: [],
      template_id: null,
      template_hash_id: null,
    };
    const answer = await call('POST', '/instances', body);
    expect(answer.status, answer.text).toBe(201);
    const record = instanceSchema.parse(answer.json);
    expect(record).toMatchObject({
      type: 1,
      offer_id: body.ask_id,
      name: body.name,
      stats: body.stats,
      template_image: body.template_image,
      runtype: 'jupyter',
      disk_gb: 20,
      offer_disk_space: 12.5,
      install_monitoring: true,
      gpu_name: PRODUCT,
      gpu_count: 2,
      node: `node-${PRODUCT.toLowerCase()}`,
      cuda_version: '12.4',
    });
    expect(answer.headers.get('location')).toBe(`/api/v1/instances/${record.id}`);
    const stored = await cluster.client.get(GPU_INSTANCES, { namespace, name: record.id });
    const by = { 'berth.dev/created-by': expect.stringMatching(/^key\/key-/) as string };
    expect(stored.metadata.annotations).toEqual(by);
    expect((await call('GET', `/instances/${record.id}`)).json).toMatchObject({ id: record.id, name: body.name });
    expect((await call('DELETE', `/instances/${record.id}`)).json).toEqual({
      id: record.id,
      object: 'instance',
      deleted: true,
    });
  });

  it.each([
    ['no body', undefined],
    ['null', 'null'],
    ['an empty object', {}],
    ['nulls', { type: null, ask_id: null, name: null, ssh_key_ids: null, template_image: null }],
    ['a body that names no offer', { stats: 'x' }],
  ])('rents the cheapest free offer for %s', async (_name, body) => {
    // Offers come cheapest first, and without a word about GPUs one of them is meant, whole or not.
    const { data } = await call('GET', '/offers');
    const cheapest = data.find((offer) => offer['gpu_count'] === 1 && Number(offer['available']) > 0);
    const answer = await call('POST', '/instances', body);
    expect(answer.status, answer.text).toBe(201);
    expect(answer.json).toMatchObject({ type: 0, name: null, template_image: 'debian:12', runtype: 'ssh' });
    expect(answer.json['offer_id']).toBe(cheapest?.['id']);
    await call('DELETE', `/instances/${answer.id}`);
    await waitFor('the place to be free', async () => (await call('GET', `/instances/${answer.id}`)).status === 404);
  });

  it.each([
    [{ type: 2 }, 'type'],
    [{ type: '0' }, 'type'],
    [{ ask_id: 1.5 }, 'ask_id'],
    [{ name: 'x'.repeat(129) }, 'name'],
    [{ template_image: 'UPPER CASE' }, 'template_image'],
    [{ template_image: 'a'.repeat(513) }, 'template_image'],
    [{ template_hash_id: 'x'.repeat(65) }, 'template_hash_id'],
    [{ disk_gb: 0 }, 'disk_gb'],
    [{ disk_gb: 16385 }, 'disk_gb'],
    [{ disk_gb: 1.5 }, 'disk_gb'],
    [{ offer_disk_space: -1 }, 'offer_disk_space'],
    [{ offer_disk_space: 1048577 }, 'offer_disk_space'],
    [{ install_monitoring: 'yes' }, 'install_monitoring'],
    [{ ssh_key_ids: [4711] }, 'ssh_key_ids[0]'],
    [{ ssh_key_ids: ['1'] }, 'ssh_key_ids[0]'],
    [{ ssh_key_ids: [null] }, 'ssh_key_ids[0]'],
    [{ disk: 10 }, 'disk'],
    ['{"__proto__": {"type": 1}}', '__proto__'],
    ['[]', ''],
    ['"text"', ''],
    ['1', ''],
  ])('refuses %j and names the field', async (body, path) => {
    const answer = await call('POST', '/instances', body);
    expect([answer.status, answer.error['code']], answer.text).toEqual([422, 'validation_failed']);
    expect(answer.error['fields']).toEqual([{ path, expected: expect.stringMatching(/\w{3}/) as string }]);
  });

  it.each([1, -1, 0, 2 ** 31, Number.MAX_SAFE_INTEGER])('refuses offer %d with alternatives', async (id) => {
    const answer = await call('POST', '/instances', { ask_id: id });
    expect([answer.status, answer.error['code']]).toEqual([409, 'offer_unavailable']);
    expect(answer.error['alternatives']).not.toEqual([]);
    expect(offerListSchema.safeParse({ object: 'list', data: answer.error['alternatives'] }).success).toBe(true);
  });

  it('refuses an offer that changed, and shows it', async () => {
    const id = await offerOf(1);
    const answer = await call('POST', '/instances', { ask_id: id, offer_disk_space: 1_048_576 });
    expect([answer.status, answer.error['code']]).toEqual([409, 'offer_changed']);
    expect(answer.error['offer']).toMatchObject({ id });
    await waitFor(
      'nothing left',
      async () => (await cluster.client.list(GPU_INSTANCES, { namespace })).items.length === 0,
    );
  });

  it('takes ids of SSH keys of the tenant', async () => {
    const key = await call('POST', '/ssh-keys', {
      name: 'laptop',
      public_key: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me@laptop',
    });
    expect(key.status, key.text).toBe(201);
    const id = await rent({ ssh_key_ids: [key.json['id'], key.json['id']] });
    expect((await call('GET', `/instances/${id}`)).json['ssh_key_ids']).toEqual([key.json['id']]);
    await call('DELETE', `/instances/${id}`);
  });
});

describe('Idempotency-Key', () => {
  it('returns the first answer again and again', async () => {
    const headers = { 'idempotency-key': 'order 66' };
    const body = { ask_id: await offerOf(1), name: 'once' };
    const answers = await Promise.all([1, 2, 3, 4, 5].map(() => call('POST', '/instances', body, headers)));
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201]);
    expect(new Set(answers.map(({ json }) => json['id'])).size).toBe(1);
    expect(answers.filter(({ headers: h }) => h.get('idempotent-replayed') === null)).toHaveLength(1);
    const other = await call('POST', '/instances', { ...body, name: 'twice' }, headers);
    expect([other.status, other.error['code']]).toEqual([409, 'idempotency_conflict']);
    const same = await call(
      'POST',
      '/instances',
      { name: 'once', label: undefined, type: null, ask_id: body.ask_id },
      headers,
    );
    expect(same.status).toBe(201);
    await call('DELETE', `/instances/${same.id}`);
  });

  it.each(['', 'x'.repeat(256), 'caf\u00e9'])('refuses %j', async (key) => {
    const answer = await call('POST', '/instances', {}, { 'idempotency-key': key });
    expect([answer.status, answer.error['code']]).toEqual([400, 'bad_request']);
  });
});

describe('one instance', () => {
  it('is renamed field by field', async () => {
    const id = await rent({ name: 'before' });
    const patch = (body?: unknown) => call('PATCH', `/instances/${id}`, body);
    expect((await patch({ label: 'blue' })).json).toMatchObject({ label: 'blue', name: 'before' });
    expect((await patch({ name: 'after' })).json).toMatchObject({ label: 'blue', name: 'after' });
    expect((await patch({ label: null })).json).toMatchObject({ label: null, name: 'after' });
    expect((await patch()).json).toMatchObject({ label: null, name: 'after' });
    expect((await patch({ label: 'x'.repeat(256) })).status).toBe(422);
    expect((await patch({ disk_gb: 1 })).status).toBe(422);
    expect((await patch({ state: 'paused' })).status).toBe(422);
    expect((await patch({ state: 'stopped' })).status).toBe(200);
    const stored = await cluster.client.get(GPU_INSTANCES, { namespace, name: id });
    expect(stored.spec).toMatchObject({ powerState: 'Stopped', displayName: 'after' });
    // Of an instance that ended by itself powerState says Running already: the request is another.
    expect((await patch({ state: 'running' })).status).toBe(200);
    const { spec } = await cluster.client.get(GPU_INSTANCES, { namespace, name: id });
    expect(spec).toMatchObject({ powerState: 'Running', startRequest: expect.stringMatching(/^2\d{3}-/) });
    await call('DELETE', `/instances/${id}`);
  });

  it('is deleted once and then gone', async () => {
    const id = await rent();
    expect((await call('DELETE', `/instances/${id}`)).status).toBe(200);
    const gone = await waitFor('404', async () => {
      const answer = await call('GET', `/instances/${id}`);
      return answer.status === 404 && answer;
    });
    expect(gone.error).toEqual({ message: 'No instance has this id.', code: 'instance_not_found' });
    expect((await call('DELETE', `/instances/${id}`)).status).toBe(404);
    expect((await call('PATCH', `/instances/${id}`, { name: 'x' })).status).toBe(404);
  });

  it.each(['nothing', '..%2f..%2fapi-keys', 'A', '%00', 'x'.repeat(300), '%ff'])(
    'is not found for id %s',
    async (id) => {
      const answer = await call('GET', `/instances/${id}`);
      expect([400, 404]).toContain(answer.status);
      expect(answer.error['code']).toMatch(/^(instance_not_found|bad_request)$/);
    },
  );

  it('stands in the list, oldest first', async () => {
    const first = await rent();
    const second = await rent();
    const answer = await waitFor('both', async () => {
      const list = await call('GET', '/instances');
      return list.data.length === 2 && list;
    });
    const list = instanceListSchema.parse(answer.json);
    expect(new Set(list.data.map(({ id }) => id))).toEqual(new Set([first, second]));
    await call('DELETE', `/instances/${first}`);
    await call('DELETE', `/instances/${second}`);
  });
});
