import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { createKey } from '../../src/access/create-key.ts';
import { offerListSchema } from '../../src/http/features/offers/schema.ts';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { findCondition } from '../../src/kube/conditions.ts';
import { DEVICE_TAINT_RULES, EARLIER_TAINT_RULES, RESOURCE_SLICES } from '../../src/kube/devices.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../src/resources/instances/gpu-instance.ts';
import { newEd25519Key } from '../../src/ssh/login/ed25519-key.ts';
import { createNamespace } from '../../tools/cluster/apply.ts';
import { bringUp } from '../../tools/cluster/bring-up.ts';
import { REAL_GPU } from '../../tools/cluster/built/real-node.ts';
import { gpuDevices } from '../../tools/cluster/fleet/labels.ts';
import type { LocalCluster } from '../../tools/cluster/local-cluster.ts';
import { takeState } from '../../tools/cluster/supervisor/supervise.ts';
import { kubernetesVersion } from '../../tools/lib/go/programs.ts';
import type { FileLock } from '../../tools/lib/lock.ts';
import { cacheFolder, stateFolder } from '../../tools/lib/paths.ts';
import { plainProgress } from '../../tools/lib/progress.ts';
import { processesOf } from '../e2e/support/processes.ts';
import { type BerthProcess, startBerth } from '../support/berth-process.ts';
import { type Call, clientOf } from '../support/http/client.ts';
import { kindsCounted } from '../support/kinds-counted.ts';
import { describeWith } from '../support/needs.ts';
import { runningInstance } from '../support/running-instance.ts';
import { sshRun } from '../support/ssh-command.ts';
import { waitFor } from '../support/wait-for.ts';

const DRIVER = 'gpu.berth.dev';
const NAMESPACE = 'tenant';
const STATE = join(stateFolder(), 'dra');
const CDI = join(STATE, 'cluster/data/cdi');
const SICK = join(STATE, 'cluster/data/sick-gpus');
const { 'nvidia.com/gpu': UUIDS = [] } = gpuDevices(REAL_GPU);
const PARTITION = 'NVIDIA-L4-MIG-1g.3gb';
/** Newer versions of Kubernetes do not serve the earlier one by default. */
const TAINT_RULES = kubernetesVersion().startsWith('1.36.')
  ? { ...DEVICE_TAINT_RULES, version: EARLIER_TAINT_RULES }
  : DEVICE_TAINT_RULES;
/** How many the two GPUs have, by product. */
const ALL = { 'NVIDIA-L4': 2, [PARTITION]: 14, 'NVIDIA-L4-MIG-2g.6gb': 6 };

let lock: FileLock;
let cluster: LocalCluster;
let client: KubeClient;
let berth: BerthProcess;
let call: Call;
const laptop = newEd25519Key('laptop');

async function offer(product = 'NVIDIA-L4') {
  const { data } = offerListSchema.parse((await call('GET', '/offers')).json);
  return data.find(({ pool, gpu_name: gpu, gpu_count: count }) => pool === 'dra' && gpu === product && count === 1);
}

async function isFree(count: number): Promise<void> {
  await areFree({ 'NVIDIA-L4': count });
}

async function areFree(counts: Readonly<Record<string, number>>): Promise<void> {
  for (const [product, count] of Object.entries(counts)) {
    await waitFor(`${count} free ${product}`, async () => (await offer(product))?.available === count);
  }
}

async function rent(name: string, count = 1, product = 'NVIDIA-L4'): Promise<GpuInstance> {
  const metadata = { name, namespace: NAMESPACE };
  await client.create(GPU_INSTANCES, { metadata, spec: { gpu: { product, count } } } as never);
  return runningInstance({ client, name: NAMESPACE }, name, 60_000);
}

function get(name: string): Promise<GpuInstance> {
  return client.get(GPU_INSTANCES, { namespace: NAMESPACE, name });
}

