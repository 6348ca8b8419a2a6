import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Foreseer, foreseeRefusal } from '../../../src/http/features/instances/foresee.ts';
import { statusOfLines } from '../../../src/budgets/accounts.ts';
import { TENANT } from '../../../src/budgets/spending.ts';
import { type GpuInstanceSpec, gpuInstanceSpecSchema } from '../../../src/resources/instances/gpu-instance.ts';
import { A100, claimOn, gpuInstance, gpuNode, gpuPool } from '../../support/inventory-world.ts';
import { policyWorld } from '../../support/policy-world.ts';

const L40S = 'NVIDIA-L40S';
const PRICES = {
  [A100]: { product: '*', onDemand: '2', interruptible: '1' },
  [L40S]: { product: '*', onDemand: '1', interruptible: '0' },
};
const NODES = ['n', 'm', 'o'];

/** The usual in four of five cases. */
function mostly<T>(usual: T, ...others: T[]): fc.Arbitrary<T> {
  return fc.oneof({ weight: 4, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: fc.constantFrom(...others) });
}

const product = fc.constantFrom(A100, L40S);
const type = fc.constantFrom('OnDemand' as const, 'Interruptible' as const);
const tenancy = fc.record({
  nodes: fc.array(fc.record({ product, gpus: fc.integer({ min: 1, max: 6 }), cordoned: mostly(false, true) }), {
    minLength: 1,
    maxLength: NODES.length,
  }),
  // Who has what already: the tenant or another.
  claims: fc.array(
    fc.record({ node: fc.nat(2), gpus: fc.integer({ min: 1, max: 3 }), type, isOwn: fc.boolean(), hours: fc.nat(3) }),
    { maxLength: 4 },
  ),
  // A budget in one currency says nothing of a pool in another.
  currency: fc.constantFrom('USD', 'ZAR'),
  policy: fc.record({
    gpus: fc.constantFrom([], [{ max: 2 }], [{ product: A100, max: 1 }], [{ max: 4 }, { product: L40S, max: 0 }]),
    images: mostly(['*'], ['docker.io/library/*'], []),
    userNamespaces: mostly('Optional', 'Required'),
    budget: fc.constantFrom({}, { gpuHours: 2 }, { costs: [{ currency: 'USD', max: '3' }] }),
  }),
  spec: fc.record({
    gpu: fc.record({ count: fc.integer({ min: 1, max: 4 }) }),
    named: mostly<string | undefined>(undefined, A100, L40S),
    offer: mostly<'none' | 'first' | 'last' | 'unknown'>('none', 'first', 'last', 'unknown'),
    type,
    diskGb: mostly<number | undefined>(undefined, 1, 16_384),
    maxPricePerHour: mostly<string | undefined>(undefined, '0.01', '2.00'),
    image: mostly<string | undefined>(undefined, 'debian:12', 'ghcr.io/a/b:1'),
  }),
});

type Tenancy = typeof tenancy extends fc.Arbitrary<infer T> ? T : never;

function worldOf({ nodes, claims, currency, policy }: Tenancy) {
  const world = policyWorld(policy, undefined, undefined, {
    nodes: nodes.map(({ product: labelled, gpus, cordoned }, index) =>
      gpuNode(NODES[index] ?? '', {
        labels: { 'nvidia.com/gpu.product': labelled },
        allocatable: { 'nvidia.com/gpu': String(gpus) },
        cordoned,
      }),
    ),
    pools: Object.entries(PRICES).map(([of, prices]) => {
      const nodeSelector = { 'nvidia.com/gpu.product': of };
      const paidIn = of === A100 ? currency : 'USD';
      return gpuPool(of.toLowerCase(), { nodeSelector, prices: [prices], currency: paidIn, sizes: [1, 2, 3, 4] });
    }),
  });
  world.clock.jumpWall(10 * 24 * 3_600_000);
  for (const [index, { node, gpus, type: of, isOwn, hours }] of claims.entries()) {
    const ready = new Date(world.clock.now() - hours * 3_600_000).toISOString();
    const on = nodes[node];
    if (on === undefined) continue;
    const claim = claimOn(NODES[node] ?? '', {
      gpuCount: gpus,
      product: on.product,
      pricePerHour: '1',
      grantedAt: ready,
    });
    const one = gpuInstance(`own-${index}`, { type: of }, { claim, incarnation: 1, stages: { ready } });
    world.instances.upsert(isOwn ? one : { ...one, metadata: { ...one.metadata, namespace: 'other' } });
  }
  return world;
}

