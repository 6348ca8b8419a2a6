import fc from 'fast-check';
import { expect, inject, test } from 'vitest';
import { ConflictError, InvalidError, NotFoundError } from '../../src/kube/errors.ts';
import { NODES, PODS } from '../../src/kube/types.ts';
import { READY_REASONS } from '../../src/resources/instance-state.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../src/resources/gpu-instance.ts';
import { waitFor } from '../support/wait-for.ts';
import { createWorld, offeredBy, readyReason, type World } from './support/world.ts';

const NAMES = ['a', 'b', 'c', 'd'] as const;
const name = fc.constantFrom(...NAMES);
const count = fc.constantFrom(1, 2, 4, 8, 64);

type Step = (world: World) => Promise<unknown>;

/** Misoperation is part of the walk: what the API server refuses, or what is not there, is no failure of ours. */
async function forgiving(action: Promise<unknown>): Promise<void> {
  await action.catch((error: unknown) => {
    const isExpected =
      error instanceof NotFoundError || error instanceof ConflictError || error instanceof InvalidError;
    if (!isExpected && !(error instanceof Error && error.message.includes('AlreadyExists'))) throw error;
  });
}

async function podOf(world: World, instance: string) {
  return (await world.pods()).find(({ metadata }) => metadata.labels?.['berth.dev/instance'] === instance);
}

const step: fc.Arbitrary<{ told: string; run: Step }> = fc.oneof(
  fc.record({ name, count, spot: fc.boolean(), fail: fc.boolean() }).map(({ name, count, spot, fail }) => ({
    told: `create ${name} ${count}${spot ? ' spot' : ''}${fail ? ' fail' : ''}`,
    run: (world: World) =>
      world.create(name, {
        gpu: { count },
        ...(spot && { type: 'Interruptible' as const }),
        ...(fail && { onNoCapacity: 'Fail' as const }),
      }),
  })),
  fc.tuple(name, fc.constantFrom('Running', 'Stopped')).map(([name, powerState]) => ({
    told: `${name} -> ${powerState}`,
    run: (world: World) => world.patch(name, { spec: { powerState } }),
  })),
  name.map((name) => ({ told: `delete ${name}`, run: (world: World) => world.remove(name) })),
  fc
    .tuple(
      name,
      fc.constantFrom(
        { spec: { label: 'x'.repeat(255) } },
        { spec: { image: 'no/such:image' } },
        { spec: { runtype: 'args', args: [] } },
        { spec: { sshKeyIds: [1, 2, 3] } },
        { spec: { maxDuration: '2s' } },
        { spec: { maxDuration: null } },
        { spec: { templateId: 7 } },
        { spec: { templateId: null } },
        { spec: { diskGb: 16384 } },
        { spec: { gpu: { count: 3 } } },
        { spec: { type: 'Nonsense' } },
        { metadata: { finalizers: [] } },
        { metadata: { annotations: { x: 'y' } } },
        { status: { claim: null } },
      ),
    )
    .map(([name, body]) => ({
      told: `patch ${name} ${JSON.stringify(body)}`,
      run: (world: World) => world.patch(name, body),
    })),
  name.map((name) => ({
    told: `delete the pod of ${name}`,
    run: async (world: World) => {
      const pod = await podOf(world, name);
      if (pod !== undefined) await world.client.delete(PODS, pod.metadata);
    },
  })),
  name.map((name) => ({
    told: `take the labels of the pod of ${name}`,
    run: async (world: World) => {
      const pod = await podOf(world, name);
      const body = { metadata: { labels: { 'berth.dev/instance': null }, ownerReferences: [] } };
      if (pod !== undefined) await world.client.patch(PODS, pod.metadata, body, { type: 'merge' });
    },
  })),
  fc.tuple(fc.nat(1), fc.boolean()).map(([index, unschedulable]) => ({
    told: `node ${index} ${unschedulable ? 'cordoned' : 'opened'}`,
    run: (world: World) =>
      world.client.patch(
        NODES,
        { name: world.fleet.nodes[index] ?? '' },
        { spec: { unschedulable } },
        { type: 'merge' },
      ),
  })),
);

/** Reasons that stay as they are until somebody does something. */
function isSettled(instance: GpuInstance): boolean {
  const reason = readyReason(instance);
  if (instance.metadata.deletionTimestamp !== undefined || reason === undefined) return false;
  if (instance.status?.observedGeneration !== instance.metadata.generation) return false;
  const { state } = READY_REASONS[reason as keyof typeof READY_REASONS];
  const waits = reason === 'WaitingForCapacity' || reason === 'Preempted';
  // A pause after failures may be minutes long; it is a state at rest for this test.
  return waits || reason === 'BackingOff' || ['running', 'stopped', 'failed'].includes(state);
}

async function settled(world: World): Promise<void> {
  let last = '';
  let since = performance.now();
  await waitFor(
    'the world to settle',
    async () => {
      const { items } = await world.client.list(GPU_INSTANCES, { namespace: world.namespace });
      const now = JSON.stringify(items.map(({ metadata }) => metadata.resourceVersion));
      if (now !== last || !items.every(isSettled)) {
        last = now;
        since = performance.now();
      }
      return performance.now() - since > 700;
    },
    60_000,
  );
}

// Acto: mutations and misoperations, and after each walk the same state as if it had never been.
test('whatever is done to instances, the world settles and nothing leaks', { timeout: 600_000 }, async () => {
  const seed = inject('seed');
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async (steps) => {
      await using world = await createWorld({ nodes: 2 });
      const replica = await world.replica();
      for (const { run } of steps) await forgiving(run(world));
      for (const node of world.fleet.nodes) {
        await world.client.patch(NODES, { name: node }, { spec: { unschedulable: false } }, { type: 'merge' });
      }
      await settled(world);
      expect(await world.observer.atRest(offeredBy(replica, world.fleet))).toEqual([]);
      for (const one of NAMES) await world.remove(one);
      for (const one of NAMES) await world.gone(one, 30_000);
      expect(await world.observer.atRest(offeredBy(replica, world.fleet))).toEqual([]);
      expect(offeredBy(replica, world.fleet)).toBe(16);
    }),
    { numRuns: 12, seed, endOnFailure: true, reporter: report },
  );
});

function report(run: fc.RunDetails<[{ told: string; run: Step }[]]>): void {
  if (!run.failed) return;
  const walk = run.counterexample?.[0].map(({ told }) => told).join('\n  ');
  throw new Error(`Seed ${run.seed}, walk:\n  ${walk}`, { cause: run.errorInstance });
}
