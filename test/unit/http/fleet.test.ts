import { afterEach, expect, it } from 'vitest';
import { personSigningKey, signPersonToken } from '../../../src/access/person-token.ts';
import type { FleetRecord } from '../../../src/http/features/fleet/schema.ts';
import { fleetSchema } from '../../../src/http/features/fleet/schema.ts';
import type { PrincipalScope } from '../../../src/access/principal.ts';
import type { Scope } from '../../../src/resources/api-key.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { type LoneApi, type LoneApiOptions, startLoneApi } from '../../support/http/lone-api.ts';
import { claimOn, gpuInstance, gpuNode, gpuPod, gpuPool } from '../../support/inventory-world.ts';

let api: LoneApi | undefined;

afterEach(async () => {
  await api?.close();
  api = undefined;
});

function instanceOf(namespace: string, name: string, node: string, gpuCount: number) {
  const made = gpuInstance(name, {}, { claim: claimOn(node, { gpuCount }) });
  return { ...made, metadata: { ...made.metadata, namespace, uid: `uid-${namespace}-${name}` } };
}

/** The same, and the kubelet reports one of its GPUs as unhealthy. */
function unhealthyOf(...made: Parameters<typeof instanceOf>): GpuInstance {
  const instance = instanceOf(...made);
  const unhealthyGPUs = [{ id: 'GPU-b', since: '2026-01-01T00:00:00Z' }];
  return { ...instance, status: { ...instance.status, unhealthyGPUs } };
}

function waiting(namespace: string, name: string, type: 'OnDemand' | 'Interruptible' = 'OnDemand') {
  const condition = { status: 'False', reason: 'WaitingForCapacity', lastTransitionTime: '2026-01-01T00:00:00Z' };
  const conditions = [
    { ...condition, type: 'Claimed', message: 'No place is free.' },
    { ...condition, type: 'Ready', message: 'No place is free.' },
  ];
  const made = gpuInstance(name, { type }, { conditions } as never);
  return { ...made, metadata: { ...made.metadata, namespace, uid: `uid-${namespace}-${name}` } };
}

const WORLD: Omit<LoneApiOptions, 'tenants'> = {
  nodes: [
    gpuNode('a'),
    gpuNode('b', { cordoned: true }),
    gpuNode('c', { ready: false }),
    gpuNode('d', { taints: [{ key: 'maintenance', effect: 'NoSchedule' }] }),
    // Of its eight GPUs the device plugin has taken two out of service.
    { ...gpuNode('e', { allocatable: { 'nvidia.com/gpu': '6' } }), ...broken('e', '6', '8') },
    // And here all of them.
    broken('f', '0', '8'),
    gpuNode('no-gpus', { allocatable: { 'nvidia.com/gpu': '0', 'nvidia.com/hostdev': '4' } }),
  ],
  pools: [
    {
      ...gpuPool('all', { prices: [{ product: '*', onDemand: '2.00', interruptible: '1.00' }] }),
      metadata: { name: 'all', uid: 'pool-1', generation: 7 },
    },
  ],
  instances: [
    instanceOf('team', 'one', 'a', 3),
    instanceOf('rivals', 'two', 'a', 2),
    waiting('team', 'third', 'Interruptible'),
    waiting('rivals', 'fourth'),
  ],
  pods: [gpuPod('of nobody', 'a', { gpus: 1 })],
};

function broken(name: string, allocatable: string, capacity: string) {
  const node = gpuNode(name, { allocatable: { 'nvidia.com/gpu': allocatable } });
  return { ...node, status: { ...node.status, capacity: { 'nvidia.com/gpu': capacity } } };
}

const UNLIMITED = { gpu_ceilings: [], instances_max: null };

function personWith(scopes: PrincipalScope[]): Promise<string> {
  const [expires, until] = [Date.now() + 45_000, Date.now() + 3_600_000];
  const claims = { id: 'ab'.repeat(16), username: 'ann', namespace: 'team', scopes, expires, until, session: 'sealed' };
  return signPersonToken(claims, personSigningKey(Buffer.alloc(32, 1)));
}

function get(token: string): Promise<Response> {
  const headers = { authorization: `Bearer ${token}` };
  return fetch(`http://127.0.0.1:${api?.address.port}/api/v1/fleet`, { headers });
}

async function fleet(): Promise<FleetRecord> {
  const answer = await get(await personWith(['compute:read', 'fleet:read']));
  expect(answer.status).toBe(200);
  const record = await answer.json();
  expect(fleetSchema.safeParse(record).error).toBeUndefined();
  return record as FleetRecord;
}