function specOf(world: ReturnType<typeof worldOf>, { spec: { gpu, named, offer, ...rest } }: Tenancy): GpuInstanceSpec {
  const ids = world.inventory.offers().map(({ id }) => id);
  const offerId = { none: undefined, first: ids[0], last: ids.at(-1), unknown: 12_345 }[offer];
  const wanted = offerId === undefined ? { gpu: { ...gpu, ...(named && { product: named }) } } : { offerId };
  return gpuInstanceSpecSchema.parse({ ...rest, ...wanted, onNoCapacity: 'Fail' });
}

/** What a replica of the api sees of this tenant: as much as the controller. */
function foreseer({ inventory, deps, budgets, clock }: ReturnType<typeof worldOf>): Foreseer {
  return {
    offers: inventory,
    ceilings: deps.ceilingsOf,
    budgets: (namespace) => {
      const counted = budgets.look(namespace)?.find(({ owner }) => owner === TENANT);
      return counted && statusOfLines(counted.lines, counted.month, clock.now());
    },
    clock,
  };
}

// Whoever is refused by a foresight that the controller does not share is refused for nothing.
test('nothing is refused that the controller would grant', async () => {
  const seen = { foreseen: new Set<string>(), granted: 0 };
  await fc.assert(
    fc.asyncProperty(tenancy, async (one) => {
      const world = worldOf(one);
      const spec = specOf(world, one);
      const asking = foreseeRefusal(foreseer(world), 'default', spec);
      await world.clock.advance(200);
      const foreseen = await asking;
      world.create('new', spec);
      await world.reconcile('new');
      const { status } = world.instance('new');
      if (status?.claim !== undefined) seen.granted += 1;
      if (foreseen === undefined) return;
      seen.foreseen.add(foreseen.reason);
      expect(status?.claim).toBeUndefined();
      // Nor would it make room.
      expect([...world.instances.store.values()].map((each) => each.status?.ending?.reason)).not.toContain('Preempted');
      expect(world.ready('new')?.reason).not.toBe('WaitingForCapacity');
    }),
    { numRuns: 400 },
  );
  // It says something of every reason.
  expect([...seen.foreseen].toSorted()).toEqual(['BudgetExceeded', 'NoPlace', 'TenantLimit']);
  expect(seen.granted).toBeGreaterThan(20);
});

test('a place that a spent budget refuses is not the answer where another is within it', async () => {
  const one: Tenancy = {
    nodes: [
      { product: A100, gpus: 4, cordoned: false },
      { product: L40S, gpus: 4, cordoned: false },
    ],
    claims: [{ node: 1, gpus: 1, type: 'OnDemand', isOwn: true, hours: 3 }],
    currency: 'ZAR',
    policy: { gpus: [], images: ['*'], userNamespaces: 'Optional', budget: { costs: [{ currency: 'USD', max: '3' }] } },
    spec: {
      gpu: { count: 1 },
      named: undefined,
      offer: 'none',
      type: 'OnDemand',
      diskGb: undefined,
      maxPricePerHour: undefined,
      image: undefined,
    },
  };
  const foreseenFor = async (named: string | undefined) => {
    const world = worldOf(one);
    const asking = foreseeRefusal(foreseer(world), 'default', specOf(world, { ...one, spec: { ...one.spec, named } }));
    await world.clock.advance(200);
    return asking;
  };
  expect(await foreseenFor(L40S)).toMatchObject({ reason: 'BudgetExceeded' });
  expect(await foreseenFor(undefined)).toBeUndefined();
});
