import { expect, test } from 'vitest';
import { findCondition } from '../../src/kube/conditions.ts';
import { type KubeObject, type Pod, PODS } from '../../src/kube/types.ts';
import type { Claim } from '../../src/resources/instances/claim.ts';
import { GPU_INSTANCES, type GpuInstance, type GpuInstanceStatus } from '../../src/resources/instances/gpu-instance.ts';
import { firstPodOf, withClaimOf } from '../../src/resources/pod/claim-on-pod.ts';
import { PRODUCTS, World } from '../simulation/world.ts';
import { SEED } from './support/seed.ts';

const NODES = 64;
/** What programs have to end, and what Berth has to see it and to decide. */
const GRACE_MS = 30_000;
const BERTH_MS = 2_000;
/** Half a minute of one core, and long enough for a busy machine. */
const LONG = { timeout: 900_000 };

/** A product has every other node. */
function gpusOf(count: number, index: number): { product: string; count: number } {
  return { product: PRODUCTS[index % PRODUCTS.length] ?? '', count };
}

// In time that is simulated: some of the programs use all of their grace.
test(
  '64 requests for whole nodes against a fleet full of interruptible instances start within the grace, and end each victim once',
  LONG,
  async () => {
    const world = new World({ seed: SEED, tenants: 2, nodes: NODES, firstDay: 0 });
    const { api } = world.cluster;
    const rent = (namespace: string, name: string, spec: object): void => {
      api.create(GPU_INSTANCES, { metadata: { namespace, name }, spec } as KubeObject);
    };
    const ofType = (type: string): GpuInstance[] =>
      api.list<GpuInstance>(GPU_INSTANCES).filter(({ spec }) => spec.type === type);
    // A start that bears its claim on the pod has it in its status seconds later.
    const claimOf = (one: GpuInstance): Claim | undefined => {
      const { namespace } = one.metadata;
      const pod = api.find<Pod>(PODS, { ...(namespace !== undefined && { namespace }), name: firstPodOf(one) });
      return withClaimOf(one, pod).status?.claim;
    };
    const running = (type: string): number =>
      ofType(type).filter((one) => findCondition(one.status?.conditions, 'Ready')?.status === 'True').length;
    try {
      await world.start();
      for (let index = 0; index < 8 * NODES; index += 1)
        rent('tenant-0', `spot-${index}`, { type: 'Interruptible', gpu: gpusOf(1, index) });
      await world.time.advance(120_000);
      expect(running('Interruptible')).toBe(8 * NODES);
      const asked = world.time.wall;
      for (let index = 0; index < NODES; index += 1)
        rent('tenant-1', `gang-${index}`, { type: 'OnDemand', gpu: gpusOf(8, index) });
      await world.time.advance(GRACE_MS + BERTH_MS);
      const granted = ofType('OnDemand').map((one) => Date.parse(claimOf(one)?.grantedAt ?? '') - asked);
      expect(granted.filter((ms) => !(ms <= GRACE_MS + BERTH_MS))).toEqual([]);
      // Nobody comes back before all have started, and everybody waits in line after that.
      await world.time.advance(60_000);
      expect(running('OnDemand')).toBe(NODES);
      const named = (type: string, is: (status: GpuInstanceStatus) => boolean): string[] =>
        ofType(type).flatMap(({ metadata, status = {} }) => (is(status) ? [] : [metadata.name]));
      expect(named('OnDemand', ({ incarnation }) => incarnation === 1)).toEqual([]);
      const endedOnce = ({ incarnation, ending }: GpuInstanceStatus) =>
        incarnation === 1 && ending?.reason === 'Preempted';
      expect(named('Interruptible', endedOnce)).toEqual([]);
      expect(world.judge.violations).toEqual([]);
    } finally {
      world.end();
    }
  },
);
