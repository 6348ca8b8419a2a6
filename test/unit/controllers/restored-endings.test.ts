import { describe, expect, test } from 'vitest';
import type { GpuInstance, GpuInstanceSpec, GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { isSwitchedOff, startHash } from '../../../src/resources/instances/instance-state.ts';
import { isOwed } from '../../../src/controllers/gpu-instance/decide/endings.ts';
import { isBroughtBack, refusedStatus } from '../../../src/controllers/gpu-instance/decide/transitions.ts';
import { controllerWorld, held } from '../../support/controller-world.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';

// A backup of the objects, with the status. A restored object counts its generations from 1 again, and edits of it come to
// the number that the ending has.

const AT = '2025-12-31T23:00:00.000Z';
const OFF: Partial<GpuInstanceSpec> = { powerState: 'Stopped' };

interface Saved {
  reason?: string;
  generation: number;
  observed: number;
  /** Whether the instance was not switched off since it ended. */
  hasHash?: boolean;
  spec?: Partial<GpuInstanceSpec>;
}

/** The instance after the restore, which the controller has seen. */
async function restored({ reason = 'Expired', generation, observed, hasHash = true, spec = {} }: Saved) {
  const world = controllerWorld();
  const whole = gpuInstance('one', spec);
  const hash = hasHash && { startHash: startHash(whole.spec) };
  const status: GpuInstanceStatus = {
    uid: 'uid-before',
    incarnation: 1,
    observedGeneration: observed,
    ending: { reason, message: 'It ended.', at: AT, generation, ...hash },
    stages: { accepted: AT, stopped: AT },
  };
  world.instances.upsert(held({ ...whole, status }));
  await world.reconcile('one');
  const current = (): GpuInstance => world.instances.store.get('default/one') ?? expect.unreachable();
  expect(current().status?.uid).toBe('uid-one');
  return {
    current,
    /** What the next edits of the owner lead to. */
    edit: async (...edits: Partial<GpuInstanceSpec>[]): Promise<GpuInstance> => {
      for (const edit of edits) {
        const before = current();
        const next = (before.metadata.generation ?? 0) + 1;
        const metadata = { ...before.metadata, generation: next, resourceVersion: `9${next}` };
        world.instances.upsert({ ...before, metadata, spec: { ...before.spec, ...edit } });
        await world.reconcile('one');
      }
      return current();
    },
  };
}

describe('an instance that came back from a backup', () => {
  test.each([1, 2, 3, 4])('starts when its owner asks for it, with an ending of generation %i', async (generation) => {
    const { current, edit } = await restored({ generation, observed: generation });
    expect(isSwitchedOff(current())).toBe(true);
    const asked = await edit({ label: 'x' }, { startRequest: 'now' });
    expect(asked.status?.claim).toBeDefined();
  });

  test.each([1, 2, 3, 4])('starts when its owner mends it, with an ending of generation %i', async (generation) => {
    const { current, edit } = await restored({ reason: 'ContainerFailed', generation, observed: generation });
    expect(isSwitchedOff(current())).toBe(true);
    const mended = await edit({ label: 'x' }, { image: 'debian:13' });
    expect(mended.status?.claim).toBeDefined();
  });

  test.each([1, 2, 3, 4])(
    'starts when it is switched on again, with an ending of generation %i',
    async (generation) => {
      const { edit } = await restored({ generation, observed: 5, hasHash: false, spec: OFF });
      expect((await edit({ label: 'x' })).status?.claim).toBeUndefined();
      expect((await edit({ powerState: 'Running' })).status?.claim).toBeDefined();
    },
  );

  test.each([1, 2, 3, 4])('starts when it had been switched on before, after generation %i', async (generation) => {
    const { current } = await restored({ generation, observed: 5, hasHash: false });
    expect(isOwed(current())).toBe(false);
    expect(current().status?.claim).toBeDefined();
  });

  test.each([true, false])('starts by no edit that asks for nothing; the ending has a hash: %s', async (hasHash) => {
    const { current, edit } = await restored({ reason: 'Completed', generation: 3, observed: 3, hasHash });
    expect(isSwitchedOff(current())).toBe(true);
    expect(current().status?.claim).toBeUndefined();
    if (hasHash) expect((await edit({ label: 'x' }, { label: 'y' }, { label: 'z' })).status?.claim).toBeUndefined();
  });

  test('is known as such although it never had a place', () => {
    const instance = gpuInstance('one');
    const status = refusedStatus(instance, { reason: 'NoCapacity', message: '' }, Date.parse(AT));
    expect(isBroughtBack({ ...instance, status })).toBe(false);
    expect(isBroughtBack({ metadata: { ...instance.metadata, uid: 'uid-after' }, status })).toBe(true);
  });

  test.each([2, 3])(
    'is owed no start once it was switched off, with an ending of generation %i',
    async (generation) => {
      const off = await restored({ reason: 'Preempted', generation, observed: 5, hasHash: false, spec: OFF });
      expect(isOwed(await off.edit({ label: 'x' }, { label: 'y' }))).toBe(false);
    },
  );

  test.each([
    ['had ended', false],
    ['was ending', true],
  ])('is not deleted again for a limit that was over when it was saved: it %s', async (_how, hasClaim) => {
    const world = controllerWorld();
    const whole = gpuInstance('one', { maxDuration: '1h', onExpiry: 'Delete' });
    const ending = {
      reason: 'Expired',
      message: '',
      at: AT,
      generation: 1,
      startHash: startHash(whole.spec),
      limit: '1h',
    };
    const claim = hasClaim && { claim: claimOn('n'), podName: 'one-1' };
    const status = {
      uid: 'uid-before',
      incarnation: 1,
      observedGeneration: 1,
      ending,
      stages: { stopped: AT },
      ...claim,
    };
    world.instances.upsert(held({ ...whole, status }));
    for (let looks = 0; looks < 3; looks += 1) {
      await world.reconcile('one');
      await world.clock.advance(120_000);
    }
    expect(world.instances.store.get('default/one')?.status?.claim).toBeUndefined();
    expect(world.writes.filter(({ verb }) => verb === 'delete')).toEqual([]);
  });
});
