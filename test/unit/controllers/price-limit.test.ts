import { describe, expect, test } from 'vitest';
import { keptRented } from '../../../src/controllers/gpu-instance/decide/rented.ts';
import type { GpuInstance, GpuInstanceSpec, GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { instanceState } from '../../../src/resources/instances/instance-state.ts';
import { priceLimitOf } from '../../../src/resources/instances/rented.ts';
import { controllerWorld, held } from '../../support/controller-world.ts';
import { A100, claimOn, gpuInstance, gpuNode, gpuPool } from '../../support/inventory-world.ts';

// No start costs more than its owner saw, unless the owner says so.

const WISH = { gpu: { count: 8 } };

function pool(onDemand: string, over: { currency?: string } = {}) {
  return gpuPool('pool', { prices: [{ product: '*', onDemand, interruptible: onDemand }], ...over });
}

function worldWith(pools = [pool('1.00')], nodes = [gpuNode('n')]) {
  const world = controllerWorld(undefined, undefined, { nodes, pools });
  const stored = (): GpuInstance => world.instances.store.get('default/one') ?? gpuInstance('one');
  return { ...world, stored, said: () => instanceState(stored()) };
}

/** An instance whose last start ended so, and who paid 1.00 for each of eight GPUs. */
function back(spec: Partial<GpuInstanceSpec>, over: { reason?: string; status?: GpuInstanceStatus } = {}): GpuInstance {
  const { reason = 'Preempted', status } = over;
  const claim = claimOn('n', { gpuCount: 8, pricePerHour: '8.00', currency: 'USD' });
  const before = gpuInstance('one', spec, { claim });
  const ending = { reason, message: 'It ended.', at: new Date(0).toISOString(), generation: 1 };
  return held(gpuInstance('one', spec, { ...keptRented(before), incarnation: 1, ending, ...status }));
}

test('the price of the first claim is kept, and a claim that is cheaper lowers nothing', () => {
  const claim = claimOn('n', { pricePerHour: '8.00', gpuCount: 8 });
  const first = keptRented(gpuInstance('one', WISH, { claim }));
  expect(first.rented?.price).toEqual({ pricePerHour: '8.00', currency: 'USD' });
  const cheaper = { ...claim, pricePerHour: '4.00' };
  expect(keptRented(gpuInstance('one', WISH, { ...first, claim: cheaper })).rented?.price).toEqual(first.rented?.price);
});

describe.each(['Preempted', 'NodeLost', 'PodDeleted', 'Stopped'])('after %s', (reason) => {
  test('what costs more waits, whatever onNoCapacity says', async () => {
    const world = worldWith([pool('1.01')]);
    world.instances.upsert(back({ ...WISH, onNoCapacity: 'Fail' }, { reason }));
    await world.reconcile('one');
    expect(world.said()).toMatchObject({ state: 'pending', reason: 'PriceTooHigh' });
    expect(world.said().message).toContain(
      `8 x ${A100} whole costs 8.08 USD per hour now, and the instance may cost 8.00 USD.`,
    );
    expect(world.stored().status?.claim).toBeUndefined();
  });

  test('what costs less is taken at that price', async () => {
    const world = worldWith([pool('0.50')]);
    world.instances.upsert(back(WISH, { reason }));
    await world.reconcile('one');
    expect(world.stored().status).toMatchObject({
      claim: { pricePerHour: '4.00' },
      rented: { price: { pricePerHour: '8.00' } },
    });
  });

  test('the owner may name more', async () => {
    const world = worldWith([pool('1.01')]);
    world.instances.upsert(back({ ...WISH, maxPricePerHour: '9' }, { reason }));
    await world.reconcile('one');
    expect(world.stored().status?.claim?.pricePerHour).toBe('8.08');
  });

  test('or less', async () => {
    const world = worldWith([pool('1.00')]);
    world.instances.upsert(back({ ...WISH, maxPricePerHour: '7.99' }, { reason }));
    await world.reconcile('one');
    expect(world.said().reason).toBe('PriceTooHigh');
  });

  test('another currency is accepted by naming a price anew', async () => {
    const world = worldWith([pool('1.00', { currency: 'EUR' })]);
    world.instances.upsert(back(WISH, { reason }));
    await world.reconcile('one');
    expect(world.said()).toMatchObject({ reason: 'PriceTooHigh', message: expect.stringContaining('8.00 EUR') });
    const { metadata, status } = world.stored();
    const spec = { ...world.stored().spec, maxPricePerHour: '8.00' };
    world.instances.upsert({
      metadata: { ...metadata, generation: 2, resourceVersion: '900' },
      spec,
      ...(status && { status }),
    });
    await world.reconcile('one');
    expect(world.stored().status).toMatchObject({
      claim: { pricePerHour: '8.00', currency: 'EUR' },
      rented: { price: { pricePerHour: '8.00', currency: 'EUR', named: '8.00' } },
    });
  });
});

describe('a first start', () => {
  test('that waits costs no more than the cheapest offer that fitted when it came', async () => {
    const cheap = gpuNode('n');
    const dear = gpuNode('d', { labels: { 'nvidia.com/gpu.product': 'H100' } });
    const prices = [
      { product: A100, onDemand: '1.00', interruptible: '1.00' },
      { product: 'H100', onDemand: '2.00', interruptible: '2.00' },
    ];
    const world = worldWith([gpuPool('pool', { prices })], [cheap, dear]);
    const owners = ['n', 'd'].map((node) =>
      held(gpuInstance(`o-${node}`, WISH, { claim: claimOn(node, { gpuCount: 8 }) })),
    );
    for (const owner of owners) world.instances.upsert(owner);
    world.instances.upsert(held(gpuInstance('one', WISH)));
    await world.reconcile('one');
    expect(world.said().reason).toBe('WaitingForCapacity');
    expect(world.stored().status?.rented).toMatchObject({ price: { pricePerHour: '8.00', currency: 'USD' } });
    expect(world.stored().status?.rented?.gpus).toBeUndefined();
    for (const owner of owners) if (owner.metadata.name === 'o-d') world.instances.remove(owner);
    await world.reconcile('one');
    expect(world.stored().status?.claim).toBeUndefined();
    for (const owner of owners) if (owner.metadata.name === 'o-n') world.instances.remove(owner);
    await world.reconcile('one');
    expect(world.stored().status?.claim).toMatchObject({ node: 'n', pricePerHour: '8.00' });
  });

  test('that waits for an offer waits for what the offer was, whatever it is called later', async () => {
    const world = worldWith();
    const owner = held(gpuInstance('owner', WISH, { claim: claimOn('n', { gpuCount: 8 }) }));
    world.instances.upsert(owner);
    const offerId = world.inventory.offers().find(({ gpuCount }) => gpuCount === 8)?.id ?? 0;
    world.instances.upsert(held(gpuInstance('one', { offerId })));
    await world.reconcile('one');
    expect(world.stored().status?.rented?.gpus).toMatchObject({ product: A100, gpuCount: 8, offerId });
  });

  test('that others give way for costs what the place costs that they give, not less', async () => {
    const dear = gpuNode('d', { labels: { 'nvidia.com/gpu.product': 'H100' } });
    const prices = [
      { product: A100, onDemand: '1.00', interruptible: '1.00' },
      { product: 'H100', onDemand: '2.00', interruptible: '2.00' },
    ];
    const world = worldWith([gpuPool('pool', { prices })], [gpuNode('n'), dear]);
    const sure = held(gpuInstance('sure', WISH, { claim: claimOn('n', { gpuCount: 8 }) }));
    const spot = held(
      gpuInstance('spot', { ...WISH, type: 'Interruptible' }, { claim: claimOn('d', { gpuCount: 8 }) }),
    );
    for (const one of [sure, spot, held(gpuInstance('one', WISH))]) world.instances.upsert(one);
    await world.reconcile('one');
    expect(world.instances.store.get('default/spot')?.status?.ending).toMatchObject({
      reason: 'Preempted',
      by: 'uid-one',
    });
    expect(world.stored().status?.rented?.price).toMatchObject({ pricePerHour: '16.00' });
    world.instances.remove(spot);
    await world.reconcile('one');
    expect(world.stored().status?.claim).toMatchObject({ node: 'd', pricePerHour: '16.00' });
  });

  test('that may not wait is refused above the price that it names', async () => {
    const world = worldWith();
    world.instances.upsert(held(gpuInstance('one', { ...WISH, maxPricePerHour: '7', onNoCapacity: 'Fail' })));
    await world.reconcile('one');
    expect(world.said()).toMatchObject({ state: 'failed', reason: 'NoCapacity' });
    expect(world.said().message).toContain('costs 8.00 USD per hour now, and the instance may cost 7.');
  });

  test('that finds its place at once costs what it costs then', async () => {
    const world = worldWith();
    world.instances.upsert(held(gpuInstance('one', WISH)));
    await world.reconcile('one');
    expect(world.stored().status).toMatchObject({
      claim: { pricePerHour: '8.00' },
      rented: { price: { pricePerHour: '8.00' } },
    });
  });
});

test('other GPUs have another price', () => {
  const stopped = back({});
  const spec = { ...stopped.spec, gpu: { product: 'H100', count: 8 } };
  expect(priceLimitOf({ ...stopped, spec })).toBeUndefined();
  const running = { ...stopped, spec, status: { ...stopped.status, claim: claimOn('n', { gpuCount: 8 }) } };
  expect(keptRented(running)).toEqual({});
});