async function giveBack(): Promise<void> {
  const { items } = await client.list(GPU_INSTANCES, { namespace: NAMESPACE });
  for (const { metadata } of items) await client.delete(GPU_INSTANCES, metadata);
  await waitFor('the end of the instances', async () => {
    return (await client.list(GPU_INSTANCES, { namespace: NAMESPACE })).items.length === 0;
  });
}

/** The GPUs that a session in the instance sees: the variable, and the device files. */
async function seen({ status }: GpuInstance): Promise<{ uuids: string[]; files: string[] }> {
  const login = { port: berth.sshPort, username: status?.ssh?.user ?? '', privateKey: laptop.private };
  const said = await waitFor('a login', () => sshRun(login, 'echo $NVIDIA_VISIBLE_DEVICES; cd /dev; ls -d nvidia?'));
  const [variable = '', ...files] = said.stdout.trim().split('\n');
  return { uuids: variable.split(','), files };
}

/** The slice of the driver that has its devices; another has their counters. */
async function devicesSlice() {
  return (await client.list(RESOURCE_SLICES)).items.find(({ spec }) => spec.devices !== undefined);
}

function setSick(uuids: readonly string[]): void {
  writeFileSync(SICK, uuids.join('\n'));
}

describeWith('real node')('GPUs of a DRA driver', () => {
  beforeAll(async () => {
    lock = await takeState(STATE);
    cluster = await bringUp({
      state: STATE,
      cache: cacheFolder(process.env),
      given: false,
      kubeconfig: undefined,
      context: undefined,
      built: true,
      dra: true,
      yes: false,
      interactive: false,
      tidy: false,
      otherMakers: false,
      total: 3,
      progress: plainProgress(),
      signal: new AbortController().signal,
    });
    ({ client } = cluster);
    await createNamespace(client, NAMESPACE, new AbortController().signal);
    await kindsCounted(client);
    berth = await startBerth(cluster.kubeconfig);
    const { token } = await createKey(client, { namespace: NAMESPACE, displayName: 'devices' });
    call = clientOf(berth.url, token);
    await waitFor('the key', async () => (await call('GET', '/offers')).status === 200);
    await call('POST', '/ssh-keys', { public_key: laptop.public, name: 'laptop' });
    await isFree(UUIDS.length);
  }, 300_000);
  afterEach(async () => {
    setSick([]);
    await giveBack();
    await waitFor('the driver to remove its CDI files', () => readdirSync(CDI).length === 0);
    await areFree(ALL);
  }, 120_000);
  afterAll(async () => {
    await berth[Symbol.asyncDispose]();
    await cluster.stop();
    lock.release();
    expect(existsSync(join(STATE, 'cluster'))).toBe(false);
    const left = await processesOf(process.pid, (command) => command.some((word) => word.includes(STATE)));
    expect(left).toEqual([]);
  });

  it('are offered as the slice tells of them', async () => {
    const slice = await devicesSlice();
    expect(slice?.spec).toMatchObject({ driver: DRIVER, nodeName: 'real-0' });
    const told = {
      type: { string: 'gpu' },
      productName: { string: 'NVIDIA L4' },
      driverVersion: { version: '580.95.5' },
    };
    const whole = slice?.spec.devices?.filter(({ attributes }) => attributes?.['type']?.string === 'gpu');
    expect(whole?.map(({ attributes }) => attributes)).toEqual(
      UUIDS.map((uuid) => ({ ...told, uuid: { string: uuid } })),
    );
    expect(await offer()).toMatchObject({
      gpu_name: 'NVIDIA-L4',
      gpu_memory_mb: REAL_GPU.memory,
      driver_version: '580.95.5',
      available: 2,
    });
  });

  it('are seen in a session by SSH, and named in the status and in the bill', async () => {
    const instance = await rent('one');
    const { uuids, files } = await seen(instance);
    const index = UUIDS.indexOf(uuids[0] ?? '');
    expect(files).toEqual([`nvidia${index}`]);
    const held = [{ driver: DRIVER, pool: 'real-0', device: `gpu-${index}`, uuid: UUIDS[index] }];
    await waitFor('the GPU in the status', async () => (await get('one')).status?.devices !== undefined);
    expect((await get('one')).status?.devices).toEqual(held);
    await isFree(1);
    await call('PATCH', '/instances/one', { state: 'stopped' });
    await waitFor('its bill', async () => (await get('one')).status?.intervals !== undefined);
    expect((await get('one')).status?.intervals?.at(-1)?.devices).toEqual(held);
    await isFree(2);
  });

  it('are all named to an instance that has several', async () => {
    const { uuids, files } = await seen(await rent('both', 2));
    expect(uuids.toSorted()).toEqual(UUIDS);
    expect(files).toEqual(['nvidia0', 'nvidia1']);
    await isFree(0);
  });

  it('are rented in partitions next to a whole one, and are whole again when these are given back', async () => {
    await areFree(ALL);
    const [whole] = (await seen(await rent('whole'))).uuids;
    const index = whole === UUIDS[0] ? 1 : 0;
    await areFree({ 'NVIDIA-L4': 1, [PARTITION]: 7 });
    const { uuids, files } = await seen(await rent('part', 1, PARTITION));
    await areFree({ 'NVIDIA-L4': 0, [PARTITION]: 6 });
    expect(files).toEqual([`nvidia${index}`]);
    const told = (await devicesSlice())?.spec.devices?.find(
      ({ attributes }) => attributes?.['uuid']?.string === uuids[0],
    );
    expect(told).toMatchObject({
      name: expect.stringMatching(`^gpu-${index}-mig-1g-3gb-`) as unknown,
      attributes: { type: { string: 'mig' }, profile: { string: '1g.3gb' }, parentUUID: { string: UUIDS[index] } },
    });
    const held = [{ driver: DRIVER, pool: 'real-0', device: told?.name, uuid: uuids[0] }];
    await waitFor('the partition in the status', async () => (await get('part')).status?.devices !== undefined);
    const { status } = await get('part');
    expect(status?.devices).toEqual(held);
    expect(status?.claim).toMatchObject({ migProfile: '1g.3gb', gpuShare: '1/7', pricePerHour: '0.07' });
    // A sick GPU takes its partitions with it.
    setSick([UUIDS[index] ?? '']);
    await areFree({ 'NVIDIA-L4': 0, [PARTITION]: 0 });
    await waitFor('the bad news', async () => (await get('part')).status?.unhealthyGPUs?.[0]?.id === uuids[0]);
    expect((await get('whole')).status?.unhealthyGPUs).toBeUndefined();
    setSick([]);
    await areFree({ [PARTITION]: 6 });
    await call('PATCH', '/instances/part', { state: 'stopped' });
    await waitFor('its bill', async () => (await get('part')).status?.intervals !== undefined);
    expect((await get('part')).status?.intervals?.at(-1)).toMatchObject({ devices: held, gpuShare: '1/7' });
    await areFree({ 'NVIDIA-L4': 1, [PARTITION]: 7 });
  });

  it('leave the offers when the driver taints them, and tell their instance', async () => {
    const { uuids } = await seen(await rent('one'));
    await isFree(1);
    setSick(UUIDS);
    await isFree(0);
    await waitFor('the bad news', async () => {
      return (await get('one')).status?.unhealthyGPUs?.[0]?.id === uuids[0];
    });
    setSick([]);
    await waitFor('the good news', async () => {
      return findCondition((await get('one')).status?.conditions, 'GPUHealthy')?.reason === 'Recovered';
    });
    await isFree(1);
  });

  it('leave the offers by a DeviceTaintRule, and the scheduler takes the other GPU', async () => {
    const name = 'broken';
    await client.create(TAINT_RULES, {
      metadata: { name },
      spec: {
        deviceSelector: { driver: DRIVER, pool: 'real-0', device: 'gpu-0' },
        taint: { key: 'example.com/broken', effect: 'NoSchedule' },
      },
    });
    await isFree(1);
    expect((await seen(await rent('one'))).uuids).toEqual([UUIDS[1]]);
    await client.delete(TAINT_RULES, { name });
  });
});
