import { afterAll, beforeAll, expect, it } from 'vitest';
import { offerListSchema } from '../../../src/http/features/offers/schema.ts';
import { DEVICE_CLASSES, RESOURCE_SLICES } from '../../../src/kube/devices.ts';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import type { BerthProcess } from '../../support/berth-process.ts';
import { boundAfter } from '../../support/bound-after.ts';
import { placePods, removePods } from '../../support/foreign-pods.ts';
import type { Call } from '../../support/http/client.ts';
import { addNode, sellDevices, sliceNode } from '../../support/http/fleet.ts';
import { KINDS, migClass, migNode } from '../../support/mig-node.ts';
import { kindsCounted } from '../../support/kinds-counted.ts';
import { randomFrom } from '../../support/random.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { endRenting, startRenting } from '../../support/renting.ts';
import { waitFor } from '../../support/wait-for.ts';

// Two GPUs of a simulated node, with the MIG slices that an A100 can have: the real scheduler gives them out.

const LABEL = 'berth.dev/test-partitions';
/** No other node of the cluster has it: an instance that waits is content with the same GPUs of another pool. */
const PRODUCT = 'TEST A100-SXM4-80GB';
const SOLD = '2g.20gb';
const ROUNDS = 8;
/** Of each kind, how many two GPUs have. */
const ALL: Readonly<Record<string, number>> = { gpu: 2, '1g.10gb': 14, '2g.20gb': 6, '3g.40gb': 4 };

let berth: BerthProcess;
let tenant: TestNamespace;
let call: Call;
const ends: (() => Promise<unknown>)[] = [];

function foreign() {
  return { client: tenant.client, namespace: tenant.name, label: LABEL };
}

function classOf(kind: string): string {
  return `${tenant.name}-${kind.replace('.', '-')}`;
}

beforeAll(async () => {
  tenant = await testNamespace();
  const { client, name } = tenant;
  await kindsCounted(client);
  const apart = { label: LABEL, value: name };
  const node = sliceNode(`${name}-mig`, apart);
  ends.push(await addNode(client, node));
  for (const kind of KINDS) {
    await client.create(DEVICE_CLASSES, migClass(classOf(kind), kind));
    ends.push(() => client.delete(DEVICE_CLASSES, { name: classOf(kind) }));
  }
  for (const slice of migNode(node.metadata.name, 2, PRODUCT)) {
    await client.create(RESOURCE_SLICES, slice);
    ends.push(() => client.delete(RESOURCE_SLICES, slice.metadata));
  }
  const [deviceClassName = '', ...partitionClassNames] = KINDS.map(classOf);
  ends.push(await sellDevices(client, { name, deviceClassName, partitionClassNames, ...apart }));
  ({ berth, call } = await startRenting(tenant, 'partitions'));
});

afterAll(async () => {
  await endRenting(tenant, berth);
  for (const end of ends.toReversed()) await end();
  await tenant[Symbol.asyncDispose]();
});

async function offer(kind: string) {
  const { data } = offerListSchema.parse((await call('GET', '/offers')).json);
  const ends = kind === 'gpu' ? '80GB' : `MIG-${kind}`;
  return data.find(({ pool, gpu_count: n, gpu_name: gpu }) => pool === tenant.name && n === 1 && gpu.endsWith(ends));
}

async function areAll(free: Readonly<Record<string, number>>, what: string): Promise<void> {
  await waitFor(what, async () => {
    const found = await Promise.all(Object.keys(free).map(async (kind) => [kind, (await offer(kind))?.available]));
    return found.every(([kind = '', available]) => available === free[kind]);
  });
}

/** Makes pods of others, and resolves with how many have a node. */
async function place(kinds: readonly string[], prefix: string, isDone: Parameters<typeof placePods>[3]) {
  const resources = kinds.map((kind) => `deviceclass.resource.kubernetes.io/${classOf(kind)}`);
  return await placePods(foreign(), resources, prefix, isDone);
}

it('offers whole GPUs, and each profile by its part of one', async () => {
  await areAll(ALL, 'the offers');
  expect(await offer('gpu')).toMatchObject({ gpu_memory_mb: 80 * 1024, isolation: 'whole' });
  expect(await offer(SOLD)).toMatchObject({
    gpu_name: `${PRODUCT.replace(' ', '-')}-MIG-${SOLD}`,
    gpu_memory_mb: 20 * 1024,
    isolation: 'mig',
  });
});

it('offers as many as the scheduler then places, whatever others have', async () => {
  const seed = Number(process.env['BERTH_SEED'] ?? Date.now() % 100_000);
  process.stdout.write(`seed ${seed}: BERTH_SEED repeats it\n`);
  const random = randomFrom(seed);
  const kinds = [...KINDS, '1g.10gb', '1g.10gb'];
  const free = async (kind: string): Promise<number> => (await offer(kind))?.available ?? 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    // Only pods that get a place: of those that wait the scheduler might place one while it is deleted.
    for (let left = Math.floor(random() * 7); left > 0; left -= 1) {
      const kind = kinds[Math.floor(random() * kinds.length)] ?? '';
      const before = await free(kind);
      if (before === 0) continue;
      await place([kind], `other-${left}`, (placed) => placed === 1);
      await waitFor('the pod to count', async () => (await free(kind)) < before);
    }
    const kind = KINDS[round % KINDS.length] ?? '';
    const probes = Array.from({ length: (ALL[kind] ?? 0) + 1 }, () => kind);
    const placed = await place(probes, 'probe', async () => (await free(kind)) === 0);
    await removePods(foreign(), 'probe');
    await waitFor(`${placed} of ${kind} to be offered`, async () => (await free(kind)) === placed);
    for (let look = 0; look < 3; look += 1) expect(await free(kind)).toBe(placed);
    await removePods(foreign(), 'other');
    await areAll(ALL, 'all that there is');
  }
});

