import { describe, expect, it } from 'vitest';
import { budgetReader, deletedKeyBudgetReader, keyBudgetReader } from '../../../src/budgets/counted.ts';
import { INDEXES } from '../../../src/caches/indexes.ts';
import { nearLimits, nearLimitsReader } from '../../../src/http/features/instances/near-limits.ts';
import { Line, placesReader } from '../../../src/http/features/instances/places-in-line.ts';
import { warningsOf } from '../../../src/http/features/instances/warnings.ts';
import type { Offer } from '../../../src/inventory/offers.ts';
import { Cache } from '../../../src/kube/watch/cache.ts';
import type { ApiKey } from '../../../src/resources/api-key.ts';
import {
  type Claim,
  CREATED_BY,
  type GpuInstance,
  type GpuInstanceSpec,
  type GpuInstanceStatus,
} from '../../../src/resources/instances/gpu-instance.ts';
import { DEFAULT_CEILINGS } from '../../../src/resources/tenants/ceilings.ts';
import type { TenantLimit } from '../../../src/resources/tenants/tenant-limit.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { gpuInstance } from '../../support/inventory-world.ts';

const FINE = { image: 'app:1', imageOnNode: undefined, nearLimits: [] };
const TIME = '2026-01-01T00:00:00Z';

function condition(type: string, reason: string): GpuInstanceStatus {
  return { conditions: [{ type, status: 'False', reason, message: '', lastTransitionTime: TIME }] };
}

const claim = { node: 'node-7' } as Claim;

describe('warnings', () => {
  const unhealthyGPUs = [{ id: 'GPU-7', since: TIME }];
  it.each<[string, Partial<GpuInstanceSpec>, GpuInstanceStatus, RegExp]>([
    [
      'a GPU is unhealthy',
      {},
      { unhealthyGPUs },
      /^GPU GPU-7 is unhealthy.*is still billed.*on_gpu_failure to restart\.$/,
    ],
    [
      'a GPU is unhealthy, and the instance will leave it',
      { onGPUFailure: 'Restart' },
      { unhealthyGPUs },
      /^GPU GPU-7 is unhealthy.*starts again on healthy GPUs\.$/,
    ],
    [
      'its disk is gone',
      {},
      condition('DiskReady', 'DiskLost'),
      /files with it\. A start that you ask for makes a new/,
    ],
    ['no key is there', {}, condition('SSHKeys', 'NoKeys'), /No SSH key opens this instance.*Add one to log in/],
    [
      'a named key is gone',
      {},
      condition('SSHKeys', 'KeyNotFound'),
      /does not exist any more\. Name others in ssh_key_ids/,
    ],
    [
      'nothing measures',
      { installMonitoring: true },
      condition('Monitoring', 'ExporterNotFound'),
      /nothing is measured/,
    ],
    [
      'no GPU is measured',
      { installMonitoring: true },
      condition('Monitoring', 'NoGpuTool'),
      /measures no GPU: .* neither nvidia-smi nor rocm-smi/,
    ],
    [
      'The GPUs do not report their load',
      { installMonitoring: true },
      condition('Monitoring', 'GpuLoadUnknown'),
      /does not measure how busy/,
    ],
    [
      'the exporter is silent',
      { installMonitoring: true },
      condition('Monitoring', 'DoesNotAnswer'),
      /exporter in the instance does not answer/,
    ],
    ['the node is simulated', { installMonitoring: true }, condition('Monitoring', 'Simulated'), /node is simulated/],
    [
      'the start is older than the wish',
      { installMonitoring: true },
      condition('Monitoring', 'NextStart'),
      /began without it\. Stop the instance and start it again/,
    ],
    [
      'the tool for the GPUs fails',
      { installMonitoring: true },
      condition('Monitoring', 'GpuToolFails'),
      /measures no GPU: nvidia-smi or rocm-smi fails/,
    ],
    ['the template changed', {}, condition('TemplateCurrent', 'TemplateChanged'), /^The template has changed since/],
    ['the template is gone', {}, condition('TemplateCurrent', 'TemplateGone'), /^The template was deleted, or/],
    ['a script does nothing', { onStart: 'x', runtype: 'args' }, {}, /^on_start does nothing with runtype args/],
    ['the runtype is unknown', { requestedRuntype: 'vnc' }, {}, /knows no runtype "vnc"/],
  ])('say when %s', (_what, spec, status, words) => {
    expect(warningsOf(gpuInstance('a', spec, status), FINE)).toEqual([expect.stringMatching(words)]);
  });

  it.each<[string, Partial<GpuInstanceSpec>, GpuInstanceStatus]>([
    ['asked for no monitoring', {}, condition('Monitoring', 'ExporterNotFound')],
    ['runs its script', { onStart: 'x', runtype: 'ssh' }, {}],
    ['waits for its pod', { installMonitoring: true }, condition('Monitoring', 'NoPod')],
  ])('do not trouble one that %s', (_what, spec, status) => {
    expect(warningsOf(gpuInstance('a', spec, status), FINE)).toEqual([]);
  });

  it('say that the image must be pulled, until it is there', () => {
    const of = (status: GpuInstanceStatus, imageOnNode: boolean | undefined) =>
      warningsOf(gpuInstance('a', {}, status), { ...FINE, imageOnNode });
    expect(of({ claim }, false)).toEqual([expect.stringContaining('app:1 is not on node-7 yet')]);
    expect(of({ claim }, true)).toEqual([]);
    expect(of({ claim }, undefined)).toEqual([]);
    expect(of({ claim, stages: { pulled: TIME } }, false)).toEqual([]);
    expect(of({}, false)).toEqual([]);
  });

  it('say that no runtime takes the name of the image', () => {
    const of = (image: string) => warningsOf(gpuInstance('a'), { ...FINE, image });
    expect(of('a:@x')).toEqual([expect.stringContaining('No container runtime takes the name a:@x')]);
    expect([of('app:1'), of('')]).toEqual([[], []]);
  });

  it('end with the ceilings that are near', () => {
    expect(warningsOf(gpuInstance('a'), { ...FINE, nearLimits: ['near'] })).toEqual(['near']);
  });
});

