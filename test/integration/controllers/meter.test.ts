import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { PODS } from '../../../src/kube/types.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { BUSYBOX_IMAGE } from '../../../tools/cluster/built/real-node.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { kindsCounted } from '../../support/kinds-counted.ts';
import { describeWith } from '../../support/needs.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';

// What a tenant does so as not to pay, on a node where containers run.

let berth: BerthProcess;
let tenant: TestNamespace;

beforeAll(async () => {
  tenant = await testNamespace();
  await kindsCounted(tenant.client);
  berth = await startBerth(inject('cluster').kubeconfig);
});
afterAll(async () => {
  await berth[Symbol.asyncDispose]();
  await tenant[Symbol.asyncDispose]();
});

const ref = (name: string) => ({ name, namespace: tenant.name });

async function rent(name: string, spec: Record<string, unknown>): Promise<void> {
  const wanted = { gpu: { product: 'NVIDIA-L4', count: 1 }, image: BUSYBOX_IMAGE, ...spec };
  await tenant.client.create(GPU_INSTANCES, { metadata: ref(name), spec: wanted } as never);
}

/** When the container of the pod has been started again so often, milliseconds since the epoch. */
async function restarted(name: string, times: number): Promise<number> {
  await waitFor(
    `${name} to restart ${times} times`,
    async () => {
      const { items } = await tenant.client.list(PODS, { namespace: tenant.name });
      const pod = items.find(({ metadata }) => metadata.name === `${name}-1`);
      return pod?.status?.containerStatuses?.some(({ restartCount }) => restartCount >= times);
    },
    90_000,
  );
  return Date.now();
}

/** Stops an instance, and reads it once its place is given back. */
async function stopped(name: string): Promise<GpuInstance> {
  await tenant.client.patch(GPU_INSTANCES, ref(name), { spec: { powerState: 'Stopped' } }, { type: 'merge' });
  const instance = await waitFor(
    `${name} to give its place back`,
    async () => {
      const found = await tenant.client.get(GPU_INSTANCES, ref(name));
      return found.status?.stages?.stopped !== undefined && found;
    },
    90_000,
  );
  await tenant.client.delete(GPU_INSTANCES, ref(name));
  return instance;
}

describeWith('real node')('the meter', () => {
  it('runs from the first run on while a container restarts before each login', { timeout: 300_000 }, async () => {
    // Root's shell never answers, and the program works for some seconds, then restarts its container.
    const onStart = String.raw`
      printf '#!/bin/sh\nsleep 600\n' >/never; chmod +x /never; sed -i 's#^\(root:.*\):[^:]*$#\1:/never#' /etc/passwd
      (sleep 8; kill -TERM 1) &`;
    await rent('hidden', { onStart });
    const until = await restarted('hidden', 2);
    const { status } = await stopped('hidden');
    const [interval] = status?.intervals ?? [];
    expect(status?.stages?.ready).toBeUndefined();
    expect(interval?.from).toBe(status?.stages?.started);
    expect(Date.parse(interval?.to ?? '')).toBeGreaterThanOrEqual(until - 2_000);
    // Two runs, and the back-off of ten seconds after the second.
    expect(status?.usage?.gpuSeconds).toBeGreaterThan(24);
  });

  it('runs from the first run on in a crash loop', { timeout: 300_000 }, async () => {
    await rent('crashes', { onStart: 'kill -TERM 1' });
    const until = await restarted('crashes', 2);
    const { status } = await stopped('crashes');
    const [interval] = status?.intervals ?? [];
    expect(interval?.from).toBe(status?.stages?.started);
    expect(Date.parse(interval?.to ?? '')).toBeGreaterThanOrEqual(until - 2_000);
    expect(status?.usage?.gpuSeconds).toBeGreaterThan(9);
  });

  it('runs until a program that does not end when it is told to has ended', { timeout: 300_000 }, async () => {
    const program = 'trap "" TERM; while :; do sleep 1; done';
    await rent('stubborn', { runtype: 'args', command: ['sh', '-c', program] });
    await waitFor(
      'stubborn to run',
      async () => (await tenant.client.get(GPU_INSTANCES, ref('stubborn'))).status?.stages?.ready !== undefined,
      60_000,
    );
    const { status } = await stopped('stubborn');
    const { at = '', finishedAt = '' } = status?.ending ?? {};
    expect(status?.usage?.until).toBe(finishedAt);
    // The grace, less the second that the kubelet's times are cut to.
    const trapped = Date.parse(finishedAt) - Date.parse(at);
    expect(trapped).toBeGreaterThan(27_000);
    expect(trapped).toBeLessThanOrEqual(30_000);
  });
});
