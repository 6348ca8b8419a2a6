import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { findCondition } from '../../../src/kube/conditions.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { NODES, PODS } from '../../../src/kube/types.ts';
import { GPU_POOLS, gpuPoolSpecSchema } from '../../../src/resources/gpu-pool.ts';
import { IMAGE_PULL_LABEL } from '../../../src/resources/pod/image-pull.ts';
import { createWorld } from '../../faults/support/world.ts';
import { importSshImages } from '../../support/ssh-images.ts';
import { waitFor } from '../../support/wait-for.ts';

const { realNode, initPid, programs } = inject('cluster');
const LABEL = 'berth.dev/test-images';
/** Whoever else runs controllers in this cluster at the same time holds the lease first. */
const LEASE_WAIT_MS = 50_000;

async function pulls(client: KubeClient, pool: string): Promise<number> {
  const { items } = await client.list(PODS, { labelSelector: IMAGE_PULL_LABEL });
  return items.filter(({ metadata }) => metadata.ownerReferences?.some(({ name }) => name === pool)).length;
}

test('simulated nodes pull nothing', async () => {
  await using world = await createWorld();
  const { client, fleet } = world;
  await world.replica();
  await client.patch(GPU_POOLS, { name: fleet.pool }, { spec: { images: ['debian:12'] } }, { type: 'merge' });
  const status = await waitFor(
    'the condition ImagesReady',
    async () => {
      const pool = await client.get(GPU_POOLS, { name: fleet.pool });
      return findCondition(pool.status?.conditions, 'ImagesReady') && pool.status;
    },
    LEASE_WAIT_MS,
  );
  expect(findCondition(status.conditions, 'ImagesReady')).toMatchObject({ status: 'True', reason: 'NothingToPull' });
  expect(status.images).toEqual([{ image: 'debian:12', nodes: 0, present: 0, failing: 0 }]);
  expect(await pulls(client, fleet.pool)).toBe(0);
});

test('a pool takes images that instances could name, and no empty one', async () => {
  await using world = await createWorld();
  const write = (images: string[]): Promise<unknown> =>
    world.client.patch(GPU_POOLS, { name: world.fleet.pool }, { spec: { images } }, { type: 'merge' });
  await write(['registry.test/team/app:1.2', `debian@sha256:${'a'.repeat(64)}`]);
  for (const images of [[''], ['Debian:12'], ['a', 'a'], Array.from({ length: 33 }, (_, index) => `a:${index}`)]) {
    await expect(write(images)).rejects.toThrow('spec.images');
  }
});

describe.runIf(realNode !== undefined)('on a real node', () => {
  let registry: ChildProcess;

  beforeAll(async () => {
    if (initPid === undefined || programs === undefined) throw new Error('A real node has both.');
    await importSshImages({ initPid, programs });
    const program = fileURLToPath(new URL('../../support/registry-process.ts', import.meta.url));
    const inside = ['--target', String(initPid), '--net', process.execPath, program];
    registry = spawn('nsenter', inside, { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(registry.stdout as NodeJS.ReadableStream, 'data');
  });

  afterAll(async () => {
    registry.kill('SIGKILL');
    await once(registry, 'exit');
  });

  test('an image that a pool lists gets onto its node, and one that is nowhere is told', async () => {
    await using world = await createWorld();
    const { client } = world;
    const node = realNode ?? '';
    const name = `images-${randomBytes(4).toString('hex')}`;
    const [there, nowhere] = [`localhost/team/${name}:1`, `localhost/nobody/${name}:1`];
    const label = (value: string | null): Promise<unknown> =>
      client.patch(NODES, { name: node }, { metadata: { labels: { [LABEL]: value } } }, { type: 'merge' });
    // Most labels win: another pool of the cluster has one of them.
    const nodeSelector = { [LABEL]: name, 'nvidia.com/gpu.present': 'true' };
    await label(name);
    try {
      const spec = gpuPoolSpecSchema.parse({ nodeSelector, images: [there, nowhere] });
      await client.create(GPU_POOLS, { metadata: { name }, spec });
      await world.replica();
      const status = await waitFor(
        'the images of the pool',
        async () => {
          const { status: now } = await client.get(GPU_POOLS, { name });
          const [first, second] = now?.images ?? [];
          return first?.present === 1 && second?.failing === 1 ? now : undefined;
        },
        2 * LEASE_WAIT_MS,
      );
      expect(status.images?.[1]?.message).toMatch(/^(ErrImagePull|ImagePullBackOff): .*not found/s);
      expect(findCondition(status.conditions, 'ImagesReady')).toMatchObject({ status: 'False', reason: 'PullFailed' });
      await waitFor(
        'the node to show the image',
        async () => {
          const { status: now } = await client.get(NODES, { name: node });
          return now?.images?.some(({ names }) => names?.includes(there)) ?? false;
        },
        LEASE_WAIT_MS,
      );
      await waitFor('the pods to be gone', async () => (await pulls(client, name)) === 0);
      const fixed = { spec: { images: [there] } };
      await client.patch(GPU_POOLS, { name }, fixed, { type: 'merge' });
      await waitFor('the pool to be ready', async () => {
        const { status: now } = await client.get(GPU_POOLS, { name });
        return findCondition(now?.conditions, 'ImagesReady')?.reason === 'Present' && now?.images?.length === 1;
      });
    } finally {
      await client.delete(GPU_POOLS, { name });
      await label(null);
    }
  }, 180_000);
});
