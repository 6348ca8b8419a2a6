import { afterAll, beforeAll, expect, it } from 'vitest';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { INSTANCE_TEMPLATES } from '../../../src/resources/instance-template.ts';
import { NAMESPACES } from '../../../src/kube/types.ts';
import type { Cluster } from '../../support/http/api.ts';
import { type Call, clientOf } from '../../support/http/client.ts';
import { addNode, gpuNode } from '../../support/http/fleet.ts';
import { startGranter } from '../../support/http/granter.ts';
import { openCluster } from '../../support/http/open.ts';
import { waitFor } from '../../support/wait-for.ts';

const PRODUCT = `TEST-GPU-${Math.random().toString(36).slice(2, 8)}`;

const CONTENT = {
  name: 'server',
  image: 'app:1',
  runtype: 'args',
  args: ['serve'],
  env: { A: 'b' },
  ports: [{ container_port: 8000, protocol: 'tcp', name: 'http' }],
  disk_gb: 20,
  registry: 'my-registry',
  on_start: null,
  command: null,
};

let cluster: Cluster;
let namespace: string;
let other: string;
let call: Call;
let reader: Call;
let stranger: Call;
let stopGranter: () => void;
let removeNode: () => Promise<void>;

// The calls go to two replicas in turns: what one has made, changed or deleted, the other one shows so.
beforeAll(async () => {
  cluster = await openCluster();
  removeNode = await addNode(cluster.client, gpuNode(`node-${PRODUCT.toLowerCase()}`, PRODUCT, 8));
  namespace = await cluster.namespace('http-templates');
  other = await cluster.namespace('http-templates-other');
  stopGranter = startGranter({ ...cluster, ...cluster.stores, serves: (name) => name === namespace });
  call = clientOf(cluster.api.url, await cluster.key(namespace));
  reader = clientOf(cluster.api.url, await cluster.key(namespace, { scopes: ['compute:read'] }));
  stranger = clientOf(cluster.api.url, await cluster.key(other));
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

async function make(body: object = CONTENT, by: Call = call): Promise<string> {
  const answer = await by('POST', '/templates', body);
  expect(answer.status, answer.text).toBe(201);
  return answer.id;
}

it('a template is made, read, replaced and deleted', async () => {
  const made = await call('POST', '/templates', CONTENT);
  const path = `/templates/${made.id}`;
  expect([made.status, made.headers.get('location')]).toEqual([201, `/api/v1${path}`]);
  expect(made.json).toMatchObject({ ...CONTENT, object: 'template', shared: false, read_only: false });
  expect((await call('GET', path)).text).toBe(made.text);
  expect((await reader('GET', path)).text).toBe(made.text);
  const replaced = await call('PUT', path, { name: 'server', image: 'app:2', runtype: null });
  expect(replaced.status, replaced.text).toBe(200);
  const cleared = { env: {}, ports: [], args: null, disk_gb: null, registry: null, runtype: null };
  expect(replaced.json).toMatchObject({ id: made.json['id'], image: 'app:2', ...cleared });
  expect(replaced.json['hash_id']).not.toBe(made.json['hash_id']);
  expect((await call('GET', path)).text).toBe(replaced.text);
  expect((await call('GET', path)).text).toBe(replaced.text);
  expect((await call('PUT', path, CONTENT)).json['hash_id']).toBe(made.json['hash_id']);
  const deleted = await call('DELETE', path);
  expect([deleted.status, deleted.json]).toEqual([200, { id: made.json['id'], object: 'template', deleted: true }]);
  for (const method of ['GET', 'GET', 'PUT', 'DELETE']) {
    const answer = await call(method, path, method === 'PUT' ? CONTENT : undefined);
    expect([method, answer.status, answer.error['code']]).toEqual([method, 404, 'template_not_found']);
  }
});

it('an Idempotency-Key makes one template, whatever became of it', async () => {
  const headers = { 'idempotency-key': 'template' };
  const answers = await Promise.all([1, 2, 3].map(() => call('POST', '/templates', CONTENT, headers)));
  expect(new Set(answers.map(({ status, id }) => `${status} ${id}`)).size).toBe(1);
  expect(answers.filter(({ headers: h }) => h.get('idempotent-replayed') === null)).toHaveLength(1);
  const changed = await call('POST', '/templates', { ...CONTENT, name: 'other' }, headers);
  expect([changed.status, changed.error['code']]).toEqual([409, 'idempotency_conflict']);
});

it.each([
  [{}, 'name'],
  [{ name: 'n'.repeat(129) }, 'name'],
  [{ name: 'n', image: 'No Image' }, 'image'],
  [{ name: 'n', runtype: 'ssh_direct' }, 'runtype'],
  [{ name: 'n', runtype: 'ssh', args: ['x'] }, 'args'],
  [{ name: 'n', env: { NVIDIA_DRIVER_CAPABILITIES: 'all' } }, 'env.NVIDIA_DRIVER_CAPABILITIES'],
  [{ name: 'n', disk_gb: 0 }, 'disk_gb'],
  [{ name: 'n', max_duration: '1h' }, 'max_duration'],
  [{ name: 'n', env: Object.fromEntries([1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => [`A${n}`, 'x'.repeat(32_000)])) }, ''],
])('%.60j is refused at %s, in POST and PUT', async (body, path) => {
  const id = await make({ name: 'one' });
  for (const [method, target] of [['POST', '/templates'] as const, ['PUT', `/templates/${id}`] as const]) {
    const answer = await call(method, target, body);
    expect([method, answer.status, answer.error['code']]).toEqual([method, 422, 'validation_failed']);
    expect(answer.error['fields']).toEqual([{ path, expected: expect.stringMatching(/\w{3}/) as string }]);
  }
});

it('reading needs compute:read alone, and writing compute:write', async () => {
  const id = await make({ name: 'one' });
  expect((await reader('GET', '/templates')).status).toBe(200);
  for (const [method, path] of [
    ['POST', '/templates'],
    ['PUT', `/templates/${id}`],
    ['DELETE', `/templates/${id}`],
  ]) {
    expect((await reader(method ?? '', path ?? '', {})).error['code']).toBe('insufficient_scope');
  }
});

it('an instance is rented with what a template said a moment ago, by id and by hash', async () => {
  const id = Number(await make({ name: 'fresh', image: 'app:1' }));
  const byId = await call('POST', '/instances', { template_id: id });
  expect([byId.status, byId.json['template_image']], byId.text).toEqual([201, 'app:1']);
  const { json } = await call('PUT', `/templates/${id}`, { name: 'fresh', image: 'app:3' });
  const byHash = await call('POST', '/instances', { template_hash_id: json['hash_id'], template_id: id });
  expect(byHash.status, byHash.text).toBe(201);
  const stored = await cluster.client.get(GPU_INSTANCES, { namespace, name: byHash.id });
  expect(stored.spec).toMatchObject({ templateId: id, templateHashId: json['hash_id'] });
  const other404 = await stranger('POST', '/instances', { template_id: id });
  expect([other404.status, other404.error['code']]).toEqual([404, 'template_not_found']);
});

it('a shared template is marked, seen by all and changed by its author alone', async () => {
  const id = await make({ name: 'for all', image: 'app:1' });
  const { name } =
    (await cluster.client.list(INSTANCE_TEMPLATES, { namespace })).items.find(
      ({ spec }) => spec.displayName === 'for all',
    )?.metadata ?? {};
  const path = `/templates/${id}`;
  expect((await stranger('GET', path)).status).toBe(404);
  const labels = { metadata: { labels: { 'berth.dev/shared': 'true' } } };
  await cluster.client.patch(INSTANCE_TEMPLATES, { namespace, name: name ?? '' }, labels, { type: 'merge' });
  const sharing = { metadata: { labels: { 'berth.dev/shared-templates': 'true' } } };
  await cluster.client.patch(NAMESPACES, { name: namespace }, sharing, { type: 'merge' });
  const listed = await waitFor('both replicas to show it', async () => {
    const lists = await Promise.all([stranger('GET', '/templates'), stranger('GET', '/templates')]);
    const found = lists.map(({ data }) => data.find((one) => one['name'] === 'for all'));
    return found.every((one) => one !== undefined) && found[0];
  });
  expect(listed).toMatchObject({ shared: true, read_only: true });
  expect(listed).not.toHaveProperty('env');
  expect((await stranger('GET', path)).json).toMatchObject({ read_only: true, image: 'app:1' });
  for (const method of ['PUT', 'DELETE']) {
    const answer = await stranger(method, path, method === 'PUT' ? CONTENT : undefined);
    expect([answer.status, answer.error['code']]).toEqual([403, 'template_read_only']);
  }
  expect((await call('GET', path)).json).toMatchObject({ shared: true, read_only: false });
  expect((await call('DELETE', path)).status).toBe(200);
});
