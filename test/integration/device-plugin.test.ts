import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, inject, it } from 'vitest';
import { createKey } from '../../src/access/create-key.ts';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { findCondition } from '../../src/kube/conditions.ts';
import { NODES, PODS } from '../../src/kube/types.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../src/resources/instances/gpu-instance.ts';
import { GPU_POOLS, gpuPoolSpecSchema } from '../../src/resources/gpu-pool.ts';
import { applyDefinitions, createNamespace } from '../../tools/cluster/apply.ts';
import { type BuiltCluster, startBuiltCluster } from '../../tools/cluster/built/built-cluster.ts';
import { REAL_GPU, REAL_NODE } from '../../tools/cluster/built/real-node.ts';
import { type Gpu, gpuDevices, gpuResources } from '../../tools/cluster/fleet/labels.ts';
import { ownProgram } from '../../tools/lib/go/programs.ts';
import { findCniFolder, findStaticBusybox } from '../../tools/lib/host/requirements.ts';
import { busyboxLayer, importImage } from '../../tools/lib/images/image.ts';
import { TOOLS_IMAGE, toolsImage } from '../../tools/lib/images/tools-image.ts';
import { cacheFolder, stateFolder } from '../../tools/lib/paths.ts';
import { run } from '../../tools/lib/shell.ts';
import { kill, processesOf } from '../e2e/support/processes.ts';
import { type BerthProcess, startBerth } from '../support/berth-process.ts';
import { type Call, clientOf } from '../support/http/client.ts';
import { kindsCounted } from '../support/kinds-counted.ts';
import { describeWith } from '../support/needs.ts';
import { waitFor } from '../support/wait-for.ts';

const GPU = 'nvidia.com/gpu';
const GPUS = { ...REAL_GPU, count: 3 };
const { [GPU]: UUIDS = [] } = gpuDevices(GPUS);
/** An image that asks the container runtime for every GPU. */
const GREEDY_IMAGE = 'localhost/berth-greedy:test';
const NAMESPACE = 'tenant';

let cluster: BuiltCluster;
let client: KubeClient;
let berth: BerthProcess;
let call: Call;

async function rent(name: string, spec: object = {}): Promise<void> {
  const metadata = { name, namespace: NAMESPACE };
  await client.create(GPU_INSTANCES, { metadata, spec: { gpu: { product: 'NVIDIA-L4', count: 1 }, ...spec } } as never);
}

function get(name: string): Promise<GpuInstance> {
  return client.get(GPU_INSTANCES, { namespace: NAMESPACE, name });
}

function readyOf({ status }: GpuInstance): string | undefined {
  return findCondition(status?.conditions, 'Ready')?.reason;
}

async function running(name: string): Promise<GpuInstance> {
  return waitFor(
    `${name} to run`,
    async () => {
      const instance = await get(name);
      return readyOf(instance) === 'Running' && instance;
    },
    60_000,
  );
}

/** What a command prints in the instance's container. */
async function inside({ status }: GpuInstance, ...command: string[]): Promise<string> {
  const where = [
    '--kubeconfig',
    cluster.kubeconfig,
    '-n',
    NAMESPACE,
    'exec',
    status?.podName ?? '',
    '-c',
    'main',
    '--',
  ];
  const { code, stdout, stderr } = await run(join(cluster.programs, 'kubectl'), [...where, ...command]);
  if (code !== 0) throw new Error(stderr);
  return stdout.trim();
}

/** The GPUs that the container runtime would give the instance: NVIDIA's reads this variable. */
function gpusOf(instance: GpuInstance): Promise<string> {
  return inside(instance, 'sh', '-c', 'echo $NVIDIA_VISIBLE_DEVICES');
}

/** Whether the kubelet has so many devices of each of these resources for pods, and no others of this maker. */
async function counts(wanted: Readonly<Record<string, string>>): Promise<boolean> {
  const { allocatable = {} } = (await client.get(NODES, { name: REAL_NODE })).status ?? {};
  const names = Object.keys({ ...allocatable, ...wanted }).filter((name) => name.startsWith('nvidia.com/'));
  return names.every((name) => Number(allocatable[name] ?? 0) === Number(wanted[name] ?? 0));
}

/** GPUs that a tenant could rent now. */
async function offered(): Promise<number> {
  const { json } = await call('GET', '/offers');
  const sizes = (json['data'] as { gpu_count: number; available: number }[]).filter(({ gpu_count }) => gpu_count === 1);
  return sizes.reduce((sum, { available }) => sum + available, 0);
}

