import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { findCondition } from '../../../src/kube/conditions.ts';
import { NotFoundError } from '../../../src/kube/errors.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { BUSYBOX_IMAGE } from '../../../tools/cluster/built/real-node.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { kindsCounted } from '../../support/kinds-counted.ts';
import { describeWith } from '../../support/needs.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';
import { compare } from './arena.ts';

// A tenant whose images never come asks for both GPUs of the node again and again, beside one that rents. It has held
// places for more than an hour before, so that the test need not last as long.

const HOUR = 3_600_000;
const LONG_MS = 120_000;
const iso = (ago: number): string => new Date(Date.now() - ago).toISOString();

let home: TestNamespace;
let hostile: TestNamespace;
let honest: TestNamespace;
let berth: BerthProcess;

async function rent({ client, name: namespace }: TestNamespace, name: string, image: string): Promise<void> {
  const spec = { gpu: { product: 'NVIDIA-L4', count: 1 }, image };
  await client.create(GPU_INSTANCES, { metadata: { namespace, name }, spec } as never);
}

/** A start of some time ago that held a GPU for an hour and a half, and whose container never ran. */
async function remember({ client, name: namespace }: TestNamespace): Promise<void> {
  const ref = { namespace, name: 'before' };
  const spec = { gpu: { product: 'NVIDIA-L4', count: 1 }, image: 'registry.invalid/never:1', powerState: 'Stopped' };
  await client.create(GPU_INSTANCES, { metadata: ref, spec } as never);
  const status = {
    incarnation: 1,
    lastProduct: { product: 'NVIDIA-L4', gpuCount: 1 },
    stages: { claimed: iso(3.5 * HOUR), stopped: iso(2 * HOUR) },
    ending: { reason: 'ImagePullFailed', message: 'It did not come.', at: iso(2 * HOUR) },
  };
  await client.patch(GPU_INSTANCES, ref, { status }, { type: 'merge', subresource: 'status' });
}

function instancesOf({ client, name: namespace }: TestNamespace): Promise<GpuInstance[]> {
  return client.list(GPU_INSTANCES, { namespace }).then(({ items }) => items);
}

async function remove(space: TestNamespace): Promise<void> {
  for (const { metadata } of await instancesOf(space))
    await space.client.delete(GPU_INSTANCES, metadata).catch((error: unknown) => {
      if (!(error instanceof NotFoundError)) throw error;
    });
  await waitFor('the instances to go', async () => (await instancesOf(space)).length === 0, LONG_MS);
}

/** Rents, and gives the GPU back once there is one. */
async function rentOnce(): Promise<void> {
  await rent(honest, 'lab', BUSYBOX_IMAGE);
  await waitFor('the GPU', async () => (await instancesOf(honest))[0]?.status?.claim !== undefined, LONG_MS);
  await remove(honest);
}

describeWith('real node', 'mmdebstrap')('GPUs that are held for nothing', () => {
  beforeAll(async () => {
    [home, hostile, honest] = await Promise.all([testNamespace(), testNamespace(), testNamespace()]);
    await kindsCounted(home.client);
    await remember(hostile);
    berth = await startBerth(inject('cluster').kubeconfig, 'all', home.name);
  }, 300_000);

  afterAll(async () => {
    await remove(hostile);
    await berth[Symbol.asyncDispose]();
    for (const space of [hostile, honest, home]) await space[Symbol.asyncDispose]();
  }, 300_000);

  it('an honest tenant rents beside images that never come', { timeout: 400_000 }, async () => {
    await compare('GPUs held by images that never come, a GPU for another tenant', rentOnce, async () => {
      for (let count = 0; count < 8; count += 1) await rent(hostile, `never-${count}`, 'registry.invalid/never:1');
      await waitFor(
        'the answers',
        async () =>
          (await instancesOf(hostile)).filter(
            ({ status }) => findCondition(status?.conditions, 'Ready')?.reason === 'TenantLimit',
          ).length === 7,
        LONG_MS,
      );
    });
    // It got one place, and holds it yet; no other, though one is free.
    const held = (await instancesOf(hostile)).filter(({ status }) => status?.claim !== undefined);
    expect(held).toHaveLength(1);
    expect(held[0]?.status?.usage).toBeUndefined();
    // Whoever gives a place back that nobody paid for waits before the next.
    await remove(hostile);
    await rent(hostile, 'again', 'registry.invalid/never:1');
    const message = await waitFor('the refusal', async () => {
      const [one] = await instancesOf(hostile);
      return findCondition(one?.status?.conditions, 'Ready')?.message;
    });
    expect(message).toContain('The next start is due at');
  });
});
