import { pino } from 'pino';
import { INDEXES } from '../../src/caches/indexes.ts';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { rfc3339 } from '../../src/kube/conditions.ts';
import type { KubeObject } from '../../src/kube/types.ts';
import { Cache } from '../../src/kube/watch/cache.ts';
import type { IndexFunctions } from '../../src/kube/watch/store.ts';
import { Deliverer, type DelivererDeps } from '../../src/notifier/deliverer.ts';
import { EventIndex } from '../../src/notifier/event-index.ts';
import { Lags } from '../../src/notifier/metrics.ts';
import type { Delivery, Outcome } from '../../src/notifier/target.ts';
import type { HistoryEntry, InstanceHistory } from '../../src/resources/instance-history.ts';
import type { TenantLimit } from '../../src/resources/tenants/tenant-limit.ts';
import type { Webhook, WebhookStatus } from '../../src/resources/webhook.ts';
import type { Result } from '../../src/runtime/controller.ts';
import { fakeClock } from './fake-clock.ts';
import { patched } from './patched.ts';

export const TENANT = 'team';
export const HOOK_KEY = `${TENANT}/hook`;
const CREATED = '2026-01-01T00:00:00Z';
const log = pino({ level: 'silent' });

function cacheOf<T extends KubeObject>(indexers?: IndexFunctions<T>): Cache<T> {
  return new Cache<T>({
    ...(indexers && { indexers }),
    onListenerError: (error) => {
      throw error;
    },
  });
}

export function webhook(spec: Partial<Webhook['spec']> = {}, name = 'hook', namespace = TENANT): Webhook {
  return {
    metadata: { namespace, name, uid: `uid-of-${name}`, generation: 1, creationTimestamp: CREATED },
    spec: { url: 'https://example.com/hook', displayName: '', secretVersion: 1, ...spec },
  };
}

/** `at`: seconds after the webhook was made. */
export function entry(at: number, reason: string, fields: Partial<HistoryEntry> = {}): HistoryEntry {
  const time = rfc3339(Date.parse(CREATED) + at * 1000);
  return {
    at: time,
    recordedAt: time,
    type: 'Normal',
    reason,
    message: `It is ${reason}.`,
    count: 1,
    start: 1,
    ...fields,
  };
}

export function history(name: string, entries: HistoryEntry[], dropped = 0): InstanceHistory {
  return {
    metadata: { namespace: TENANT, name: `h-${name}` },
    spec: { instance: name, displayName: `the ${name}`, instanceUid: name, dropped, entries },
  };
}

export function budget(percent: number, month = '2026-01'): TenantLimit {
  const status = {
    month,
    renewsAt: '2026-02-01T00:00:00Z',
    at: CREATED,
    percent,
    lines: [{ unit: 'USD', max: '10.00', spent: '9.00' }],
  };
  return {
    metadata: { namespace: TENANT, name: 'berth', uid: 'limit' },
    spec: {},
    status: { budget: status },
  } as unknown as TenantLimit;
}

/** What a target was sent. */
export interface Sent extends Delivery {
  id: string;
  type: string;
  data: Record<string, unknown>;
  timestamp: string;
}

/** Stores, an API server that holds the statuses of webhooks, and a target that answers as the test says. */
export function notifierWorld() {
  const clock = fakeClock();
  const webhooks = cacheOf<Webhook>(INDEXES.webhooks);
  const histories = cacheOf<InstanceHistory>(INDEXES.histories);
  const tenantLimits = cacheOf<TenantLimit>();
  for (const cache of [webhooks, histories, tenantLimits]) cache.replace([], '1');
  const world = {
    clock,
    webhooks,
    histories,
    tenantLimits,
    lags: new Lags(),
    sent: [] as Sent[],
    counted: [] as string[],
    writes: 0,
    answer: (_sent: Sent): Outcome | Promise<Outcome> => ({ kind: 'delivered' }),
    /** Runs before each write; what it throws is the error of the write. */
    onWrite: (): void => undefined,
    status: (key = HOOK_KEY): WebhookStatus => webhooks.store.get(key)?.status ?? {},
    /** A notifier that has just got the lease: it knows what the stores have. */
    newTerm,
    put,
  };
  const client: Pick<KubeClient, 'patch'> = {
    async patch(_type, { namespace, name }, body) {
      world.onWrite();
      world.writes += 1;
      const before = webhooks.store.get(`${namespace}/${name}`);
      if (before === undefined) throw new Error(`There is no webhook ${namespace}/${name}.`);
      put(webhooks, patched(before, body));
      return undefined as never;
    },
  };
  function put<T extends KubeObject>(cache: Cache<T>, object: T): void {
    const { namespace, name } = object.metadata;
    const others = [...cache.store.values()].filter(
      ({ metadata }) => metadata.name !== name || metadata.namespace !== namespace,
    );
    cache.replace([...others, structuredClone(object)], '1');
  }
  function newTerm(changed: Partial<DelivererDeps> = {}) {
    const deliverer = new Deliverer({
      client,
      stores: { webhooks: webhooks.store, tenantLimits: tenantLimits.store },
      index: new EventIndex(histories.store),
      targets: {
        async deliver(delivery) {
          const { 'webhook-id': id = '' } = delivery.headers;
          const sent = { ...delivery, id, ...(JSON.parse(delivery.body) as Pick<Sent, 'type' | 'data' | 'timestamp'>) };
          world.sent.push(sent);
          return await world.answer(sent);
        },
      },
      key: Buffer.alloc(32, 7),
      mayDeliver: () => true,
      stopping: new AbortController().signal,
      count: (outcome) => world.counted.push(outcome),
      lags: world.lags,
      clock,
      random: () => 0,
      ...changed,
    });
    const { signal } = new AbortController();
    return (key = HOOK_KEY): Promise<Result> => deliverer.reconcile(key, { signal, log });
  }
  return world;
}