async function rent(name: string, kind: string, type: 'OnDemand' | 'Interruptible' = 'OnDemand'): Promise<void> {
  // Other nodes of the cluster have such GPUs too.
  const offerId = (await offer(kind))?.id;
  const metadata = { namespace: tenant.name, name };
  await tenant.client.create(GPU_INSTANCES, { metadata, spec: { type, offerId } } as never);
}

async function isIn(name: string, state: string): Promise<void> {
  await waitFor(
    `${name} to be ${state}`,
    async () => (await call('GET', `/instances/${name}`)).json['state'] === state,
  );
}

async function rented() {
  return (await tenant.client.list(GPU_INSTANCES, { namespace: tenant.name })).items;
}

it('rents them all, once each, and gives each back whole', async () => {
  await areAll(ALL, 'all');
  const names = Array.from({ length: 6 }, (_, index) => `slice-${index}`);
  for (const name of names) await rent(name, SOLD);
  for (const name of names) await isIn(name, 'running');
  // Each GPU has parts of its memory and its processors left for one of the smallest.
  await areAll({ gpu: 0, '1g.10gb': 2, [SOLD]: 0, '3g.40gb': 0 }, 'the rest');
  const items = await rented();
  const devices = items.flatMap(({ status }) => status?.devices?.map(({ device }) => device) ?? []);
  expect(new Set(devices).size).toBe(6);
  expect(items.map(({ status }) => status?.claim?.gpuShare)).toEqual(Array.from({ length: 6 }, () => '2/7'));
  for (const name of names) await call('DELETE', `/instances/${name}`);
  await areAll(ALL, 'all to be free');
});

it('rents whole GPUs and slices that are asked for at once, and takes from each what the other has', async () => {
  await areAll(ALL, 'all');
  const wanted = ['gpu', '3g.40gb', '2g.20gb', '1g.10gb', '1g.10gb'].map((kind, index) => ({
    kind,
    name: `m-${index}`,
  }));
  await Promise.all(wanted.map(({ name, kind }) => rent(name, kind)));
  // The scheduler may put slices on both GPUs, and then the whole one waits; or one of the slices does.
  const devices = await waitFor('all that fits to have devices', async () => {
    const found = (await rented()).flatMap(({ status }) => status?.devices?.map(({ device }) => device) ?? []);
    return found.length >= wanted.length - 1 && found;
  });
  expect(new Set(devices).size).toBe(devices.length);
  const whole = devices.filter((device) => /^gpu-\d$/.test(device));
  expect(devices.filter((device) => whole.some((one) => device.startsWith(`${one}-`)))).toEqual([]);
  for (const { name } of wanted) await call('DELETE', `/instances/${name}`);
  await areAll(ALL, 'all to be free');
});

/** The device of each instance that runs, by name. */
async function devicesByName(): Promise<Map<string, string>> {
  return new Map((await rented()).map(({ metadata, status }) => [metadata.name, status?.devices?.[0]?.device ?? '']));
}

/** Who ends for an on-demand instance, and in how many milliseconds after that it has its device. */
async function displace(urgent: string, kind: string, others: readonly string[]) {
  const { client, name: namespace } = tenant;
  const ask = () => rent(urgent, kind);
  const found = await boundAfter({ client, namespace, urgent, others, ask });
  await isIn(urgent, 'running');
  return found;
}

it('ends the slices of one GPU for a whole one, one whole GPU for a slice, and nobody else', async () => {
  await areAll(ALL, 'all');
  await rent('kept', '3g.40gb');
  await isIn('kept', 'running');
  await waitFor('slices to be left beside it', async () => (await offer('gpu'))?.available === 1);
  const slices = Array.from({ length: (await offer('1g.10gb'))?.available ?? 0 }, (_, index) => `part-${index}`);
  for (const name of slices) await rent(name, '1g.10gb', 'Interruptible');
  for (const name of slices) await isIn(name, 'running');
  const devices = await waitFor('devices of all', async () => {
    const found = await devicesByName();
    return slices.every((name) => found.get(name) !== '') && found;
  });
  const gpu = devices.get('kept')?.startsWith('gpu-0') === true ? 'gpu-1' : 'gpu-0';
  const ofGpu = slices.filter((name) => devices.get(name)?.startsWith(gpu) === true);
  expect(ofGpu).toHaveLength(7);
  const whole = await displace('whole', 'gpu', slices);
  expect(whole.ended).toEqual(ofGpu.toSorted());
  await waitFor('the device of the whole one', async () => (await devicesByName()).get('whole') === gpu);
  for (const name of slices.filter((one) => !ofGpu.includes(one))) await isIn(name, 'running');
  for (const name of ['kept', 'whole', ...slices]) await call('DELETE', `/instances/${name}`);
  await areAll(ALL, 'all to be free');

  const holders = ['first', 'second'];
  for (const name of holders) {
    await rent(name, 'gpu', 'Interruptible');
    await isIn(name, 'running');
  }
  const slice = await displace('slice', '1g.10gb', holders);
  expect(slice.ended).toEqual(['second']);
  await isIn('first', 'running');
  const took = [whole.ms, slice.ms];
  process.stdout.write(
    `on demand had its device ${took.map(Math.round).join(' and ')} ms after the last program's end\n`,
  );
  // Whatever else the machine does, one of them shows how long it takes.
  expect(Math.min(...took)).toBeLessThan(2000);
  for (const name of ['slice', ...holders]) await call('DELETE', `/instances/${name}`);
  await areAll(ALL, 'all to be free');
});