async function end(name: string): Promise<void> {
  const { initPid = 0 } = cluster;
  const path = join(cluster.programs, name);
  const [pid] = await processesOf(initPid, ([command]) => command === path);
  if (pid === undefined) throw new Error(`${name} does not run`);
  await kill(initPid, pid);
}

/** Gives the node other GPUs, as its operator may, and waits until the kubelet counts them. */
async function regroup(gpu: Gpu): Promise<void> {
  await end(ownProgram('device-plugin'));
  // A start that the kubelet refuses meanwhile would wait for its back-off.
  await waitFor('the old GPUs to go', () => counts({}), 60_000);
  await cluster.startPlugin(gpu);
  await waitFor('the new GPUs', () => counts(gpuResources(gpu)), 60_000);
}

async function restart(program: 'device plugin' | 'kubelet'): Promise<void> {
  if (program === 'device plugin') return regroup(GPUS);
  await end('kubelet');
  cluster.startAgain('kubelet');
}

async function count(): Promise<number> {
  return (await client.list(GPU_INSTANCES, { namespace: NAMESPACE })).items.length;
}

/** Instances end, and all GPUs are well. */
async function cleanUp(): Promise<void> {
  cluster.setSick([]);
  for (const { metadata } of (await client.list(GPU_INSTANCES, { namespace: NAMESPACE })).items) {
    await client.delete(GPU_INSTANCES, { namespace: NAMESPACE, name: metadata.name });
  }
  await waitFor('the end of the instances', async () => (await count()) === 0, 60_000);
  await waitFor('all GPUs to be well', () => counts(gpuResources(GPUS)));
}

