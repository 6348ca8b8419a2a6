import { describe, expect, it, test } from 'vitest';
import { keepStatuses } from '../../../src/controllers/budgets/statuses.ts';
import { monthOf } from '../../../src/ledger/month.ts';
import { RecordedSpending } from '../../../src/budgets/spending.ts';
import type { ApiKey } from '../../../src/resources/api-key.ts';
import { CREATED_BY, type GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { budgetSchema, type BudgetStatus } from '../../../src/resources/tenants/budget.ts';
import { tenantLimitSpecSchema } from '../../../src/resources/tenants/tenant-limit.ts';
import { type controllerWorld, held } from '../../support/controller-world.ts';
import { settle } from '../../support/fake-clock.ts';
import { claimOn, gpuInstance, gpuPool } from '../../support/inventory-world.ts';
import { goldPolicy, policyWorld } from '../../support/policy-world.ts';

/** At most one instance at a dollar an hour has room beside another. */
const BUDGET = { costs: [{ currency: 'USD', max: '1.50' }] };
const POOL = gpuPool('default', { prices: [{ product: '*', onDemand: '1.00', interruptible: '1.00' }] });
const HOUR = 3_600_000;

/** A tenant with this budget, on a node whose GPUs cost a dollar an hour. */
function metered(budget: object, ...more: Parameters<typeof controllerWorld>) {
  const [refusal, beforePatch, options] = more;
  const world = policyWorld({ budget }, refusal, beforePatch, { pools: [POOL], ...options });
  // In the middle of a month.
  world.clock.jumpWall(10 * 24 * HOUR);
  const { instance } = world;
  let version = 1_000;
  const change = (name: string, status: GpuInstance['status']): void => {
    const { metadata, ...rest } = instance(name);
    version += 1;
    world.instances.upsert({
      ...rest,
      metadata: { ...metadata, resourceVersion: String(version) },
      ...(status && { status }),
    });
  };
  return {
    ...world,
    create: (name: string, own: Parameters<typeof gpuInstance>[1] = {}, createdBy?: string) =>
      world.create(name, own, createdBy === undefined ? undefined : { [CREATED_BY]: createdBy }),
    /** It has run since so many milliseconds. */
    started: (name: string, ms: number) => {
      const { status } = instance(name);
      const ready = new Date(world.clock.now() - ms).toISOString();
      change(name, { ...status, stages: { ...status?.stages, ready } });
    },
    change,
  };
}

describe('a claim', () => {
  it('reserves its first hour: two at once do not pass, while the first one is still being written', async () => {
    const writing = Promise.withResolvers<void>();
    const { create, reconcile, claimed, ready } = metered(BUDGET, undefined, (path) =>
      path === '/status' ? writing.promise : Promise.resolve(),
    );
    create('a');
    create('b');
    const runs = [reconcile('a'), reconcile('b')];
    await settle();
    writing.resolve();
    await Promise.allSettled(runs);
    expect(claimed()).toEqual(['a']);
    expect(ready('b')).toMatchObject({
      reason: 'BudgetExceeded',
      message:
        'The budget of this tenant for 2026-01 has no room for the first hour of this instance, which is 1.00 USD: of 1.50 USD, 0.00 are spent, and 1.00 are set aside for the first hour of other instances. Stop another instance, or choose a smaller one. The budget renews at 2026-02-01T00:00:00.000Z. The operator can change budget in TenantPolicy gold.',
    });
  });

  it('of a new leader counts what the leader before granted and the cache does not show yet', async () => {
    const { create, reconcile, claimed, unseen } = metered(BUDGET);
    const granted = held(gpuInstance('old', {}, { claim: claimOn('n') }));
    create('old');
    unseen.push({ ...granted, metadata: { ...granted.metadata, resourceVersion: '900' } });
    create('new');
    await reconcile('new');
    expect(claimed()).toEqual([]);
  });

  it('waits while usage records are read, and goes on when they are', async () => {
    const { create, reconcile, recorded, budgets, woken, claimed, ready } = metered(BUDGET);
    const known = recorded.now;
    recorded.now = undefined;
    create('a');
    await reconcile('a');
    expect([claimed(), ready('a')?.reason, budgets.look('default')]).toEqual([[], 'Pending', undefined]);
    recorded.now = known;
    budgets.look('default');
    expect(woken).toEqual(['default/a']);
    await reconcile('a');
    expect(claimed()).toEqual(['a']);
  });

  it('that is refused waits for room, and holds up no other tenant', async () => {
    const { create, reconcile, budgets, woken, change, line, instance } = metered(BUDGET);
    create('a');
    create('b');
    await reconcile('a');
    await reconcile('b');
    budgets.look('default');
    expect([woken.splice(0), line.size]).toEqual([['default/b'], 0]);
    budgets.look('default');
    expect(woken).toEqual([]);
    const { claim: _claim, ...rest } = instance('a').status ?? {};
    change('a', rest);
    budgets.look('default');
    expect(woken).toEqual(['default/b']);
    await reconcile('b');
    expect(instance('b').status?.claim).toBeDefined();
  });

  it('has room again in the next month, and what was spent before does not count', async () => {
    const { create, reconcile, budgets, clock, recorded, woken, started, claimed, change, instance } = metered(BUDGET);
    create('a');
    await reconcile('a');
    started('a', 2 * HOUR);
    const { claim: _claim, ...rest } = instance('a').status ?? {};
    const ended = { from: '2026-01-11T00:00:00.000Z', to: '2026-01-11T02:00:00.000Z' };
    const bill = {
      start: 1,
      product: '',
      gpuCount: 1,
      currency: 'USD',
      pricePerHour: '1.00',
      gpuSeconds: 7200,
      cost: '2.00',
    };
    change('a', {
      ...rest,
      intervals: [{ ...bill, ...ended }],
      ending: { reason: 'Stopped', message: '', at: ended.to },
    });
    clock.jumpWall(3 * HOUR);
    create('b');
    await reconcile('b');
    expect(claimed()).toEqual([]);
    budgets.look('default');
    woken.length = 0;
    clock.jumpWall(31 * 24 * HOUR);
    recorded.now = { spending: new RecordedSpending(monthOf(clock.now())), isRecorded: () => false };
    budgets.look('default');
    expect(woken).toEqual(['default/b']);
    await reconcile('b');
    expect(claimed()).toEqual(['b']);
  });
});

describe('a spent budget', () => {
  it('stops what runs, interruptible instances first, then the youngest start', async () => {
    const world = metered({ costs: [{ currency: 'USD', max: '100' }] });
    const { create, reconcile, started, budgets, stopping, policies, clock, instance } = world;
    for (const [name, type] of [
      ['old', 'OnDemand'],
      ['cheap', 'Interruptible'],
      ['young', 'OnDemand'],
    ] as const) {
      create(name, { type });
      await reconcile(name);
      started(name, HOUR);
      clock.jumpWall(1000);
    }
    budgets.look('default');
    expect(stopping).toEqual([]);
    policies.upsert(goldPolicy({ budget: { costs: [{ currency: 'USD', max: '2' }] } }, '3'));
    budgets.look('default');
    expect(stopping).toEqual(['default/cheap', 'default/young', 'default/old']);
    await reconcile('cheap');
    expect(instance('cheap').status?.ending).toMatchObject({
      reason: 'BudgetSpent',
      message: expect.stringMatching(
        /^The budget of this tenant for 2026-01 is spent: 3\.\d+ of 2\.00 USD\. The budget renews at 2026-02-01T00:00:00\.000Z\. The operator can change budget in TenantPolicy gold\.$/,
      ) as string,
    });
  });

  it('leaves an instance alone whose start the budget has room for again', async () => {
    const { create, reconcile, started, budgets, policies, instance } = metered(BUDGET);
    create('a');
    await reconcile('a');
    started('a', 2 * HOUR);
    budgets.look('default');
    expect(budgets.overspent(instance('a'))).toContain('is spent');
    policies.upsert(goldPolicy({ budget: { costs: [{ currency: 'USD', max: '9' }] } }, '3'));
    create('b');
    await reconcile('b');
    // The claim counted anew.
    expect(budgets.overspent(instance('a'))).toBeUndefined();
    expect(budgets.overspent(instance('b'))).toBeUndefined();
  });

  it('says nothing of a month that is over', async () => {
    const { create, reconcile, started, budgets, clock, instance } = metered(BUDGET);
    create('a');
    await reconcile('a');
    started('a', 2 * HOUR);
    budgets.look('default');
    clock.jumpWall(31 * 24 * HOUR);
    expect(budgets.overspent(instance('a'))).toBeUndefined();
  });
});

function key(name: string, budget: object): ApiKey {
  const spec = { hash: 'a'.repeat(64), prefix: '', displayName: '', scopes: [], revoked: false };
  const metadata = { namespace: 'default', name, uid: `uid-${name}`, resourceVersion: '1' };
  return { metadata, spec: { ...spec, limits: { budget: budgetSchema.parse(budget) } } };
}

describe('a budget of a key', () => {
  it('counts what this key created, beside the budget of the tenant, and stops that alone', async () => {
    const world = metered({ gpuHours: 100 });
    const { create, reconcile, apiKeys, claimed, ready, started, budgets, instance } = world;
    apiKeys.upsert(key('ci', BUDGET));
    create('a', {}, 'key/ci');
    create('b', {}, 'key/ci');
    create('c', {}, 'key/other');
    create('d', {}, 'person/ci');
    for (const name of ['a', 'b', 'c', 'd']) await reconcile(name);
    expect(claimed()).toEqual(['a', 'c', 'd']);
    expect(ready('b')?.message).toContain('An administrator of the tenant can change limits.budget in APIKey ci.');
    started('a', 2 * HOUR);
    started('c', 2 * HOUR);
    budgets.look('default');
    expect(budgets.overspent(instance('a'))).toContain('The budget of APIKey ci for 2026-01 is spent');
    expect(budgets.overspent(instance('c'))).toBeUndefined();
  });

  it('cannot be left by an edit after the claim', async () => {
    const { create, reconcile, apiKeys, instances, instance, started, budgets } = metered({});
    apiKeys.upsert(key('ci', BUDGET));
    create('a', {}, 'key/ci');
    await reconcile('a');
    started('a', 2 * HOUR);
    const { metadata, ...rest } = instance('a');
    instances.upsert({
      ...rest,
      metadata: { ...metadata, resourceVersion: '9999', annotations: { [CREATED_BY]: 'key/x' } },
    });
    budgets.look('default');
    expect(budgets.overspent(instance('a'))).toContain('APIKey ci');
  });
});

test('without a budget nothing is counted and no usage record is read', async () => {
  const { create, reconcile, recorded, claimed, budgets } = metered({});
  recorded.now = undefined;
  create('a');
  await reconcile('a');
  expect([claimed(), budgets.look('default')]).toEqual([['a'], []]);
});

describe('what a TenantLimit says', () => {
  /** Statuses and Events as they were written, percent by percent. */
  async function told(amounts: readonly string[]) {
    const world = metered({ costs: [{ currency: 'USD', max: '100' }] });
    const { budgets, clock, deps, limits } = world;
    limits.upsert({
      metadata: { namespace: 'default', name: 'berth', uid: 'uid-limit', resourceVersion: '1' },
      spec: tenantLimitSpecSchema.parse({}),
    });
    const written: BudgetStatus[] = [];
    const events: string[] = [];
    let version = 1;
    const client = {
      patch: (_type: unknown, _ref: unknown, body: { status: { budget: BudgetStatus } }) => {
        const [limit] = limits.store.values();
        if (limit === undefined) throw new Error('there is no TenantLimit');
        version += 1;
        const metadata = { ...limit.metadata, resourceVersion: String(version) };
        limits.upsert({ ...limit, metadata, status: { budget: body.status.budget } });
        written.push(body.status.budget);
        return Promise.resolve(limits.store.get('default/berth'));
      },
    };
    for (const cost of amounts) {
      const spending = new RecordedSpending(monthOf(clock.now()));
      const spec = { instance: 'i', instanceUid: 'u', product: '', gpuCount: 1, gpuSeconds: 1, currency: 'USD' };
      const endedAt = new Date(clock.now()).toISOString();
      spending.count({ metadata: { namespace: 'default', name: 'r' }, spec: { ...spec, cost, endedAt } }, 1);
      world.recorded.now = { spending, isRecorded: () => false };
      const counted = budgets.look('default') ?? [];
      await keepStatuses(
        {
          ...deps,
          client: client as never,
          events: {
            record: (_type, _object, { reason, message }) => void events.push(`${reason} ${message.slice(0, 12)}`),
          },
        },
        { namespace: 'default', counted, signal: new AbortController().signal },
      );
    }
    return { written, events };
  }

  it('is written with each whole per cent, and told at 50, 80 and 100', async () => {
    const { written, events } = await told(['1.00', '1.50', '49.99', '50', '50', '79', '81', '99', '101', '102']);
    expect(written.map(({ percent }) => percent)).toEqual([1, 49, 50, 79, 81, 99, 101, 102]);
    expect(events).toEqual(['BudgetNear 50 per cent ', 'BudgetNear 81 per cent ', 'BudgetSpent The budget o']);
    expect(written[2]?.lines).toEqual([{ unit: 'USD', max: '100.00', spent: '50.00' }]);
  });

  it('tells the highest of several warnings alone', async () => {
    expect((await told(['10', '90'])).events).toEqual(['BudgetNear 90 per cent ']);
  });
});
