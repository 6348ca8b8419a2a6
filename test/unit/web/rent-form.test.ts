import { expect, it } from 'vitest';
import { createInstanceSchema } from '../../../src/http/features/instances/schema.ts';
import { chooserOf } from '../../../src/web/page/rent/images.ts';
import { BLANK, bodyOf, hoursOf, type Order } from '../../../src/web/page/rent/order.ts';
import { ANY, productsOf } from '../../../src/web/page/rent/products.ts';
import type { FoundOffer } from '../../../src/wire/records.ts';

function offer(changes: Partial<FoundOffer>, onDemand = '1.00'): FoundOffer {
  const price = { on_demand: onDemand, interruptible: '0.10', currency: 'USD' };
  const shape = { gpu_name: 'NVIDIA-L4', gpu_count: 1, gpu_memory_mb: 24_576, isolation: 'whole', mig_profile: null };
  const rest = { pool: 'default', simulated: false, available: 1, available_by_preemption: 0, price_per_hour: price };
  return { ...shape, ...rest, ...changes } as FoundOffer;
}

const H100 = { gpu_name: 'NVIDIA-H100-80GB-HBM3', gpu_memory_mb: 81_559 };
const OFFERS = [
  offer({ gpu_name: 'Tesla-T4', simulated: true }, '0.20'),
  offer({ gpu_count: 4, ...H100 }, '8.00'),
  offer({ ...H100 }, '2.00'),
  offer({ gpu_count: 2, available: 0 }, '2.00'),
  offer({}),
];

function shown(wish: Partial<typeof ANY>): [string, number[]][] {
  return productsOf(OFFERS, { ...ANY, ...wish }).map(({ offers }) => [
    offers[0].gpu_name,
    offers.map(({ gpu_count: count }) => count),
  ]);
}

it('has one product a GPU, with its numbers in order, and simulated ones last however it is sorted', () => {
  const [l4, h100, t4] = [
    ['NVIDIA-L4', [1, 2]],
    ['NVIDIA-H100-80GB-HBM3', [1, 4]],
    ['Tesla-T4', [1]],
  ];
  expect(shown({})).toEqual([l4, h100, t4]);
  expect(shown({ sort: 'memory' })).toEqual([h100, l4, t4]);
  expect(shown({ isFree: true, gpu: 'l4' })).toEqual([['NVIDIA-L4', [1]]]);
  expect(shown({ price: '1.5' })).toEqual([['NVIDIA-L4', [1]], t4]);
});

it('offers images that people start from, then the last ones of the project', () => {
  const used = [
    'a/one:1',
    'registry.example/team/app:1.2',
    'vllm/vllm-openai:v0.27.1',
    'c/two',
    'registry.example/x@sha256:0',
    'a/one:1',
  ];
  const found = chooserOf(used.map((image) => ({ template_image: image })));
  expect(found.map(({ name }) => name)).toEqual(['Default', 'PyTorch', 'vLLM', 'CUDA', 'one:1', 'x', 'two']);
  expect(found.at(-2)?.image).toBe('registry.example/x@sha256:0');
});

/** What a person has no use for, and why. */
const NOT_ASKED: Readonly<Record<string, string>> = {
  gpu: 'the offer has its GPUs',
  stats: 'a note of a program to itself',
  template_hash_id: 'template_id names the same template',
  offer_disk_space: 'the page shows the offer as it is now',
};

it('asks for every field of the API that a person has a use for', () => {
  const words = { command: 'python', args: 'train.py', script: 'echo', ports: '8000 api', disk: '20', image: 'a:1' };
  const times = { longest: '12h', idle: '1h', highest: '2', expiry: 'delete', diskPolicy: 'retain' } as const;
  const checks = { monitoring: true, asRoot: true, restarts: true, waits: true };
  const variables = [{ name: 'HF_TOKEN', value: 'x' }];
  const order = {
    type: 0,
    name: 'n',
    template: '5',
    registry: 'ghcr',
    keys: [7],
    variables,
    ...words,
    ...times,
    ...checks,
  };
  const bodies = (['ssh', 'args'] as const).map((runtype) => bodyOf({ ...order, runtype } as Order, offer({ id: 1 })));
  const sent = new Set(bodies.flatMap((body) => Object.keys(body)));
  const known = Object.keys(createInstanceSchema.shape);
  expect(known.filter((name) => !sent.has(name)).toSorted()).toEqual(Object.keys(NOT_ASKED).toSorted());
});

it.each([
  ['on demand', {}, '1.00'],
  ['interruptible', { type: 1 }, '0.10'],
  ['another highest price', { highest: '3.20' }, '3.20'],
] as const)('rents for no more than the person sees, whatever the offer costs by now: %s', (_what, part, most) => {
  expect(bodyOf({ ...BLANK, ...part }, offer({ id: 1 })).max_price_per_hour).toBe(most);
});

it('deletes nothing at an end that the person took away again', () => {
  const ends = [{ longest: '1h' }, { idle: '1h' }, {}];
  const sent = ends.map((end) => bodyOf({ ...BLANK, expiry: 'delete', ...end }, offer({ id: 1 })).on_expiry);
  expect(sent).toEqual(['delete', 'delete', undefined]);
});

it.each([
  ['12h', 12],
  ['1h30m', 1.5],
  ['90m', 1.5],
  ['1.5h', 1.5],
  ['tomorrow', undefined],
  ['12', undefined],
  ['', undefined],
])('%s is %s hours', (text, hours) => {
  expect(hoursOf(text)).toBe(hours);
});