describeWith('real node')('GPUs of a device plugin', () => {
  beforeAll(async () => {
    const busybox = (await findStaticBusybox()) ?? '';
    const cniFolder = (await findCniFolder()) ?? '';
    const { programs = '' } = inject('cluster');
    const { signal } = new AbortController();
    const node = { cniFolder, busybox, gpu: GPUS };
    cluster = await startBuiltCluster({ state: join(stateFolder(), 'gpus'), programs, node, signal });
    ({ client } = cluster);
    const access = { initPid: cluster.initPid ?? 0, programs };
    await importImage(access, await toolsImage(TOOLS_IMAGE, cacheFolder(process.env)));
    const env = ['PATH=/bin', 'NVIDIA_VISIBLE_DEVICES=all'];
    await importImage(access, { reference: GREEDY_IMAGE, layer: await busyboxLayer(busybox), cmd: ['/bin/sh'], env });
    for (const name of ['berth-system', NAMESPACE]) await createNamespace(client, name, signal);
    await applyDefinitions(client, signal);
    const prices = [{ product: '*', onDemand: '1', interruptible: '1' }];
    const spec = gpuPoolSpecSchema.parse({ nodeSelector: { 'nvidia.com/gpu.present': 'true' }, prices });
    await client.create(GPU_POOLS, { metadata: { name: 'default' }, spec });
    await kindsCounted(client);
    berth = await startBerth(cluster.kubeconfig);
    const { token } = await createKey(client, { namespace: NAMESPACE, displayName: 'gpus' });
    call = clientOf(berth.url, token);
    await waitFor('the offers', async () => (await call('GET', '/offers')).status === 200 && (await offered()) === 3);
  }, 180_000);
  afterEach(cleanUp, 120_000);
  afterAll(async () => {
    await berth[Symbol.asyncDispose]();
    await cluster.stop();
  });

  it('are disjoint, and no image gets more than its instance has', async () => {
    await rent('one');
    await rent('two', { gpu: { product: 'NVIDIA-L4', count: 2 }, image: GREEDY_IMAGE });
    const [one, two] = await Promise.all([running('one'), running('two')]);
    const gpus = [...(await gpusOf(one)).split(','), ...(await gpusOf(two)).split(',')];
    expect(gpus.toSorted()).toEqual(UUIDS);
    const files = (await inside(two, 'ls', '/dev')).split('\n').filter((name) => /^nvidia\d/.test(name));
    expect(files.length).toBe(2);
    expect(await offered()).toBe(0);
  }, 120_000);

  it('stay with a running instance while device plugin and kubelet start again', async () => {
    await rent('one');
    await rent('two');
    const before = await Promise.all([running('one'), running('two')]);
    const gpus = await Promise.all(before.map(gpusOf));
    for (const program of ['device plugin', 'kubelet'] as const) {
      await restart(program);
      await waitFor(`the GPUs after the ${program} started again`, () => counts(gpuResources(GPUS)), 60_000);
      await waitFor('the free one', async () => (await offered()) === 1);
      // Something new shows that the node is back, and gets the GPU that is free.
      await rent('new');
      expect(gpus).not.toContain(await gpusOf(await running('new')));
      await client.delete(GPU_INSTANCES, { namespace: NAMESPACE, name: 'new' });
      await waitFor('the new one to be gone', async () => (await count()) === 2, 60_000);
    }
    const after = await Promise.all(['one', 'two'].map(get));
    expect(after.map(({ status }) => status?.podUid)).toEqual(before.map(({ status }) => status?.podUid));
    expect(after.map(readyOf)).toEqual(['Running', 'Running']);
    expect(await Promise.all(after.map(gpusOf))).toEqual(gpus);
  }, 240_000);

  it('leave the offers one by one when they turn sick, and come back', async () => {
    await rent('one');
    const held = await gpusOf(await running('one'));
    const free = UUIDS.filter((uuid) => uuid !== held);
    cluster.setSick(free.slice(0, 1));
    await waitFor('one to leave', async () => (await offered()) === 1);
    await rent('two');
    expect(await gpusOf(await running('two'))).toBe(free[1]);
    cluster.setSick([]);
    await waitFor('it to come back', async () => (await offered()) === 1);
    expect(readyOf(await get('one'))).toBe('Running');
  }, 120_000);

  it('tell their instance when they turn sick and when they recover, and stay with it', async () => {
    await rent('one');
    const held = await gpusOf(await running('one'));
    const health = async () => findCondition((await get('one')).status?.conditions, 'GPUHealthy');
    await waitFor('the first word on its health', async () => (await health())?.status === 'True');
    cluster.setSick([held]);
    await waitFor('the bad news', async () => (await health())?.status === 'False');
    const { status } = await get('one');
    expect(status?.unhealthyGPUs?.map(({ id }) => id)).toEqual([held]);
    await waitFor('the warning over HTTP', async () => {
      return (await call('GET', '/instances/one')).text.includes(`GPU ${held} is unhealthy`);
    });
    cluster.setSick([]);
    await waitFor('the good news', async () => (await health())?.reason === 'Recovered');
    expect(readyOf(await get('one'))).toBe('Running');
  }, 120_000);

  it('that turn sick between the scheduler and the kubelet cost a start, and no GPU', async () => {
    await rent('one');
    const held = await gpusOf(await running('one'));
    const free = UUIDS.filter((uuid) => uuid !== held);
    cluster.setSick(free.slice(1));
    await waitFor('the node to say so', () => counts({ [GPU]: '2' }));
    cluster.setSick(UUIDS);
    // The kubelet knows it when the pod says it. The node says it some seconds later.
    await waitFor('the kubelet to know', async () => {
      const { status } = await client.get(PODS, { namespace: NAMESPACE, name: 'one-1' });
      return JSON.stringify(status).includes('Unhealthy');
    });
    await rent('late');
    const refused = await waitFor('the refusal', async () => {
      const { status } = await get('late');
      return status?.ending?.reason === 'AdmissionRejected' && status.ending;
    });
    expect(refused.message).toContain('UnexpectedAdmissionError');
    cluster.setSick([]);
    await waitFor('another start', async () => readyOf(await get('late')) === 'Running', 120_000);
    expect(readyOf(await get('one'))).toBe('Running');
  }, 240_000);

  it.each<{ what: string; gpu: Gpu; product: string; expected: string[] }>([
    {
      what: 'slices of a GPU',
      gpu: {
        ...REAL_GPU,
        count: 1,
        mig: [
          { profile: '1g.10gb', count: 2, memory: 9728, multiprocessors: 14, slices: 1, copyEngines: 1, decoders: 0 },
        ],
      },
      product: 'NVIDIA-L4-MIG-1g.10gb',
      expected: ['MIG-00000000-0000-4000-8000-000000000000', 'MIG-00000000-0000-4000-8000-000000000001'],
    },
    {
      what: 'places on one GPU',
      gpu: { ...REAL_GPU, count: 1, replicas: 2 },
      product: 'NVIDIA-L4-SHARED',
      expected: [UUIDS[0] ?? '', UUIDS[0] ?? ''],
    },
  ])(
    '$what are rented like GPUs',
    async ({ gpu, product, expected }) => {
      await regroup(gpu);
      for (const name of ['one', 'two']) await rent(name, { gpu: { product, count: 1 } });
      const both = await Promise.all([running('one'), running('two')]);
      expect((await Promise.all(both.map(gpusOf))).toSorted()).toEqual(expected);
      await regroup(GPUS);
    },
    120_000,
  );
});
