import { expect, it } from 'vitest';
import {
  alternatives,
  offerUnavailable,
  refusal,
  templateNotFound,
} from '../../../src/http/features/instances/refusal.ts';
import { toInstanceRecord } from '../../../src/http/features/instances/record.ts';
import { instanceSchema } from '../../../src/http/features/instances/schema.ts';
import type { Offer } from '../../../src/inventory/offers.ts';
import { keptRented } from '../../../src/controllers/gpu-instance/decide/rented.ts';
import type { GpuInstanceSpec, GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';

const NOTHING = { driver: undefined, images: undefined, template: undefined, place: undefined, nearLimits: [] };
const PRICES = { onDemand: '1', interruptible: '1', currency: 'USD' };

function offer(id: number, available: number, diskGbMax: number, availableByPreemption = 0): Offer {
  const gpu = {
    product: 'H100',
    gpuCount: 1,
    memoryMb: 1,
    isolation: 'whole',
    migProfile: undefined,
    gpuShare: undefined,
  } as const;
  const node = { cpuCores: 1, memoryMbHost: 1, diskPersistent: false, driverVersion: '', cudaVersion: '' };
  const rest = {
    pool: 'p',
    resourceName: 'nvidia.com/gpu',
    simulated: false,
    prices: PRICES,
    imageCached: () => false,
  };
  return { id, available, availableByPreemption, diskGbMax, ...gpu, ...node, ...rest };
}

const OFFERS = [offer(1, 0, 500), offer(2, 3, 500), offer(3, 3, 800)];

it.each([
  [{}, 'No free offer fits. Nothing was rented. See alternatives for free offers.', 2],
  [{ offerId: 1 }, 'Offer 1 has no free place. Nothing was rented. See alternatives for free offers.', 2],
  [{ offerId: 2 ** 53 }, 'No offer has this ask_id now. Nothing was rented. See alternatives for free offers.', 2],
  [
    { offerId: 2, diskGb: 600 },
    'Offer 2 has 500 GB of disk, and disk_gb asks for 600. Nothing was rented. See alternatives for free offers.',
    1,
  ],
  [
    { diskGb: 16_384 },
    'No free offer fits. Nothing was rented. No other free offer has 16384 GB of disk; the largest has 800 GB.',
    0,
  ],
])('says why nothing was rented: %j', (asked, message, alternatives) => {
  const error = offerUnavailable(OFFERS, asked, '');
  expect(error.message).toBe(message);
  expect(error.extra['alternatives']).toHaveLength(alternatives);
});

it('says that an offer costs more than it may', () => {
  const { message } = offerUnavailable(OFFERS, { offerId: 2, maxPricePerHour: '0.001' }, '');
  expect(message).toMatch(/^Offer 2 costs [0-9.]+ [A-Z]{3} per hour, and max_price_per_hour is 0\.001\. Nothing was/);
  const any = offerUnavailable(OFFERS, { maxPricePerHour: '0.001' }, '');
  expect(any.message).toMatch(/^No free offer fits at this price\. Nothing was rented\./);
});

it('alternatives for GPUs by name are those of the name first, then those of the number', () => {
  const others = { ...offer(9, 1, 500), product: 'A100', gpuCount: 2 };
  const first = (gpu: GpuInstanceSpec['gpu']) => alternatives([...OFFERS, others], { gpu })[0]?.id;
  expect([first({ product: 'A100', count: 1 }), first({ count: 2 }), first({ count: 1 }), first(undefined)]).toEqual([
    9, 9, 2, 2,
  ]);
});

it('names what the same request would get, also where others would end for it', () => {
  const others = [...OFFERS, offer(4, 0, 500, 1)];
  const ids = (asked: Parameters<typeof alternatives>[1]) => alternatives(others, asked).map(({ id }) => id);
  expect(ids({ offerId: 1 })).toEqual([2, 3, 4]);
  expect(ids({ offerId: 1, type: 'OnDemand' })).toEqual([2, 3, 4]);
  expect(ids({ offerId: 1, type: 'Interruptible' })).toEqual([2, 3]);
  const full = offerUnavailable([offer(1, 0, 1), offer(4, 0, 500, 1)], { type: 'Interruptible' }, '');
  expect(full.message).toContain('No other offer is free either');
});

it.each<[Partial<GpuInstanceSpec>, string]>([
  [{ offerId: 2 }, 'GPUs are free, but not on a node that runs pods in user namespaces.'],
  [{ gpu: { product: 'H100', count: 1 } }, 'GPUs are free, but not on a node that runs pods in user namespaces.'],
  [{ offerId: 1 }, 'Offer 1 has no free place.'],
  [{ gpu: { product: 'A100', count: 1 } }, 'No free offer fits.'],
])('says in the words of the controller why it refused what the offers show as free: %j', (spec, words) => {
  const message = 'GPUs are free, but not on a node that runs pods in user namespaces.';
  const ready = { type: 'Ready', status: 'False' as const, reason: 'NoCapacity', message };
  const status = { conditions: [{ ...ready, lastTransitionTime: '2026-01-01T00:00:00Z' }] };
  expect(refusal(gpuInstance('one', spec, status), OFFERS, '').message).toContain(`${words} Nothing was rented.`);
});

it('says that nothing at all is free', () => {
  const { message } = offerUnavailable([offer(1, 0, 1)], { diskGb: 1 }, '');
  expect(message).toBe('No free offer fits. Nothing was rented. No other offer is free either; try again later.');
});

function refused(reason: string, spec: Partial<GpuInstanceSpec>) {
  const lastTransitionTime = '2026-01-01T00:00:00Z';
  const ready = { type: 'Ready', status: 'False', reason, message: '', lastTransitionTime } as const;
  return refusal(gpuInstance('one', spec, { conditions: [ready] }), OFFERS, '');
}

it.each([
  [{ offerId: 2, offerDiskSpace: 900 }, 'Offer 2 now has less disk than offer_disk_space.'],
  [{ offerDiskSpace: 900 }, 'The cheapest free offer has less disk than offer_disk_space.'],
])('names the offer that changed, when the client named one: %j', (spec, words) => {
  const error = refused('OfferChanged', spec);
  expect([error.code, error.message]).toEqual(['offer_changed', `${words} Nothing was rented. Read the offers again.`]);
});

it('a template that is not there is not found, before and after the controller has looked', () => {
  expect(templateNotFound({ templateHashId: 'x' })).toMatchObject({ status: 404, code: 'template_not_found' });
  expect(refused('TemplateNotFound', { templateId: 7 })).toMatchObject({ code: 'template_not_found' });
});

function recordOf(spec: Partial<GpuInstanceSpec>) {
  const instance = gpuInstance('one', spec);
  instance.metadata.creationTimestamp = '2026-01-01T00:00:00Z';
  return instanceSchema.parse(toInstanceRecord(instance, { ...NOTHING, defaultImage: 'a' }));
}

it('a stopped instance still shows what it rented, and for how much', () => {
  const claim = claimOn('n', { gpuCount: 2, pricePerHour: '2.00' });
  const { rented } = keptRented(gpuInstance('one', { offerId: 1 }, { claim }));
  const record = (status: GpuInstanceStatus) => {
    const instance = gpuInstance('one', { offerId: 1 }, status);
    instance.metadata.creationTimestamp = '2026-01-01T00:00:00Z';
    return instanceSchema.parse(toInstanceRecord(instance, { ...NOTHING, defaultImage: 'a' }));
  };
  const gpus = { gpu_name: claim.product, gpu_count: 2, gpu_memory_mb: 81_920, isolation: 'whole' };
  const price = { price_per_hour: '2.00', currency: 'USD', max_price_per_hour: '2.00' };
  expect(record({ ...(rented && { rented }), incarnation: 1 })).toMatchObject({ ...gpus, ...price, node: null });
  // Before its first place it has no price, and shows the most that it may cost.
  expect(record({ ...(rented && { rented }) })).toMatchObject({ ...price, price_per_hour: null, currency: null });
});

it('a record has the runtype that Berth does not know word for word, with a warning', () => {
  expect(recordOf({ runtype: 'jupyter' })).toMatchObject({ runtype: 'jupyter', warnings: [] });
  const record = recordOf({ runtype: 'ssh', requestedRuntype: 'tel"net' });
  expect(record.runtype).toBe('tel"net');
  expect(record.warnings).toEqual([
    'Berth knows no runtype "tel\\"net": the instance runs as ssh. Known are ssh, jupyter and args.',
  ]);
  const long = recordOf({ runtype: 'ssh', requestedRuntype: '\u{1F680}'.repeat(100_000) });
  expect(long.runtype).toHaveLength(200_000);
  expect(long.warnings[0]?.length).toBeLessThan(300);
});

it('a record shows what the instance is meant to do', () => {
  expect(recordOf({ powerState: 'Running' }).desired_state).toBe('running');
  expect(recordOf({ powerState: 'Stopped' }).desired_state).toBe('stopped');
});

it('an instance that ended by itself is meant to be stopped, until a start is asked for', () => {
  const desired = (reason: string, startRequest?: string) => {
    const ending = { reason, message: '', at: '2026-01-01T00:00:00Z', generation: 1, startHash: 'x' };
    const instance = gpuInstance('one', { ...(startRequest && { startRequest }) }, { ending });
    const metadata = { ...instance.metadata, creationTimestamp: '2026-01-01T00:00:00Z', generation: 2 };
    return toInstanceRecord({ ...instance, metadata }, { ...NOTHING, defaultImage: 'a' }).desired_state;
  };
  expect(['Expired', 'Idle', 'Completed'].map((reason) => desired(reason))).toEqual(['stopped', 'stopped', 'stopped']);
  expect(desired('Completed', 'now')).toBe('running');
  expect(['Preempted', 'PodFailed'].map((reason) => desired(reason))).toEqual(['running', 'running']);
});
