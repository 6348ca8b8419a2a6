import { createModelGateway } from '../gateway/gateway.ts';
import { createValkeyStore } from '../gateway/state/valkey-store.ts';
import { getPrincipal } from '../access/principal.ts';
import { DEFAULT_REQUESTS_PER_MINUTE } from '../http/middleware/request-limit.ts';
import { localCounters, sharedCounters } from '../runtime/shared-counter.ts';
import { startApi } from '../http/server.ts';
import { createAuthenticator } from '../http/auth/authenticator.ts';
import { Inventory } from '../inventory/inventory.ts';
import { createInstanceProxy } from '../ports/ports.ts';
import { createActivity } from '../access/activity.ts';
import { sessionKeyReader } from '../web/session-key.ts';
import type { Role } from './role.ts';

/** Milliseconds: longer than most clients pause between calls; the endpoints have changed before it begins. */
const LAST_ANSWERS_MS = 1_000;

export const apiRole: Role = async ({ process, stores, shutdown }) => {
  const { client, clock, config, connection, log, registry } = process;
  const instances = stores.get('instances');
  const nodes = stores.get('nodes');
  const pods = stores.get('pods');
  const offers = new Inventory(
    { nodes, pods, instances, pools: stores.get('pools'), storageClasses: stores.get('storageClasses') },
    clock,
  );
  shutdown.defer('inventory', () => offers.close());
  const counters = config.valkeyUrl === undefined ? localCounters() : sharedCounters(config.valkeyUrl, log);
  shutdown.defer('counters', () => counters.close());
  const store = config.valkeyUrl === undefined ? undefined : createValkeyStore(config.valkeyUrl, log);
  shutdown.defer('responses', () => store?.close());
  const models = createModelGateway({
    services: stores.get('services'),
    slices: stores.get('slices'),
    pods,
    namespace: config.namespace,
    getPrincipal,
    counter: (prefix) => counters.counter(prefix),
    store,
    registry,
    logger: log,
  });
  const apiKeys = stores.get('apiKeys');
  const authenticator = createAuthenticator({ apiKeys, clock });
  const requests = counters.counter('requests');
  const tickets = counters.counter('tickets');
  const activity = createActivity({ client, instances, clock, log });
  const ended = new AbortController();
  const written = activity.run(ended.signal);
  shutdown.defer('activity', () => {
    ended.abort();
    return written;
  });
  const proxy = createInstanceProxy({
    endpoint: connection,
    instances,
    pods,
    base: config.proxyUrl,
    sessionKey: sessionKeyReader(client, config.namespace),
    shown: async (id) => (await tickets.add(id, 1)).total,
    mayGoOn: (user) => authenticator.isValid(user, 'compute:write'),
    mayAsk: async ({ keyId }) => {
      const [key] = apiKeys.by('uid', keyId);
      const most = key?.spec.limits?.requestsPerMinute ?? DEFAULT_REQUESTS_PER_MINUTE;
      return (await requests.add(keyId, 1)).total <= most;
    },
    activity,
    clock,
    log,
  });
  const unfollow = apiKeys.onChange(() => proxy.recheck());
  shutdown.defer('proxy', unfollow);
  const server = await startApi({
    client,
    stores: {
      instances,
      nodes,
      sshKeys: stores.get('keys'),
      templates: stores.get('templates'),
      apiKeys,
    },
    offers,
    models: models.router,
    proxy,
    namespace: config.namespace,
    requestCounter: requests,
    defaultImage: config.defaultImage,
    trustProxy: config.trustProxy,
    clock,
    log,
    registry,
    address: config.http,
  });
  models.start();
  shutdown.defer('models', () => models.stop());
  shutdown.defer('api', () => server.close(LAST_ANSWERS_MS));
  log.info({ address: server.address }, 'HTTP interface listens');
};
