import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { mayRun } from '../../../src/inventory/nodes/pod-end.ts';
import { NODES, PODS } from '../../../src/kube/types.ts';
import {
  GPU_INSTANCES,
  type GpuInstance,
  type GpuInstanceSpec,
} from '../../../src/resources/instances/gpu-instance.ts';
import { BUSYBOX_IMAGE, REAL_GPU } from '../../../tools/cluster/built/real-node.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { readyReason } from '../../faults/support/world.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';

// A program that ends when it wants to, on all GPUs of the real node.

const STUBBORN = ['sh', '-c', 'trap "" TERM; while :; do sleep 0.2; done'];
const { realNode, kubeconfig } = inject('cluster');

let berth: BerthProcess;
let tenant: TestNamespace;

/** The instances of the tenant whose programs run on this machine now. */
function programs(): Set<string> {
  const found = new Set<string>();
  for (const entry of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const variables = readFileSync(`/proc/${entry}/environ`, 'latin1').split('\0');
      const value = (name: string) => variables.find((one) => one.startsWith(`${name}=`))?.slice(name.length + 1);
      const id = value('BERTH_INSTANCE_ID');
      if (id !== undefined && value('BERTH_NAMESPACE') === tenant.name) found.add(id);
    } catch {
      // It has ended meanwhile.
    }
  }
  return found;
}

async function create(name: string, spec: Partial<GpuInstanceSpec> = {}): Promise<void> {
  const own = {
    image: BUSYBOX_IMAGE,
    runtype: 'args',
    command: STUBBORN,
    gpu: { product: REAL_GPU.product, count: 2 },
  };
  await tenant.client.create(GPU_INSTANCES, {
    metadata: { namespace: tenant.name, name },
    spec: { ...own, ...spec } as GpuInstanceSpec,
  });
}

function patch(name: string, spec: object): Promise<GpuInstance> {
  return tenant.client.patch(GPU_INSTANCES, { namespace: tenant.name, name }, { spec }, { type: 'merge' });
}

function reached(name: string, reason: string): Promise<GpuInstance> {
  return waitFor(
    `${name} to be ${reason}`,
    async () => {
      const found = await tenant.client.get(GPU_INSTANCES, { namespace: tenant.name, name });
      return readyReason(found) === reason && found;
    },
    50_000,
  );
}

describe.runIf(realNode !== undefined)('on a real node', () => {
  beforeAll(async () => {
    tenant = await testNamespace();
    berth = await startBerth(kubeconfig, 'controller');
  });

  afterAll(async () => {
    for (const { metadata } of (await tenant.client.list(GPU_INSTANCES, { namespace: tenant.name })).items)
      await tenant.client.delete(GPU_INSTANCES, metadata);
    await waitFor(
      'the instances to go',
      async () => (await tenant.client.list(GPU_INSTANCES, { namespace: tenant.name })).items.length === 0,
      60_000,
    );
    await berth[Symbol.asyncDispose]();
    await tenant[Symbol.asyncDispose]();
  });

  test('a pod that is deleted by force gives its GPUs to nobody before its program has ended', async () => {
    await create('first');
    await reached('first', 'Running');
    await create('second');
    await reached('second', 'WaitingForCapacity');
    const seen: string[] = [];
    const watching = new AbortController();
    const look = (): void => {
      const now = [...programs()].toSorted().join(' and ');
      if (seen.at(-1) !== now) seen.push(now);
    };
    const watched = (async () => {
      for (; !watching.signal.aborted; await delay(50)) look();
    })();
    await patch('first', { powerState: 'Stopped' });
    const gone = { namespace: tenant.name, name: 'first-1' };
    await tenant.client.delete(PODS, gone, { gracePeriodSeconds: 0 });
    await reached('second', 'Running');
    watching.abort();
    await watched;
    // A look at all processes takes seconds where many wait for the processor.
    look();
    expect(seen.filter((names) => names !== '')).toEqual(['first', 'second']);
    await reached('first', 'Stopped');
    await patch('second', { powerState: 'Stopped' });
    await tenant.client.delete(PODS, { namespace: tenant.name, name: 'second-1' }, { gracePeriodSeconds: 1 });
    await reached('second', 'Stopped');
  });

  test('a pod that a finalizer of another keeps gives its GPUs back, and neither a start nor a deletion waits for it', async () => {
    const { client, name: namespace } = tenant;
    const kept = { namespace, name: 'kept-1' };
    await create('kept', { command: ['sh', '-c', 'trap "exit" TERM; while :; do sleep 0.2; done'] });
    await reached('kept', 'Running');
    await client.patch(PODS, kept, [{ op: 'add', path: '/metadata/finalizers/-', value: 'tenant.example/keep' }], {
      type: 'json',
    });
    await patch('kept', { powerState: 'Stopped' });
    const stopped = await reached('kept', 'Stopped');
    expect([stopped.status?.claim, stopped.status?.intervals?.length]).toEqual([undefined, 1]);
    await patch('kept', { powerState: 'Running' });
    expect((await reached('kept', 'Running')).status?.podName).toBe('kept-2');
    await client.delete(GPU_INSTANCES, { namespace, name: 'kept' });
    const isGone = async () =>
      (await client.list(GPU_INSTANCES, { namespace })).items.every((one) => one.metadata.name !== 'kept');
    await waitFor('the instance to go', isGone, 50_000);
    const left = await client.list(PODS, { namespace });
    expect(left.items.map(({ metadata }) => [metadata.name, metadata.finalizers])).toContainEqual([
      'kept-1',
      ['tenant.example/keep'],
    ]);
    await client.patch(PODS, kept, { metadata: { finalizers: null } }, { type: 'merge' });
  });

  test('the kubelet says of a pod that Kubernetes collected before its first container ran that it runs no more', async () => {
    const { client, name: namespace } = tenant;
    const ref = { namespace, name: 'collected' };
    const container = { image: 'localhost:9/never:1' };
    await client.create(PODS, {
      metadata: { ...ref, finalizers: ['tenant.example/keep'] },
      spec: {
        nodeName: realNode ?? '',
        initContainers: [{ ...container, name: 'first' }],
        containers: [{ ...container, name: 'main' }],
      },
    });
    const find = () => client.get(PODS, ref);
    const node = await client.get(NODES, { name: realNode ?? '' });
    await waitFor(
      'the kubelet to speak of the pod',
      async () => (await find()).status?.initContainerStatuses?.some(({ state }) => state?.waiting !== undefined),
      50_000,
    );
    // As the garbage collector of pods does it when the Node object is gone.
    const conditions = [{ type: 'DisruptionTarget', status: 'True', reason: 'DeletionByPodGC' }];
    const failed = { status: { phase: 'Failed', conditions } };
    const collected = await client.patch(PODS, ref, failed, { type: 'strategic', subresource: 'status' });
    await client.delete(PODS, ref, { gracePeriodSeconds: 0 });
    const ended = await waitFor(
      'the kubelet to have ended the pod',
      async () => {
        const pod = await find();
        return !mayRun(pod, node) && pod;
      },
      50_000,
    );
    expect([mayRun(collected, node), ended.status?.initContainerStatuses?.[0]?.state?.terminated]).toEqual([
      true,
      undefined,
    ]);
    await client.patch(PODS, ref, { metadata: { finalizers: null } }, { type: 'merge' });
  });
});
