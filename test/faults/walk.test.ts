import fc from 'fast-check';
import { expect, inject, test } from 'vitest';
import { AlreadyExistsError, ConflictError, InvalidError, NotFoundError } from '../../src/kube/errors.ts';
import { NODES, PODS } from '../../src/kube/types.ts';
import { GPU_INSTANCES } from '../../src/resources/instances/gpu-instance.ts';
import { noFaults, refuseNext } from '../support/fault-proxy/faults.ts';
import { waitFor } from '../support/wait-for.ts';
import { type BrokenWay, brokenWay, CACHES } from './support/behind-proxy.ts';
import { isSettled } from './support/settled.ts';
import { createWorld, offeredBy, type World, violationsAtRest } from './support/world.ts';

const NAMES = ['a', 'b', 'c', 'd'] as const;
const name = fc.constantFrom(...NAMES);
const count = fc.constantFrom(1, 2, 4, 8, 64);

type Step = (world: World, way: BrokenWay) => unknown;

/** Misoperation is part of the walk: a refusal of the API server, or a missing object, does not fail the test. */
async function forgiving(action: () => unknown): Promise<void> {
  try {
    await action();
  } catch (error) {
    const isExpected =
      error instanceof NotFoundError || error instanceof ConflictError || error instanceof InvalidError;
    if (!isExpected && !(error instanceof AlreadyExistsError)) throw error;
  }
}

/** What happens to the way between the controllers and the API server. */
const NETWORK: Record<string, (way: BrokenWay) => unknown> = {
  'watches are reset': ({ proxy }) => proxy.cutWatches('reset'),
  'watches end': ({ proxy }) => proxy.cutWatches('end'),
  'watches expire': ({ proxy }) => proxy.expireWatches(),
  'the API server is away': ({ proxy }) => proxy.setDown(true),
  'the API server is back': ({ proxy }) => proxy.setDown(false),
  'three refusals': ({ proxy }) => {
    proxy.faults.refuse = refuseNext(3, { status: 429, reason: 'TooManyRequests', retryAfter: 1 }, () => true);
  },
  'events come twice': ({ proxy }) => (proxy.faults.twice = true),
  'events come in pieces': ({ proxy }) => (proxy.faults.pieceBytes = 300),
  'events of pods are lost': ({ proxy }) => (proxy.faults.silent = (path) => path === '/api/v1/pods'),
  'answers are slow': ({ proxy }) => (proxy.faults.delayMs = 50),
};

function heal({ proxy }: BrokenWay): void {
  proxy.cutWatches('reset');
  proxy.setDown(false);
  Object.assign(proxy.faults, noFaults());
}

async function podOf(world: World, instance: string) {
  return (await world.pods()).find(({ metadata }) => metadata.labels?.['berth.dev/instance'] === instance);
}

const step: fc.Arbitrary<{ description: string; run: Step }> = fc.oneof(
  fc.record({ name, count, spot: fc.boolean(), fail: fc.boolean() }).map(({ name, count, spot, fail }) => ({
    description: `create ${name} ${count}${spot ? ' spot' : ''}${fail ? ' fail' : ''}`,
    run: (world: World) =>
      world.create(name, {
        gpu: { count },
        ...(spot && { type: 'Interruptible' as const }),
        ...(fail && { onNoCapacity: 'Fail' as const }),
      }),
  })),
  fc.tuple(name, fc.constantFrom('Running', 'Stopped')).map(([name, powerState]) => ({
    description: `${name} -> ${powerState}`,
    run: (world: World) => world.patch(name, { spec: { powerState } }),
  })),
  name.map((name) => ({ description: `delete ${name}`, run: (world: World) => world.remove(name) })),
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
      description: `patch ${name} ${JSON.stringify(body)}`,
      run: (world: World) => world.patch(name, body),
    })),
  name.map((name) => ({
    description: `delete the pod of ${name}`,
    run: async (world: World) => {
      const pod = await podOf(world, name);
      if (pod !== undefined) await world.client.delete(PODS, pod.metadata);
    },
  })),
  name.map((name) => ({
    description: `take the labels of the pod of ${name}`,
    run: async (world: World) => {
      const pod = await podOf(world, name);
      const body = { metadata: { labels: { 'berth.dev/instance': null }, ownerReferences: [] } };
      if (pod !== undefined) await world.client.patch(PODS, pod.metadata, body, { type: 'merge' });
    },
  })),
  fc.constantFrom(...Object.entries(NETWORK)).map(([description, run]) => ({
    description,
    run: (_world: World, way: BrokenWay) => run(way),
  })),
  fc.tuple(fc.nat(1), fc.boolean()).map(([index, unschedulable]) => ({
    description: `node ${index} ${unschedulable ? 'cordoned' : 'opened'}`,
    run: (world: World) =>
      world.client.patch(
        NODES,
        { name: world.fleet.nodes[index] ?? '' },
        { spec: { unschedulable } },
        { type: 'merge' },
      ),
  })),
);

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

// As in the Acto paper: mutations and misoperations, and after each walk nothing is left.
test(
  'whatever is done to instances and to the network, the world settles and nothing leaks',
  { timeout: 600_000 },
  async () => {
    const seed = inject('seed');
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async (steps) => {
        await using world = await createWorld({ nodes: 2 });
        await using way = await brokenWay(world);
        const replica = await way.replica();
        for (const { run } of steps) await forgiving(() => run(world, way));
        heal(way);
        await waitFor('every cache to watch again', () => way.proxy.openWatches >= CACHES, 60_000);
        for (const node of world.fleet.nodes) {
          await world.client.patch(NODES, { name: node }, { spec: { unschedulable: false } }, { type: 'merge' });
        }
        await settled(world);
        expect(await violationsAtRest(world, replica)).toEqual([]);
        for (const one of NAMES) await world.remove(one);
        for (const one of NAMES) await world.gone(one);
        expect(await violationsAtRest(world, replica)).toEqual([]);
        expect(offeredBy(replica, world.fleet)).toBe(16);
      }),
      { numRuns: 12, seed, endOnFailure: true, reporter: report },
    );
  },
);

function report(run: fc.RunDetails<[{ description: string; run: Step }[]]>): void {
  if (!run.failed) return;
  const walk = run.counterexample?.[0].map(({ description }) => description).join('\n  ');
  throw new Error(`Seed ${run.seed}, walk:\n  ${walk}`, { cause: run.errorInstance });
}