describe('near ceilings', () => {
  const ceilings = {
    ...DEFAULT_CEILINGS,
    objects: { ...DEFAULT_CEILINGS.objects, instances: 10 },
    gpus: [
      { pool: '*', product: '*', max: 20 },
      { pool: 'p', product: 'H100', max: 4 },
    ],
  };
  const near = (instances: number, gpus: number) =>
    nearLimits({
      ceilings,
      policies: ['team'],
      instances,
      gpus: [{ pool: 'p', product: 'H100', gpus }],
      budget: undefined,
    });

  it('are named from nine tenths on, with who can raise them', () => {
    expect(near(8, 3)).toEqual([]);
    expect(near(9, 4)).toEqual([
      'You have 9 of 10 instances. The operator can change objects.instances in TenantPolicy team.',
      'You hold 4 of 4 GPUs H100 of pool p. The operator can change gpus in TenantPolicy team.',
    ]);
    expect(near(0, 18)[0]).toContain('18 of 20 GPUs.');
  });

  it('say how much of the budget is spent, from half of it on', () => {
    const budget = (percent: number, spent: string) => ({
      month: '2026-11',
      renewsAt: '2026-12-01T00:00:00.000Z',
      at: TIME,
      percent,
      lines: [{ unit: 'USD', max: '500', spent }],
    });
    const held = { ceilings, policies: ['team'], instances: 0, gpus: [] };
    expect(nearLimits({ ...held, budget: budget(49, '249.99') })).toEqual([]);
    expect(nearLimits({ ...held, budget: budget(83, '415.20') })).toEqual([
      '83 per cent of the budget of this tenant for 2026-11 are spent: 415.20 of 500 USD. When all of it is spent, the instances that draw on it are stopped. The budget renews at 2026-12-01T00:00:00.000Z. The operator can change budget in TenantPolicy team.',
    ]);
  });

  /** What is read of budgets and ceilings, with caches to change, and how often the places of the tenant were looked up. */
  function reader() {
    const instances = new Cache<GpuInstance>({ indexers: INDEXES.instances, onListenerError: () => undefined });
    const limits = new Cache<TenantLimit>({ onListenerError: () => undefined });
    const apiKeys = new Cache<ApiKey>({ indexers: INDEXES.apiKeys, onListenerError: () => undefined });
    const counts = { looks: 0 };
    const offers = {
      version: 1,
      heldBy: () => {
        counts.looks += 1;
        return [{ pool: 'p', product: 'H100', gpus: 4 }];
      },
    };
    const stores = { instances: instances.store, tenantLimits: limits.store, apiKeys: apiKeys.store };
    const clock = fakeClock();
    const keyBudgets = keyBudgetReader(apiKeys.store, clock);
    const deletedKeyBudgets = deletedKeyBudgetReader(limits.store, clock);
    const read = nearLimitsReader({
      stores,
      offers,
      ceilings: () => ceilings,
      budgets: budgetReader(limits.store, clock),
      keyBudgets,
      deletedKeyBudgets,
    });
    return { apiKeys, limits, offers, counts, read, clock };
  }

  /** A budget of a key that was deleted, of which 81 per cent are spent, and an instance that draws on it. */
  function ofDeletedKey() {
    const lines = [{ unit: 'USD', max: '100.00', spent: '81.00' }];
    const used = { month: '2026-01', renewsAt: '2026-02-01T00:00:00.000Z', at: TIME, percent: 81, lines };
    const budget = { costs: [{ currency: 'USD', max: '100' }] };
    const created = gpuInstance('one');
    const instance = { ...created, metadata: { ...created.metadata, annotations: { [CREATED_BY]: 'key/gone' } } };
    return { used, budget, instance };
  }

  it('are the same words as long as nothing changes, and looked up once for a list', () => {
    const { offers, counts, read } = reader();
    const first = read(gpuInstance('one'));
    expect([read(gpuInstance('two')) === first, first.length, counts.looks]).toEqual([true, 1, 1]);
    offers.version = 2;
    expect([read(gpuInstance('one')) === first, counts.looks]).toEqual([true, 2]);
  });

  it('say how much is spent of the budget of a key that was deleted', () => {
    const { limits, read } = reader();
    const { used, budget, instance } = ofDeletedKey();
    const before = read(instance);
    limits.upsert({
      metadata: { namespace: 'default', name: 'berth', resourceVersion: '1' },
      spec: {} as TenantLimit['spec'],
      status: { keyBudgets: [{ name: 'gone', budget, used }] },
    });
    expect(read(instance)).toEqual([
      ...before,
      '81 per cent of the budget of APIKey gone, which was deleted, for 2026-01 are spent: 81.00 of 100.00 USD. When all of it is spent, the instances that draw on it are stopped. The budget renews at 2026-02-01T00:00:00.000Z. It holds for what the APIKey created. An administrator of the tenant can create APIKey gone anew with another limits.budget.',
    ]);
    expect(read(instance)).toBe(read(instance));
  });

  it('say nothing of a budget of last month, also while no controller counts the new one', () => {
    const { limits, read, clock } = reader();
    const { used, budget, instance } = ofDeletedKey();
    const before = read(instance);
    limits.upsert({
      metadata: { namespace: 'default', name: 'berth', resourceVersion: '1' },
      spec: {} as TenantLimit['spec'],
      status: { budget: used, keyBudgets: [{ name: 'gone', budget, used }] },
    });
    expect(read(instance)).toHaveLength(before.length + 2);
    clock.jumpWall(31 * 86_400_000);
    expect(read(instance)).toEqual(before);
  });

  it('say how much is spent of the budget of the key that created the instance, and of no other key', () => {
    const { apiKeys, read } = reader();
    let version = 0;
    const spend = (name: string, percent: number, month = '2026-01'): void => {
      const lines = [{ unit: 'USD', max: '100.00', spent: `${percent}.00` }];
      const budget = { month, renewsAt: '2026-02-01T00:00:00.000Z', at: TIME, percent, lines };
      const spec = { limits: { budget: { costs: [{ currency: 'USD', max: '100' }] } } } as unknown as ApiKey['spec'];
      const metadata = { namespace: 'default', name, resourceVersion: String((version += 1)) };
      apiKeys.upsert({ metadata, spec, status: { budget } });
    };
    const by = (createdBy: string): GpuInstance => {
      const instance = gpuInstance('one');
      return { ...instance, metadata: { ...instance.metadata, annotations: { [CREATED_BY]: createdBy } } };
    };
    const ofTenant = [expect.stringContaining('GPUs H100')];
    spend('ci', 49);
    spend('else', 99);
    expect(read(by('key/ci'))).toEqual(ofTenant);
    for (const percent of [50, 80, 100]) {
      spend('ci', percent);
      expect(read(by('key/ci'))).toEqual([
        ...ofTenant,
        `${percent} per cent of the budget of APIKey ci for 2026-01 are spent: ${percent}.00 of 100.00 USD. When all of it is spent, the instances that draw on it are stopped. The budget renews at 2026-02-01T00:00:00.000Z. An administrator of the tenant can change limits.budget in APIKey ci.`,
      ]);
    }
    const words = read(by('key/ci'));
    spend('ci', 100);
    expect(read(by('key/ci'))).toBe(words);
    // The bill goes by the claim.
    const claimed = { ...by('key/ci'), status: { claim: { ...claim, createdBy: 'person/ann' } } };
    expect([read(claimed), read(by('person/ci'))]).toEqual([ofTenant, ofTenant]);
    spend('ci', 100, '2025-12');
    expect(read(by('key/ci'))).toEqual(ofTenant);
  });
});

