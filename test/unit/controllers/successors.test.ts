import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { INDEXES } from '../../../src/caches/indexes.ts';
import type { Principal } from '../../../src/access/principal.ts';
import { keepStatuses } from '../../../src/controllers/budgets/statuses.ts';
import { apiKeyStatus } from '../../../src/controllers/status/api-key.ts';
import { createStatusController } from '../../../src/controllers/status/status-controller.ts';
import type { ControllerStores } from '../../../src/controllers/stores.ts';
import { reconcileTenant, UncountedQuotas } from '../../../src/controllers/tenants/reconcile.ts';
import { LastUsed } from '../../../src/http/interface/auth/last-used.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { ConflictError } from '../../../src/kube/errors.ts';
import type { KubeObject } from '../../../src/kube/types.ts';
import { type ApiKey, apiKeySpecSchema, hashToken } from '../../../src/resources/api-key.ts';
import type { BudgetStatus } from '../../../src/resources/tenants/budget.ts';
import { type TenantLimit, tenantLimitSpecSchema } from '../../../src/resources/tenants/tenant-limit.ts';
import { Fence } from '../../../src/runtime/fence.ts';
import { cacheOf } from '../../support/controller-world.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { history, entry, notifierWorld, webhook } from '../../support/notifier-world.ts';
import { patched } from '../../support/patched.ts';

const CREATED = '2026-01-01T00:00:00Z';
const NAMESPACE = 'team';
const log = pino({ level: 'silent' });
const { signal } = new AbortController();

const SPENT: BudgetStatus = { month: '2026-01', renewsAt: '2026-02-01T00:00:00Z', at: CREATED, percent: 1, lines: [] };

function metadataOf(name: string) {
  return { namespace: NAMESPACE, name, uid: 'first', resourceVersion: '1', creationTimestamp: CREATED };
}

const KEY: ApiKey = {
  metadata: metadataOf('key'),
  spec: apiKeySpecSchema.parse({ hash: hashToken('secret'), prefix: 'berth_a', scopes: ['models'] }),
  status: { budget: SPENT },
};
const LIMIT: TenantLimit = {
  metadata: metadataOf('berth'),
  spec: tenantLimitSpecSchema.parse({}),
  status: { budget: SPENT, keyBudgets: [{ name: 'key', budget: { costs: [] }, used: SPENT }] },
};

/** An API server that has another object under each name than the caches. What it lets through, it keeps in `written`. */
function successors() {
  const written: unknown[] = [];
  let calls = 0;
  const patch: KubeClient['patch'] = async (type, ref, body, options) => {
    calls += 1;
    const live = { metadata: { ...ref, uid: 'second', resourceVersion: '2' }, status: {} } as KubeObject;
    if (options.type === 'json') patched(live, body);
    // The uid of a merge patch stops nothing here.
    written.push([type.kind, body]);
    return live as never;
  };
  return { written, client: { patch } as KubeClient, calls: () => calls };
}

function world() {
  const clock = fakeClock();
  const none = cacheOf<never>([], { namespace: () => [] }).store;
  const stores = {
    instances: none,
    sshKeys: none,
    templates: none,
    disks: none,
    namespaces: cacheOf([{ metadata: { name: NAMESPACE, labels: { 'berth.dev/tenant': 'true' } } }]).store,
    apiKeys: cacheOf([KEY], INDEXES.apiKeys).store,
    tenantLimits: cacheOf([LIMIT], INDEXES.tenantLimits).store,
  } as unknown as ControllerStores;
  return { clock, stores, fence: new Fence(clock, log) };
}

const HELD = { places: [], withdrawn: [CREATED] };

const WRITERS: Readonly<Record<string, (client: KubeClient) => Promise<unknown>>> = {
  async 'the status of a kind'(client) {
    const { clock, stores } = world();
    const stop = new AbortController();
    const metrics = () => undefined as never;
    const controller = createStatusController({ client, clock, log, metrics, stores } as never, apiKeyStatus(stores));
    const running = controller.run({ stop: stop.signal, abort: signal });
    await clock.advance(1);
    stop.abort();
    await running;
  },
  async budgets(client) {
    const found = { namespace: NAMESPACE, counted: [], keyBudgets: [], signal };
    await keepStatuses({ ...world(), client, events: { record: () => undefined } }, found);
  },
  async 'budgets of keys'(client) {
    const { stores, ...rest } = world();
    const limit = { ...LIMIT, status: { keyBudgets: LIMIT.status?.keyBudgets } } as TenantLimit;
    const tenantLimits = cacheOf([limit], INDEXES.tenantLimits).store;
    const found = { namespace: NAMESPACE, counted: [], keyBudgets: [], signal };
    const deps = { ...rest, stores: { ...stores, tenantLimits }, client, events: { record: () => undefined } };
    await keepStatuses(deps, found);
  },
  async 'what was held for nothing'(client) {
    const pullSecrets = { isNeeded: false, keep: () => Promise.resolve() };
    const more = {
      ceilingsOf: () => LIMIT.spec,
      config: { namespace: 'berth' },
      unbilled: { held: () => HELD },
      pullSecrets,
    };
    const { clock, ...rest } = world();
    await reconcileTenant(
      { ...rest, ...more, clock, client, uncounted: new UncountedQuotas(clock) },
      NAMESPACE,
      signal,
    );
  },
  async 'the last use of a key'(client) {
    const { clock, stores } = world();
    const stop = new AbortController();
    const lastUsed = new LastUsed({ client, apiKeys: stores.apiKeys, clock, log });
    const running = lastUsed.run(stop.signal);
    lastUsed.touch({ keyId: 'first' } as Principal);
    await clock.advance(10_000);
    stop.abort();
    await clock.advance(10_000);
    await running;
  },
  async 'the cursor of a webhook'(client) {
    const { put, webhooks, histories, newTerm } = notifierWorld();
    put(webhooks, { ...webhook(), status: {} });
    put(histories, history('a', [entry(1, 'Accepted')]));
    await newTerm({ client })();
  },
};

test.each(Object.entries(WRITERS))('%s never comes to another object of the same name', async (_name, write) => {
  const { client, written, calls } = successors();
  await write(client).catch((error: unknown) => {
    // A controller looks again soon, and says nothing.
    if (!(error instanceof ConflictError)) throw error;
  });
  expect(calls()).toBeGreaterThan(0);
  expect(written).toEqual([]);
});

test('no status is written by a merge patch', () => {
  const root = join(import.meta.dirname, '../../..');
  const merged = globSync('src/**/*.ts', { cwd: root }).filter((path) =>
    /type: 'merge',\s*subresource: 'status'|subresource: 'status',\s*type: 'merge'/.test(
      readFileSync(join(root, path), 'utf8'),
    ),
  );
  expect(merged).toEqual([]);
});
