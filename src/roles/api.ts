import { createModelGateway } from '../gateway/gateway.ts';
import { createValkeyStore } from '../gateway/state/valkey-store.ts';
import { getPrincipal } from '../http/auth/principal.ts';
import { localCounters, sharedCounters } from '../http/limits/shared-counter.ts';
import { startApi } from '../http/server.ts';
import { Inventory } from '../inventory/inventory.ts';
import type { Role } from './role.ts';

export const apiRole: Role = async ({ process, stores, shutdown }) => {
  const { client, clock, config, log, registry } = process;
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
  const server = await startApi({
    client,
    stores: {
      instances,
      nodes,
      sshKeys: stores.get('keys'),
      templates: stores.get('templates'),
      apiKeys: stores.get('apiKeys'),
    },
    offers,
    models: models.router,
    namespace: config.namespace,
    requestCounter: counters.counter('requests'),
    defaultImage: config.defaultImage,
    trustProxy: config.trustProxy,
    clock,
    log,
    registry,
    address: config.http,
  });
  models.start();
  shutdown.defer('models', () => models.stop());
  shutdown.defer('api', () => server.close());
  log.info({ address: server.address }, 'HTTP interface listens');
};