it('says of each GPU who has it, and of each node whether it is for rent', async () => {
  api = await startLoneApi({ tenants: ['team'], ...WORLD });
  const { nodes, pools } = await fleet();
  expect(nodes.map(({ name, state }) => `${name} ${state}`)).toEqual([
    'a ready',
    'b cordoned',
    'c not_ready',
    'd closed',
    'e ready',
    'f ready',
  ]);
  const [a, , , d, e, f] = nodes.map(({ gpus }) => gpus[0]);
  expect(a).toMatchObject({ total: 8, others: 1, free: 2, unhealthy: 0 });
  expect(a?.instances.map((one) => [one.namespace, one.id, one.gpu_count])).toEqual([
    ['team', 'one', 3],
    ['rivals', 'two', 2],
  ]);
  expect(d).toMatchObject({ total: 8, free: 8 });
  expect(e).toMatchObject({ total: 8, free: 6, unhealthy: 2 });
  expect(f).toMatchObject({ total: 8, free: 0, unhealthy: 8 });
  expect(nodes[3]?.message).toContain('maintenance:NoSchedule');
  expect(pools).toEqual([
    {
      name: 'all',
      version: 'pool-1/7',
      currency: 'USD',
      sizes: [1, 2, 4, 8],
      // Also those without GPUs are in the pool; here stand those with some.
      nodes: 6,
      gpus: 48,
      free: 8,
      prices: [{ gpu_name: '*', on_demand: '2.00', interruptible: '1.00' }],
    },
  ]);
});

it('says that nothing is offered where there is no GPUPool, and who has what was rented', async () => {
  api = await startLoneApi({ tenants: ['team'], ...WORLD, pools: [] });
  const { nodes, pools } = await fleet();
  expect(pools).toEqual([]);
  expect(nodes[0]).toMatchObject({
    state: 'not_for_rent',
    message: 'There is no GPUPool: nothing is offered.',
    gpus: [{ instances: [{ id: 'one' }, { id: 'two' }] }],
  });
});

it('says which GPU of an instance is unhealthy', async () => {
  const instances = [unhealthyOf('team', 'one', 'e', 2), instanceOf('rivals', 'two', 'e', 2)];
  api = await startLoneApi({ tenants: ['team'], ...WORLD, instances });
  const e = (await fleet()).nodes.find(({ name }) => name === 'e')?.gpus[0];
  expect(e).toMatchObject({ total: 8, unhealthy: 2, free: 2 });
  expect(e?.instances.map((one) => [one.id, one.unhealthy_gpus])).toEqual([
    ['one', ['GPU-b']],
    ['two', []],
  ]);
});

it('says who waits in the order of the line, and what each tenant has', async () => {
  api = await startLoneApi({ tenants: ['team', 'rivals'], ...WORLD });
  const { waiting: line, waiting_total: total, tenants } = await fleet();
  expect(line.map(({ namespace, id, message }) => `${namespace}/${id} ${message}`)).toEqual([
    'rivals/fourth No place is free.',
    'team/third No place is free.',
  ]);
  expect(total).toBe(2);
  expect(tenants).toEqual([
    { namespace: 'team', policies: [], ...UNLIMITED, instances: 2, gpus: 3, waiting: 1 },
    { namespace: 'rivals', policies: [], ...UNLIMITED, instances: 2, gpus: 2, waiting: 1 },
  ]);
});

it('says who displaced whom, the last one first', async () => {
  const lost = (name: string, by: string, at: string): GpuInstance => {
    const made = waiting('team', name, 'Interruptible');
    const ending = { reason: 'Preempted', message: 'An on-demand instance takes the GPUs.', at, by };
    return { ...made, status: { ...made.status, ending } };
  };
  const instances = [
    instanceOf('rivals', 'taker', 'a', 8),
    lost('earlier', 'uid-of-nobody', '2026-01-01T00:00:00Z'),
    lost('later', 'uid-rivals-taker', '2026-01-01T00:01:00Z'),
  ];
  api = await startLoneApi({ tenants: ['team'], ...WORLD, instances });
  const { displaced } = await fleet();
  expect(displaced.map(({ namespace, id, by }) => [`${namespace}/${id}`, by])).toEqual([
    ['team/later', { namespace: 'rivals', id: 'taker' }],
    ['team/earlier', null],
  ]);
});

it('says what the policies of a tenant let it have', async () => {
  api = await startLoneApi({ tenants: ['team'], ...WORLD, http: { team: {} } });
  const { tenants } = await fleet();
  const team = tenants.find(({ namespace }) => namespace === 'team');
  expect(team).toMatchObject({ gpu_ceilings: [], instances_max: 1000 });
});

it('shows 200 of those who wait, and says how many there are', async () => {
  const instances = Array.from({ length: 250 }, (_, at) => waiting('team', `w-${at}`));
  api = await startLoneApi({ tenants: ['team'], ...WORLD, instances });
  const { waiting: line, waiting_total: total } = await fleet();
  expect([line.length, total]).toEqual([200, 250]);
});

it.each([
  ['a key of a tenant', () => 'team'],
  ['a key into which its tenant has written the scope', () => 'cheat'],
  ['a person of a tenant', () => personWith(['compute:read', 'compute:write', 'models'])],
])('refuses %s, and tells nothing', async (_who, token) => {
  const scopes = ['compute:read', 'fleet:read'] as unknown as Scope[];
  api = await startLoneApi({ tenants: ['team', 'cheat'], keys: { cheat: { scopes } }, ...WORLD });
  const answer = await get(await token());
  expect(answer.status).toBe(403);
  const text = await answer.text();
  expect(text).toContain('insufficient_scope');
  expect(text).toContain('No key can have it.');
  expect(text).not.toMatch(/rivals|gpus/);
});