function offer(id: number, product: string, memoryMb = 80_000, gpuCount = 1): Offer {
  return {
    id,
    product,
    pool: 'p',
    resourceName: 'nvidia.com/gpu',
    simulated: false,
    gpuCount,
    memoryMb,
    isolation: 'whole',
    migProfile: undefined,
  } as Offer;
}

function waiting(name: string, second: number, spec: Partial<GpuInstanceSpec>): GpuInstance {
  const instance = gpuInstance(name, spec, condition('Claimed', 'WaitingForCapacity'));
  instance.metadata.creationTimestamp = `2026-01-01T00:00:0${second}Z`;
  return instance;
}

describe('places in line', () => {
  const OFFERS = [offer(1, 'A100', 40_000), offer(2, 'H100'), offer(3, 'H100', 80_000, 2)];
  const a100 = { product: 'A100', count: 1 };
  const h100 = { product: 'H100', count: 1 };

  it('count those that come first and want the same GPUs', () => {
    const first = waiting('first', 1, { offerId: 1 });
    const other = waiting('other', 2, { gpu: h100 });
    const cheap = waiting('cheap', 0, { gpu: a100, type: 'Interruptible' });
    const large = waiting('large', 3, { gpu: { count: 1, memoryMb: 50_000 } });
    const any = waiting('any', 4, {});
    const two = waiting('two', 5, { gpu: { product: 'H100', count: 2 } });
    const none = waiting('none', 0, { gpu: { product: 'B200', count: 1 } });
    const all = [any, cheap, large, none, other, first, two];
    const line = new Line(all, OFFERS);
    expect(all.map((one) => [one.metadata.name, line.placeOf(one)])).toEqual([
      ['any', 4],
      ['cheap', 3],
      ['large', 2],
      ['none', undefined],
      ['other', 1],
      ['first', 1],
      ['two', 4],
    ]);
    expect(line.placeOf(waiting('new', 9, { gpu: a100 }))).toBe(3);
  });

  it('look at the offers once for each instance, however often its tenant lists them', () => {
    let looks = 0;
    const watched = OFFERS.map((one) => ({
      ...one,
      get gpuCount() {
        looks += 1;
        return one.gpuCount;
      },
    }));
    const all = Array.from({ length: 50 }, (_, index) => waiting(`i-${index}`, index, { gpu: h100 }));
    const line = new Line(all, watched);
    const built = looks;
    expect(built).toBe(all.length * OFFERS.length);
    const places = all.map((one) => line.placeOf(one) ?? 0);
    expect(places.toSorted((a, b) => a - b)).toEqual(all.map((_, index) => index + 1));
    for (let again = 0; again < 20; again += 1) expect(all.map((one) => line.placeOf(one))).toEqual(places);
    expect(looks).toBe(built);
  });

  it('are a millisecond old for each that waits and a second at most, and only of those that wait', async () => {
    const clock = fakeClock();
    const cache = new Cache<GpuInstance>({ indexers: INDEXES.instances, onListenerError: () => undefined });
    const placeOf = placesReader({ stores: { instances: cache.store }, offers: { offers: () => OFFERS }, clock });
    const late = waiting('late', 9, { gpu: h100 });
    const early = Array.from({ length: 2000 }, (_, index) => waiting(`early-${index}`, 1, { gpu: h100 }));
    cache.replace([late], '1');
    expect([placeOf(late), placeOf(gpuInstance('running'))]).toEqual([1, undefined]);
    cache.replace([late, ...early], '2');
    expect(placeOf(late)).toBe(1);
    await clock.advance(1);
    expect(placeOf(late)).toBe(2001);
    cache.replace([late], '3');
    await clock.advance(999);
    expect(placeOf(late)).toBe(2001);
    await clock.advance(1);
    expect(placeOf(late)).toBe(1);
  });
});
