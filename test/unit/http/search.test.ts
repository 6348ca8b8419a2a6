import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { searchOffers } from '../../../src/http/features/offers/search.ts';
import { StartTimes } from '../../../src/http/features/offers/start-times.ts';
import { parseBody } from '../../../src/http/interface/validate.ts';
import { foundOfferSchema, offerSearchSchema, type OfferSearch } from '../../../src/http/features/offers/schema.ts';
import type { GpuInstance, GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import {
  claimedPod,
  claimOn,
  gpuInstance,
  gpuNode,
  gpuPod,
  gpuPool,
  inventoryOf,
} from '../../support/inventory-world.ts';
import { type LoneApi, startLoneApi } from '../../support/http/lone-api.ts';

const PULLED = 'registry.test/team/app:1';
const START = Date.UTC(2026, 0, 1);
const at = (seconds: number): string => new Date(START + seconds * 1000).toISOString();

/** Two nodes of one pool: one has the image and one has not; and a dearer MIG pool. */
function world() {
  const shape = { labels: { kind: 'whole' } };
  const mig = {
    labels: { kind: 'mig', 'nvidia.com/gpu.product': 'H100', 'nvidia.com/mig.strategy': 'mixed' },
    allocatable: { 'nvidia.com/gpu': '0', 'nvidia.com/mig-1g.10gb': '2' },
  };
  const { inventory, caches } = inventoryOf({
    claimOnPod: true,
    nodes: [gpuNode('with', { ...shape, images: [PULLED] }), gpuNode('without', shape), gpuNode('mig', mig)],
    pools: [
      gpuPool('whole', {
        nodeSelector: { kind: 'whole' },
        sizes: [1, 8],
        prices: [{ product: '*', onDemand: '2', interruptible: '0.5' }],
      }),
      gpuPool('mig', {
        nodeSelector: { kind: 'mig' },
        prices: [{ product: 'H100-MIG-1g.10gb', onDemand: '1', interruptible: '0.9' }],
      }),
    ],
  });
  const startTimes = new StartTimes(caches.instances.store, inventory);
  return {
    caches,
    startTimes,
    search: (body: OfferSearch = {}, tenant = 'default') =>
      searchOffers(inventory.offers(), parseBody(offerSearchSchema, body), {
        startTimes,
        defaultImage: 'debian:12',
        tenant,
      }),
  };
}

let version = 100;

/** Shows the next version of an instance. */
function upsert({ instances }: ReturnType<typeof world>['caches'], instance: GpuInstance): void {
  version += 1;
  instances.upsert({ ...instance, metadata: { ...instance.metadata, resourceVersion: String(version) } });
}

/** Shows a start of an instance: first the claim, then Ready after so many seconds. Then the instance is deleted. */
function start(
  { caches }: ReturnType<typeof world>,
  name: string,
  {
    node,
    seconds,
    image = PULLED,
    namespace = 'default',
  }: { node: string; seconds: number; image?: string; namespace?: string },
): void {
  const shownAs = (status: GpuInstanceStatus): void => {
    const one = gpuInstance(name, {}, status);
    upsert(caches, { ...one, metadata: { ...one.metadata, namespace } });
  };
  const status: GpuInstanceStatus = {
    claim: claimOn(node, { pool: 'whole', grantedAt: at(0) }),
    incarnation: 1,
    image,
    stages: { accepted: at(0), claimed: at(0) },
  };
  shownAs(status);
  const stages = { ...status.stages, scheduled: at(0), pulled: at(seconds), started: at(seconds), ready: at(seconds) };
  shownAs({ ...status, stages });
  const shown = caches.instances.store.get(`${namespace}/${name}`);
  if (shown !== undefined) caches.instances.remove(shown);
}

describe('a search for offers', () => {
  const A100 = 'NVIDIA-A100-SXM4-80GB';

  it('finds all offers for a body that asks for nothing, cheapest first', () => {
    const found = world().search();
    expect(found.map(({ pool, gpu_count }) => [pool, gpu_count])).toEqual([
      ['mig', 1],
      ['whole', 1],
      ['whole', 8],
    ]);
    for (const offer of found) expect(foundOfferSchema.strict().parse(offer)).toEqual(offer);
  });

  it.each<[OfferSearch, number]>([
    [{ gpu_name: A100 }, 2],
    [{ gpu_name: 'none' }, 0],
    [{ gpu_count: 8 }, 1],
    [{ isolation: 'mig' }, 1],
    [{ mig_profile: '1g.10gb' }, 1],
    [{ pool: 'whole' }, 2],
    [{ currency: 'EUR' }, 0],
    [{ simulated: true }, 0],
    [{ max_price_per_hour: '2' }, 2],
    [{ max_price_per_hour: '4', type: 1 }, 3],
    [{ max_price_per_hour: '0.89', type: 1 }, 1],
    [{ min_gpu_memory_mb: 81_920 }, 2],
    [{ min_available: 3 }, 1],
    [{ min_cpu_cores: 60 }, 1],
    [{ min_memory_mb: 2 ** 40 }, 0],
    [{ min_disk_gb: 1025 }, 0],
    [{ gpu_name: null, pool: null, image: null }, 3],
  ])('%j finds %d', (body, count) => {
    expect(world().search(body)).toHaveLength(count);
  });

  it('sorts by the price of the type that is asked for', () => {
    expect(world().search({ type: 1 })[0]).toMatchObject({ gpu_name: A100, gpu_count: 1 });
  });

  it('says of any image whether a free place has it', () => {
    const some = world();
    const cached = (image: string): boolean[] => some.search({ image, pool: 'whole' }).map((one) => one.image_cached);
    expect(cached(PULLED)).toEqual([true, true]);
    expect(cached('registry.test/team/app:2')).toEqual([false, false]);
    some.caches.pods.upsert(gpuPod('all', 'with', { gpus: 8 }));
    expect(cached(PULLED)).toEqual([false, false]);
  });

  it.each([[{ image: 'Not An Image' }], [{ max_price_per_hour: '-1' }], [{ type: 2 }], [{ region: 'eu' }]])(
    'refuses %j',
    (body) => {
      expect(() => parseBody<unknown>(offerSearchSchema, body)).toThrow(Object.keys(body)[0]);
    },
  );
});

describe('the expected start', () => {
  it('is absent before a start was seen, and of places that are taken', () => {
    const some = world();
    expect(some.search()[0]).not.toHaveProperty('expected_start_seconds');
    start(some, 'one', { node: 'with', seconds: 3 });
    for (const node of ['with', 'without']) some.caches.pods.upsert(gpuPod(node, node, { gpus: 8 }));
    expect(some.search({ image: PULLED, pool: 'whole' })[0]).not.toHaveProperty('expected_start_seconds');
  });

  it('is the median of the starts with the image on the node, or without it', () => {
    const some = world();
    for (const [index, seconds] of [2, 3, 40].entries()) start(some, `with-${index}`, { node: 'with', seconds });
    for (const [index, seconds] of [60, 90, 100].entries())
      start(some, `without-${index}`, { node: 'without', seconds, image: 'b:1' });
    const expected = (image: string) => some.search({ image, pool: 'whole' })[0]?.expected_start_seconds;
    expect(expected(PULLED)).toBe(3);
    expect(expected('b:1')).toBe(90);
    // Of this one nothing is known: as other images that were not there.
    expect(expected('c:1')).toBe(90);
  });

  it('does not tell which images other tenants start', () => {
    const some = world();
    const expected = (image: string, tenant: string) =>
      some.search({ image, pool: 'whole' }, tenant)[0]?.expected_start_seconds;
    for (const [index, seconds] of [20, 20, 20].entries())
      start(some, `own-${index}`, { node: 'without', seconds, image: 'own:1', namespace: 'honest' });
    start(some, 'other', { node: 'without', seconds: 70, image: 'secret:1', namespace: 'other' });
    expect(expected('secret:1', 'other')).toBe(70);
    expect(expected('secret:1', 'honest')).toBe(expected('nobody-has:1', 'honest'));
  });

  it('is not made by one tenant that starts without a pause', () => {
    const some = world();
    const expected = () => some.search({ pool: 'whole', image: PULLED }, 'newcomer')[0]?.expected_start_seconds;
    for (let index = 0; index < 6; index += 1)
      start(some, `honest-${index}`, { node: 'with', seconds: 3, namespace: 'honest' });
    for (let index = 0; index < 40; index += 1)
      start(some, `hostile-${index}`, { node: 'with', seconds: 900, namespace: 'hostile' });
    expect(expected()).toBe(3);
  });

  it('counts a start once, and none that it did not see from the claim on', () => {
    const some = world();
    start(some, 'one', { node: 'with', seconds: 5 });
    start(some, 'one', { node: 'with', seconds: 50 });
    expect(some.search({ image: PULLED, pool: 'whole' })[0]?.expected_start_seconds).toBe(50);
    const fresh = world();
    const stages = { accepted: at(0), claimed: at(0), pulled: at(1), started: at(1), ready: at(1) };
    const claim = claimOn('with', { pool: 'whole', grantedAt: at(0) });
    fresh.caches.instances.upsert(gpuInstance('old', {}, { claim, incarnation: 1, image: PULLED, stages }));
    expect(fresh.search({ image: PULLED, pool: 'whole' })[0]).not.toHaveProperty('expected_start_seconds');
  });

  it('sees a claim on the pod: the first status of a fast start may say Ready', () => {
    const some = world();
    const one = gpuInstance('one');
    const claim = claimOn('with', { pool: 'whole', grantedAt: at(0) });
    upsert(some.caches, one);
    some.caches.pods.upsert(claimedPod(one, claim));
    // Other writes to the instance come between.
    upsert(some.caches, gpuInstance('one', { label: 'mine' }));
    const stages = { accepted: at(0), claimed: at(0), pulled: at(3), started: at(3), ready: at(3) };
    upsert(some.caches, gpuInstance('one', {}, { claim, incarnation: 1, image: 'debian:12', stages }));
    expect(some.search({ image: 'debian:12', pool: 'whole' })[0]?.expected_start_seconds).toBe(3);
  });

  it('counts no start whose claim is that of an earlier one', () => {
    const some = world();
    const claim = claimOn('with', { pool: 'whole', grantedAt: at(0) });
    const stages = { accepted: at(0), claimed: at(0) };
    upsert(some.caches, gpuInstance('one', {}, { claim, incarnation: 1, image: PULLED, stages }));
    const later = { ...stages, pulled: at(9), started: at(9), ready: at(9) };
    upsert(some.caches, gpuInstance('one', {}, { claim, incarnation: 2, image: PULLED, stages: later }));
    expect(some.search({ image: PULLED, pool: 'whole' })[0]).not.toHaveProperty('expected_start_seconds');
  });

  it('forgets what is long ago', () => {
    const some = world();
    for (let index = 0; index < 16; index += 1) start(some, `old-${index}`, { node: 'with', seconds: 100 });
    for (let index = 0; index < 16; index += 1) start(some, `new-${index}`, { node: 'with', seconds: 2 });
    expect(some.search({ image: PULLED, pool: 'whole' })[0]?.expected_start_seconds).toBe(2);
  });
});

describe('POST /offers/search', () => {
  let api: LoneApi;
  const call = (method: string, body?: string): Promise<Response> =>
    fetch(`http://127.0.0.1:${api.address.port}/api/v1/offers/search`, {
      method,
      headers: { authorization: 'Bearer alice', 'content-type': 'application/json' },
      ...(body !== undefined && { body }),
    });

  beforeAll(async () => {
    api = await startLoneApi({ tenants: ['alice'] });
  });
  afterAll(() => api.close());

  it.each(['{}', 'null', '', '{"image":""}'])('answers the list for the body %j', async (body) => {
    const answer = await call('POST', body);
    expect([answer.status, await answer.json()]).toEqual([200, { object: 'list', data: [] }]);
  });

  it('answers 422 for what it does not know, 400 for what is no JSON, and 405 for other methods', async () => {
    expect((await call('POST', '{"gpus":1}')).status).toBe(422);
    expect((await call('POST', '{')).status).toBe(400);
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE']) {
      const answer = await call(method);
      expect([method, answer.status, answer.headers.get('allow')]).toEqual([method, 405, 'POST, OPTIONS']);
    }
  });
});
