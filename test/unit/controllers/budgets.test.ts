import { describe, expect, it, test } from 'vitest';
import { Budgets } from '../../../src/controllers/budgets/budgets.ts';
import { keepStatuses } from '../../../src/controllers/budgets/statuses.ts';
import { monthOf } from '../../../src/ledger/month.ts';
import { RecordedSpending } from '../../../src/budgets/spending.ts';
import type { ApiKey } from '../../../src/resources/api-key.ts';
import { CREATED_BY, type GpuInstance, STARTED_BY } from '../../../src/resources/instances/gpu-instance.ts';
import { budgetSchema, type BudgetStatus } from '../../../src/resources/tenants/budget.ts';
import type { TokenRecord } from '../../../src/resources/token-record.ts';
import { tenantLimitSpecSchema, type TenantLimitStatus } from '../../../src/resources/tenants/tenant-limit.ts';
import { type controllerWorld, held } from '../../support/controller-world.ts';
import { settle } from '../../support/fake-clock.ts';
import { claimOn, gpuInstance, gpuPool } from '../../support/inventory-world.ts';
import { patched } from '../../support/patched.ts';
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
        'The budget of this tenant for 2026-01 has no room for the first hour of this instance, which takes 67 per cent: of 1.50 USD, 0 per cent are spent, and 67 per cent are set aside for the first hour of other instances. Stop another instance, or choose a smaller one. The budget renews at 2026-02-01T00:00:00.000Z. The operator can change budget in TenantPolicy gold.',
    });
  });

  it('of a later start does too', async () => {
    const writing = Promise.withResolvers<void>();
    const { create, change, reconcile, claimed } = metered(BUDGET, undefined, (path) =>
      path === '/status' ? writing.promise : Promise.resolve(),
    );
    for (const name of ['a', 'b']) {
      create(name);
      change(name, { incarnation: 1, ending: { reason: 'NodeLost', message: '', at: '2026-01-01T00:00:00.000Z' } });
    }
    const runs = [reconcile('a'), reconcile('b')];
    await settle();
    writing.resolve();
    await Promise.allSettled(runs);
    expect(claimed()).toEqual(['a']);
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
    expect(new Set(woken)).toEqual(new Set(['default/a']));
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
    budgets.look('default');
    expect([woken, line.size]).toEqual([[], 0]);
    const { claim: _claim, ...rest } = instance('a').status ?? {};
    change('a', rest);
    budgets.look('default');
    expect(woken).toEqual(['default/b']);
    await reconcile('b');
    expect(instance('b').status?.claim).toBeDefined();
  });

  it('that is refused is woken by an early stop where there is room for it, the oldest first and no more than fit', async () => {
    const { create, reconcile, budgets, woken, change, instance, ready } = metered({
      costs: [{ currency: 'USD', max: '2.50' }],
    });
    const waiters = ['c', 'd', 'e', 'f', 'g'];
    for (const name of ['a', 'b', ...waiters]) create(name);
    create('x-big', { gpu: { count: 2 } });
    for (const name of ['a', 'b', ...waiters, 'x-big']) await reconcile(name);
    expect(waiters.map((name) => ready(name)?.reason)).toEqual(waiters.map(() => 'BudgetExceeded'));
    budgets.look('default');
    expect(woken).toEqual([]);
    const release = (name: string): void => {
      const { claim: _claim, ...rest } = instance(name).status ?? {};
      change(name, rest);
    };
    release('a');
    budgets.look('default');
    expect(woken.splice(0)).toEqual(['default/c']);
    // As long as it takes no place, the next look wakes it again, and no other.
    budgets.look('default');
    expect(woken.splice(0)).toEqual(['default/c']);
    await reconcile('c');
    budgets.look('default');
    expect(woken).toEqual([]);
    release('b');
    release('c');
    budgets.look('default');
    expect(woken).toEqual(['default/d', 'default/e']);
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
    recorded.now = {
      spending: new RecordedSpending(monthOf(clock.now())),
      isRecorded: () => false,
      revisionOf: () => 0,
    };
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

describe('the bill of an instance that went', () => {
  /** It has spent a dollar of this month in its first start. */
  const worldOf = () => {
    const world = metered(BUDGET);
    const { create, change, recorded, budgets, instance, instances, clock } = world;
    const [from, to] = [clock.now() - 2 * HOUR, clock.now() - HOUR].map((ms) => new Date(ms).toISOString());
    const product = { product: 'A100', gpuCount: 1, pricePerHour: '1.00', currency: 'USD' };
    const interval = { start: 1, from: from ?? '', to: to ?? '', ...product, gpuSeconds: 3600, cost: '1.00' };
    create('a');
    change('a', { incarnation: 1, intervals: [interval] });
    const spent = () => budgets.look('default')?.[0]?.lines[0]?.spent;
    /** The cache of records shows its record. */
    const record = () => {
      const spending = new RecordedSpending(monthOf(clock.now()));
      const spec = {
        instance: 'a',
        instanceUid: 'uid-a',
        ...product,
        gpuSeconds: 3600,
        cost: '1.00',
        endedAt: to ?? '',
      };
      spending.count({ metadata: { namespace: 'default', name: 'a-1' }, spec: { ...spec, intervals: [interval] } }, 1);
      const isRecorded = (uid: string, start: number): boolean => uid === 'uid-a' && start === 1;
      recorded.now = { spending, isRecorded, revisionOf: () => 1 };
    };
    expect(spent()).toBe(1_000_000n);
    return { ...world, spent, record, remove: () => instances.remove(instance('a')) };
  };

  it('counts until its record is seen, and once then', () => {
    const { spent, record, remove } = worldOf();
    remove();
    expect(spent()).toBe(1_000_000n);
    record();
    expect(spent()).toBe(1_000_000n);
  });

  it('leaves no room to others meanwhile', async () => {
    const { create, reconcile, ready, remove } = worldOf();
    remove();
    create('b');
    await reconcile('b');
    expect(ready('b')?.reason).toBe('BudgetExceeded');
  });

  it('counts too when its starts move to a record and it stays', () => {
    const { change, spent, record } = worldOf();
    change('a', { incarnation: 1, intervals: [], records: 1 });
    expect(spent()).toBe(1_000_000n);
    record();
    expect(spent()).toBe(1_000_000n);
  });

  it('counts once too when a backup brings its status back, also when the controller has seen to that', () => {
    const { spent, record, instance, instances, remove } = worldOf();
    record();
    const { metadata, spec, status } = instance('a');
    remove();
    let version = 900;
    const bring = (brought: GpuInstance['status']): bigint | undefined => {
      version += 1;
      const back = { ...metadata, uid: 'uid-back', resourceVersion: String(version) };
      instances.upsert({ metadata: back, spec, status: { incarnation: 1, ...brought } });
      return spent();
    };
    const grantedAt = status?.intervals?.[0]?.from ?? '';
    const running = { claim: claimOn('n', { pricePerHour: '1.00', grantedAt }), stages: { started: grantedAt } };
    expect(bring({ uid: 'uid-a', ...running })).toBe(1_000_000n);
    expect(bring({ uid: 'uid-a', intervals: [...(status?.intervals ?? [])] })).toBe(1_000_000n);
    expect(bring({ uid: 'uid-back', intervals: [] })).toBe(1_000_000n);
  });

  it('counts no longer where no record of it comes, as when an operator deleted that', async () => {
    const { spent, remove, clock } = worldOf();
    remove();
    await clock.advance(10 * 60_000);
    expect(spent()).toBe(0n);
  });
});

/** What calls of the tenant cost in the middle of January. */
function tokenRecord(cost: string, resourceVersion: string): TokenRecord {
  const counts = { calls: 1, unreported: 0, inputTokens: 1, cachedInputTokens: 0, outputTokens: 1 };
  const prices = { inputPrice: '1', cachedInputPrice: '1', outputPrice: '1' };
  const entry = { by: 'key/ci', model: 'qwen', ...prices, ...counts, cost };
  return {
    metadata: { namespace: 'default', name: 'tokens', resourceVersion },
    spec: { day: '2026-01-11', replica: 'r', calls: 1, cost, currency: 'USD', entries: [entry] },
  };
}

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

  it('has to bear a start that the key asked for, also where another created it, but none that Berth owes', async () => {
    const world = metered({});
    const { create, reconcile, apiKeys, instances, instance, started, budgets, ready, claimed, change } = world;
    apiKeys.upsert(key('poor', { costs: [{ currency: 'USD', max: '0.50' }] }));
    apiKeys.upsert(key('able', BUDGET));
    /** Asks for another start of an instance that ended, over HTTP. */
    const ask = (name: string, by: string, startRequest: string): void => {
      const { metadata, spec, status } = instance(name);
      instances.upsert({
        metadata: {
          ...metadata,
          resourceVersion: `77${startRequest}`,
          generation: (metadata.generation ?? 1) + 1,
          annotations: { ...metadata.annotations, [STARTED_BY]: `${startRequest} ${by}` },
        },
        spec: { ...spec, startRequest },
        ...(status && { status }),
      });
    };
    /** The start that runs is over. */
    const end = (name: string, reason: string): void => {
      const { claim: _claim, ...rest } = instance(name).status ?? {};
      const { generation = 1 } = instance(name).metadata;
      const { startRequest } = instance(name).spec;
      change(name, {
        ...rest,
        ending: {
          reason,
          message: '',
          at: '2026-01-11T00:00:00.000Z',
          generation,
          ...(startRequest && { startRequest }),
        },
      });
    };
    create('a', {}, 'key/theirs');
    await reconcile('a');
    end('a', 'Idle');
    ask('a', 'key/poor', '1');
    await reconcile('a');
    expect([claimed(), ready('a')?.message]).toEqual([[], expect.stringContaining('The budget of APIKey poor')]);
    ask('a', 'key/able', '2');
    await reconcile('a');
    expect(instance('a').status?.claim).toMatchObject({ createdBy: 'key/theirs', startedBy: 'key/able' });
    started('a', 2 * HOUR);
    budgets.look('default');
    expect(budgets.overspent(instance('a'))).toContain('The budget of APIKey able for 2026-01 is spent');
    end('a', 'Preempted');
    await reconcile('a');
    expect(instance('a').status?.claim).toMatchObject({ createdBy: 'key/theirs' });
    expect(instance('a').status?.claim).not.toHaveProperty('startedBy');
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

describe('the budget of a key that was deleted', () => {
  const LIMIT = { namespace: 'default', name: 'berth', uid: 'uid-limit' };

  /** A tenant whose TenantLimit shows what the controller writes there, and a look that writes. */
  function remembering(...more: Parameters<typeof metered>) {
    const world = metered(...more);
    let version = 1;
    const put = (status: TenantLimitStatus): void => {
      version += 1;
      const metadata = { ...LIMIT, resourceVersion: String(version) };
      world.limits.upsert({ metadata, spec: tenantLimitSpecSchema.parse({}), status });
    };
    put({});
    const client = {
      patch: (_type: unknown, { name }: { name: string }, body: unknown) => {
        const limit = world.limits.store.get('default/berth');
        if (name === LIMIT.name && limit !== undefined) put(patched(limit, body).status ?? {});
        return Promise.resolve(world.limits.store.get('default/berth'));
      },
    };
    const look = (budgets = world.budgets) =>
      keepStatuses(
        { ...world.deps, client: client as never, events: { record: () => undefined } },
        {
          namespace: 'default',
          counted: budgets.look('default') ?? [],
          keyBudgets: budgets.toRemember('default'),
          signal: new AbortController().signal,
        },
      );
    /** The budgets of the next leader, who saw no key go. */
    const nextLeader = (): Budgets =>
      new Budgets({
        stores: world.deps.stores,
        ceilingsOf: world.deps.ceilingsOf,
        clock: world.clock,
        assumedClaim: () => undefined,
        recordedAt: () => world.recorded.now,
      });
    const remembered = () => world.limits.store.get('default/berth')?.status?.keyBudgets;
    return { ...world, look, nextLeader, remembered };
  }

  it('is written with what starts set aside, and when they give it back', async () => {
    const { create, reconcile, look, limits, instance, change } = remembering({
      costs: [{ currency: 'USD', max: '50' }],
    });
    const line = () => limits.store.get('default/berth')?.status?.budget?.lines[0];
    await look();
    expect(line()).toEqual({ unit: 'USD', max: '50.00', spent: '0.00' });
    create('a');
    await reconcile('a');
    await look();
    expect(line()).toMatchObject({ spent: '0.00', reserved: '1.00' });
    const { claim: _claim, ...rest } = instance('a').status ?? {};
    change('a', rest);
    await look();
    expect(line()).toEqual({ unit: 'USD', max: '50.00', spent: '0.00' });
  });

  it('holds for what runs, with what ended before, whoever leads', async () => {
    const world = remembering({});
    const { create, reconcile, apiKeys, recorded, clock, started, look, nextLeader, instance, claimed } = world;
    apiKeys.upsert(key('ci', { costs: [{ currency: 'USD', max: '5' }] }));
    create('a', {}, 'key/ci');
    create('b', {}, 'key/other');
    await reconcile('a');
    await reconcile('b');
    await look();
    // Three dollars by starts that have their records.
    const spending = new RecordedSpending(monthOf(clock.now()));
    const sum = { instance: 'i', instanceUid: 'u', product: '', gpuCount: 1, gpuSeconds: 1, currency: 'USD' };
    const to = new Date(clock.now()).toISOString();
    const from = new Date(clock.now() - HOUR).toISOString();
    const interval = { ...sum, start: 1, from, to, cost: '3', pricePerHour: '3', createdBy: 'key/ci' };
    spending.count(
      {
        metadata: { namespace: 'default', name: 'r' },
        spec: { ...sum, cost: '3', endedAt: to, intervals: [interval] },
      },
      1,
    );
    recorded.now = { spending, isRecorded: () => false, revisionOf: () => 0 };
    apiKeys.remove(key('ci', {}));
    started('a', HOUR);
    for (const budgets of [world.budgets, nextLeader()]) {
      await look(budgets);
      expect(budgets.overspent(instance('a'))).toBeUndefined();
    }
    started('a', 2 * HOUR);
    for (const budgets of [world.budgets, nextLeader()]) {
      await look(budgets);
      expect(budgets.overspent(instance('a'))).toMatch(
        /^The budget of APIKey ci, which was deleted, for 2026-01 is spent: 5\.00 of 5\.00 USD\. .* can create APIKey ci anew/,
      );
      expect(budgets.overspent(instance('b'))).toBeUndefined();
    }
    // Stopped and started again: it gets no place, nor does anything else that the key made.
    const { createdBy: _by, ...bill } = { ...interval, cost: '2', pricePerHour: '1', gpuSeconds: 7200 };
    world.change('a', { incarnation: 1, intervals: [{ ...bill, createdBy: 'key/ci' }] });
    create('late', {}, 'key/ci');
    create('free');
    for (const name of ['a', 'late', 'free']) await reconcile(name);
    expect(claimed()).toEqual(['b', 'free']);
    expect(world.ready('a')?.reason).toBe('BudgetExceeded');
  });

  it('is the last that it had: to lower it and to delete the key at once lifts nothing', async () => {
    const world = remembering({});
    const { create, reconcile, apiKeys, started, look, nextLeader, instance, remembered } = world;
    apiKeys.upsert(key('ci', { costs: [{ currency: 'USD', max: '50' }] }));
    create('a', {}, 'key/ci');
    await reconcile('a');
    started('a', 2 * HOUR);
    await look();
    expect(remembered()).toMatchObject([{ name: 'ci', budget: { costs: [{ max: '50' }] } }]);
    const lowered = key('ci', { costs: [{ currency: 'USD', max: '1' }] });
    apiKeys.upsert({ ...lowered, metadata: { ...lowered.metadata, resourceVersion: '2' } });
    apiKeys.remove(lowered);
    // Also before anything was written, and for the next leader after it was.
    world.budgets.look('default');
    expect(world.budgets.overspent(instance('a'))).toContain('of 1.00 USD');
    await look();
    const next = nextLeader();
    next.look('default');
    expect(next.overspent(instance('a'))).toContain('of 1.00 USD');
    expect(remembered()).toMatchObject([{ name: 'ci', budget: { costs: [{ max: '1' }] }, used: { percent: 200 } }]);
  });

  it.each(['before', 'after'])(
    'goes with its namespace, which the cache shows to go %s the keys: who has the name later hears of none',
    async (when) => {
      const { apiKeys, create, reconcile, instance, instances, namespaces, limits, look, remembered } = remembering({});
      apiKeys.upsert(key('ci', BUDGET));
      create('a', {}, 'key/ci');
      await reconcile('a');
      await look();
      expect(remembered()).toMatchObject([{ name: 'ci' }]);
      const removeKeys = (): void => {
        apiKeys.remove(key('ci', {}));
        instances.remove(instance('a'));
      };
      if (when === 'after') removeKeys();
      const going = { name: 'default', uid: 'uid-default', deletionTimestamp: '2026-01-11T00:00:00Z' };
      namespaces.upsert({ metadata: { ...going, resourceVersion: '5' } });
      if (when === 'before') removeKeys();
      namespaces.upsert({ metadata: { name: 'default', uid: 'uid-second', resourceVersion: '6' } });
      limits.upsert({
        metadata: { ...LIMIT, uid: 'uid-of-second', resourceVersion: '1000' },
        spec: tenantLimitSpecSchema.parse({ budget: BUDGET }),
      });
      await look();
      expect(remembered()).toBeUndefined();
    },
  );

  it('goes with its last instance and its month, and gives way to a key of the same name', async () => {
    const { create, reconcile, apiKeys, instances, instance, look, remembered, budgets, clock, recorded } = remembering(
      {},
    );
    apiKeys.upsert(key('ci', BUDGET));
    create('a', {}, 'key/ci');
    await reconcile('a');
    await look();
    apiKeys.remove(key('ci', {}));
    await look();
    apiKeys.upsert({ ...key('ci', {}), metadata: { ...key('ci', {}).metadata, uid: 'uid-new' } });
    expect(budgets.of('default')).toEqual([]);
    await look();
    expect(remembered()).toBeUndefined();
    apiKeys.upsert({
      ...key('ci', BUDGET),
      metadata: { ...key('ci', {}).metadata, uid: 'uid-new', resourceVersion: '5' },
    });
    await look();
    apiKeys.remove(key('ci', {}));
    instances.remove(instance('a'));
    await look();
    expect(remembered()).toHaveLength(1);
    clock.jumpWall(31 * 24 * HOUR);
    recorded.now = {
      spending: new RecordedSpending(monthOf(clock.now())),
      isRecorded: () => false,
      revisionOf: () => 0,
    };
    await look();
    expect([remembered(), budgets.of('default')]).toEqual([undefined, []]);
  });

  it('is none where the key had none: what it made runs on', async () => {
    const { create, reconcile, apiKeys, claimed, budgets, look } = remembering({});
    apiKeys.upsert(key('ci', {}));
    create('a', {}, 'key/ci');
    await reconcile('a');
    apiKeys.remove(key('ci', {}));
    create('b', {}, 'key/ci');
    await reconcile('b');
    await look();
    expect([claimed(), budgets.of('default')]).toEqual([['a', 'b'], []]);
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
  /** What instances cost, or calls, so many seconds after the look before. */
  type Spent = string | { calls: string; seconds?: number };

  /** Statuses and Events as they were written, percent by percent. */
  async function told(amounts: readonly Spent[]) {
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
      patch: (_type: unknown, _ref: unknown, body: unknown) => {
        const [limit] = limits.store.values();
        if (limit === undefined) throw new Error('there is no TenantLimit');
        version += 1;
        const metadata = { ...limit.metadata, resourceVersion: String(version) };
        const { status } = patched(limit, body);
        limits.upsert({ ...limit, metadata, ...(status && { status }) });
        if (status?.budget !== undefined) written.push(status.budget);
        return Promise.resolve(limits.store.get('default/berth'));
      },
    };
    for (const [index, spent] of amounts.entries()) {
      const spending = new RecordedSpending(monthOf(clock.now()));
      if (typeof spent === 'string') {
        const spec = { instance: 'i', instanceUid: 'u', product: '', gpuCount: 1, gpuSeconds: 1, currency: 'USD' };
        const endedAt = new Date(clock.now()).toISOString();
        spending.count({ metadata: { namespace: 'default', name: 'r' }, spec: { ...spec, cost: spent, endedAt } }, 1);
      } else {
        clock.jumpWall((spent.seconds ?? 1) * 1000);
        spending.countTokens(tokenRecord(spent.calls, `10${index}`), 1);
      }
      world.recorded.now = { spending, isRecorded: () => false, revisionOf: () => 0 };
      const counted = budgets.look('default') ?? [];
      await keepStatuses(
        {
          ...deps,
          client: client as never,
          events: {
            record: (_type, _object, { reason, message }) => void events.push(`${reason} ${message.slice(0, 12)}`),
          },
        },
        { namespace: 'default', counted, keyBudgets: [], signal: new AbortController().signal },
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

  it('is written with each quarter of a per cent that calls spend, and a minute after the rest', async () => {
    const { written } = await told([
      { calls: '0.10' },
      { calls: '0.20' },
      { calls: '0.36' },
      { calls: '0.40', seconds: 30 },
      { calls: '0.40', seconds: 60 },
      { calls: '0.40', seconds: 600 },
    ]);
    expect(written.map(({ lines, tokensVersion }) => [lines[0]?.spent, tokensVersion])).toEqual([
      ['0.10', '100'],
      ['0.36', '102'],
      ['0.40', '104'],
    ]);
  });

  it('tells the highest of several warnings alone', async () => {
    expect((await told(['10', '90'])).events).toEqual(['BudgetNear 90 per cent ']);
  });
});
