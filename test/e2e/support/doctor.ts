import { expect, inject } from 'vitest';
import { NAMESPACES, NODES, PODS } from '../../../src/kube/types.ts';
import { factsOf, notFound, plantFaults, runDoctor } from '../../support/planted-faults.ts';
import { waitFor } from '../../support/wait-for.ts';
import { INSTANCE_IMAGE } from './images.ts';
import { sshAt } from './release.ts';
import type { World } from './world.ts';

const POOL = { currency: 'USD', prices: [{ product: '*', onDemand: '1', interruptible: '1' }] };
const MINUTES = 60_000;

/**
 * What an operator has done on a sound installation: prices, an address of SSH, the runtime's settings confirmed, an
 * exporter of metrics.
 */
async function makeSound(world: World): Promise<void> {
  const { client, release } = world;
  await release.upgrade({ defaultPool: { spec: POOL }, ...sshAt({ host: 'ssh.example.com' }) });
  const { items } = await client.list(NODES);
  for (const { metadata } of items) {
    const labels = { 'berth.dev/gpu-isolation': 'enforced' };
    await client.patch(NODES, { name: metadata.name }, { metadata: { labels } }, { type: 'merge' });
    await client.create(PODS, {
      metadata: { name: `dcgm-${metadata.name}`, namespace: 'default', labels: { app: 'nvidia-dcgm-exporter' } },
      spec: {
        nodeName: metadata.name,
        containers: [{ name: 'main', image: INSTANCE_IMAGE, command: ['sleep', '3600'] }],
      },
    });
  }
}

/** `berth doctor` finds nothing wrong with a release that is sound, and each of the faults that are planted then. */
export async function tryDoctor(world: World): Promise<void> {
  const { kubeconfig } = inject('e2e');
  await makeSound(world);
  // No DaemonSet enforces network policies here, so it says that it does not know.
  const nothing = ['network EnforcementNotKnown'];
  let found: string[] = [];
  await waitFor(
    'the release is sound',
    async () => {
      found = (await runDoctor(kubeconfig)).findings.map(factsOf);
      return found.join() === nothing.join();
    },
    2 * MINUTES,
  ).catch(() => expect(found).toEqual(nothing));
  expect((await runDoctor(kubeconfig)).code).toBe(0);
  // With a probe it knows: the pod that the policy closes is not reached. What it made for that is gone.
  const probed = await runDoctor(kubeconfig, ['--probe']);
  expect([probed.code, probed.findings]).toEqual([0, []]);
  const { items } = await world.client.list(NAMESPACES);
  const left = items.filter(({ metadata }) => metadata.name.startsWith('berth-doctor-'));
  expect(left.filter(({ metadata }) => metadata.deletionTimestamp === undefined)).toEqual([]);
  const planted = await plantFaults(world.client);
  try {
    const { code, findings } = await runDoctor(kubeconfig);
    expect([code, notFound(planted, findings)]).toEqual([1, []]);
    expect(planted.expected.length).toBeGreaterThanOrEqual(10);
  } finally {
    await planted[Symbol.asyncDispose]();
  }
}
