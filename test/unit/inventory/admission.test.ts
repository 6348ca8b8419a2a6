import { expect, test } from 'vitest';
import { admission, withinCeilings } from '../../../src/inventory/admission.ts';
import type { TenantCeilings } from '../../../src/resources/tenants/tenant-limit.ts';
import type { Grant, Place } from '../../../src/inventory/grant.ts';
import type { Preemption } from '../../../src/inventory/preempt.ts';
import {
  A100,
  claimOn,
  gpuInstance,
  gpuNode,
  gpuPool,
  inventoryOf,
  placeRequest,
} from '../../support/inventory-world.ts';

const HELD = [{ pool: 'default', product: A100, gpus: 2 }];
const PLACE = {
  node: 'n',
  offerClass: { pool: { name: 'default' }, product: A100, gpuCount: 2 },
} as unknown as Place;
const LATER: Preemption = { place: { ...PLACE, node: 'm' }, takes: {}, victims: [] };
const FREE: Grant = { place: PLACE };
const FULL: Grant = { refusal: 'NoCapacity', message: 'full' };
const GONE: Grant = { refusal: 'OfferNotFound', message: 'gone' };
const LARGE: Grant = { refusal: 'DiskTooLarge', message: 'large' };

interface Row {
  granted: Grant;
  type: 'OnDemand' | 'Interruptible';
  canPreempt: boolean;
  /** Whether the ceilings have room for the place. */
  gpus: boolean;
  budget: boolean;
  expected: object;
}

const BOTH = [true, false];
const CASES = (['OnDemand', 'Interruptible'] as const).flatMap((type) =>
  BOTH.flatMap((canPreempt) => BOTH.flatMap((gpus) => BOTH.map((budget) => ({ type, canPreempt, gpus, budget })))),
);
const ROWS = CASES.flatMap((row): Row[] => {
  const { type, canPreempt, gpus, budget } = row;
  const refused = gpus
    ? { overBudget: 'spent' }
    : { overGpus: { message: expect.stringContaining('The ceiling gpus') } };
  const isAllowed = gpus && budget;
  const makesRoom = type === 'OnDemand' && canPreempt;
  const full = isAllowed ? { preemption: LATER } : refused;
  return [
    { ...row, granted: FREE, expected: isAllowed ? FREE : refused },
    { ...row, granted: FULL, expected: makesRoom ? full : FULL },
    // Nothing goes for what no place would serve, and no ceiling is to blame for it.
    ...[GONE, LARGE].map((granted) => ({ ...row, granted, expected: granted })),
  ];
});

test.each(ROWS)(
  'for $granted, $type, room by preemption $canPreempt, by the ceilings $gpus, by the budget $budget: $expected',
  ({ granted, type, canPreempt, gpus, budget, expected }) => {
    const asked: string[] = [];
    const terms = {
      namespace: 'default',
      limit: { gpus: [{ pool: '*', product: '*', max: gpus ? 4 : 3 }], images: ['*'], policies: ['gold'] },
      preempt: () => (canPreempt ? LATER : undefined),
      overBudget: ({ node }: Place) => {
        asked.push(node);
        return budget ? undefined : 'spent';
      },
    };
    const found = admission({ grant: () => granted, heldBy: () => HELD }, terms, placeRequest({ type }));
    expect(found).toMatchObject(expected);
    expect(Object.keys(found)).toEqual(Object.keys(expected));
    // The budget is asked for a place that the ceilings allow, and for no other.
    expect(asked.length).toBeLessThanOrEqual(gpus ? 1 : 0);
  },
);

function limited(over: Partial<TenantCeilings>) {
  const { inventory } = inventoryOf({
    nodes: [gpuNode('a'), gpuNode('b', { labels: { 'nvidia.com/gpu.product': 'NVIDIA-L40S' } })],
    pools: [gpuPool('default', { prices: [{ product: A100, onDemand: '1', interruptible: '1' }] })],
    instances: [gpuInstance('x', {}, { claim: claimOn('a', { gpuCount: 2 }) })],
  });
  const limit = { gpus: [], images: ['*'], policies: ['gold'], ...over };
  return (image: string) =>
    withinCeilings(inventory, { namespace: 'default', limit }, placeRequest({ gpu: { count: 1 }, image }));
}

test.each<[string, Partial<TenantCeilings>, string, object]>([
  ['no ceiling', {}, 'debian:12', { without: [] }],
  ['a ceiling that has room for all', { gpus: [{ pool: '*', product: '*', max: 3 }] }, '', { without: [] }],
  [
    'a ceiling that has room for others',
    { gpus: [{ pool: '*', product: A100, max: 2 }] },
    '',
    { without: [{ pool: 'default', product: A100, gpus: 1 }] },
  ],
  ['a ceiling that has room for none', { gpus: [{ pool: '*', product: '*', max: 2 }] }, '', { without: [] }],
  ['an image that is not known', { images: [] }, '', { without: [] }],
  ['an image that is allowed', { images: ['docker.io/library/*'] }, 'debian:12', { without: [] }],
  [
    'an image that is not allowed',
    { images: ['ghcr.io/*'] },
    'debian:12',
    { overImages: { message: expect.stringContaining('images in TenantPolicy gold') } },
  ],
])('a request within %s', (_what, over, image, expected) => {
  const within = limited(over)(image);
  expect(within).toMatchObject(expected);
  if ('request' in within) expect(within.request.without ?? []).toEqual(within.without);
});
