import { describe, expect, test } from 'vitest';
import type { Pod } from '../../../src/kube/types.ts';
import type { GpuInstance, GpuInstanceSpec } from '../../../src/resources/instances/gpu-instance.ts';
import { isSwitchedOff } from '../../../src/resources/instances/instance-state.ts';
import { controllerWorld, held } from '../../support/controller-world.ts';
import { gpuInstance } from '../../support/inventory-world.ts';

// An edit that mends a start may come before the start is over, as while its image is still tried.

/** Longer than an image is waited for. */
const LONG_MS = 25 * 60_000;

/** What becomes of an instance whose owner edits it while its start fails. `state`: of its container. */
async function edited(edit: Partial<GpuInstanceSpec>, state: object, { claimOnPod = false, phase = 'Failed' } = {}) {
  const world = controllerWorld(undefined, undefined, { takesChanges: true, claimOnPod });
  const seen = (): GpuInstance => world.instances.store.get('default/one') ?? expect.unreachable();
  const says = (name: string, status: NonNullable<Pod['status']>): void => {
    const pod = world.pods.store.get(`default/${name}`) ?? expect.unreachable();
    const version = String(world.clock.now());
    const metadata = { ...pod.metadata, resourceVersion: version };
    world.pods.upsert({ ...pod, metadata, spec: { containers: [], ...pod.spec, nodeName: 'n' }, status });
  };
  world.instances.upsert(held(gpuInstance('one', { image: 'wrong:1', runtype: 'args' })));
  await world.reconcile('one');
  const lastTransitionTime = new Date(world.clock.now()).toISOString();
  const conditions = ['PodScheduled', 'PodReadyToStartContainers'].map((type) => ({
    type,
    status: 'True',
    lastTransitionTime,
  }));
  const shows = (phaseNow: string, now: object): void => {
    const one = { name: 'main', image: 'wrong:1', imageID: '', ready: false, restartCount: 0, state: now };
    says('one-1', { phase: phaseNow, conditions, containerStatuses: [one] });
  };
  const ends = 'terminated' in state;
  shows('Pending', ends ? { running: { startedAt: '2026-01-01T00:01:00Z' } } : state);
  await world.clock.advance(60_000);
  await world.reconcile('one');
  const { metadata, spec } = seen();
  const after = { ...metadata, generation: 2, resourceVersion: '1000' };
  world.instances.upsert({ ...seen(), metadata: after, spec: { ...spec, ...edit } });
  await world.reconcile('one');
  await world.clock.advance(LONG_MS);
  shows(ends ? phase : 'Pending', state);
  for (let looks = 0; looks < 4; looks += 1) await world.reconcile('one');
  for (const pod of world.pods.store.values()) {
    if (pod.metadata.name === 'one-1') world.pods.remove(pod);
  }
  for (let looks = 0; looks < 4; looks += 1) await world.reconcile('one');
  return { endings: world.endings, status: seen().status, isOff: isSwitchedOff(seen()) };
}

const PULL = { waiting: { reason: 'ImagePullBackOff' } };
const EXIT = { terminated: { exitCode: 1, startedAt: '2026-01-01T00:01:00Z', finishedAt: '2026-01-01T00:02:00Z' } };

describe.each([
  ['ImagePullFailed', PULL],
  ['ContainerFailed', EXIT],
])('an instance whose start ends as %s', (reason, state) => {
  test.each([true, false])(
    'starts with what its owner mended before the end; its pod bore the claim: %s',
    async (onPod) => {
      const found = await edited({ image: 'right:1' }, state, { claimOnPod: onPod });
      expect(found.endings).toEqual([reason]);
      expect(found.status).toMatchObject({ incarnation: 2, image: 'right:1', claim: { node: 'n' } });
    },
  );

  test('stays failed when nothing was edited that a start depends on', async () => {
    const found = await edited({ label: 'x' }, state);
    expect(found.endings).toEqual([reason]);
    expect([found.status?.incarnation, found.isOff]).toEqual([1, true]);
  });
});

test('an instance that ran to its end is not started by an edit of before', async () => {
  const done = { terminated: { ...EXIT.terminated, exitCode: 0 } };
  const found = await edited({ image: 'right:1' }, done, { phase: 'Succeeded' });
  expect(found.endings).toEqual(['Completed']);
  expect([found.status?.incarnation, found.isOff]).toEqual([1, true]);
});
