import { Registry } from 'prom-client';
import { Router } from 'express';
import { pino } from 'pino';
import { memoryCounter } from '../../../src/runtime/counter.ts';
import { ceilingsReader } from '../../../src/access/ceilings.ts';
import { CallLimits } from '../../../src/http/interface/request-limit.ts';
import type { RegistryCredential } from '../../../src/resources/registry-credential.ts';
import type { TenantLimit } from '../../../src/resources/tenants/tenant-limit.ts';
import type { ApiDeps } from '../../../src/http/server/context.ts';
import { Authenticator } from '../../../src/access/authenticator.ts';
import { INDEXES } from '../../../src/caches/indexes.ts';
import { Inventory } from '../../../src/inventory/inventory.ts';
import { Cache } from '../../../src/kube/watch/cache.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import type { IndexFunctions, ReadStore } from '../../../src/kube/watch/store.ts';
import type { KubeObject } from '../../../src/kube/types.ts';
import { type ApiKey, hashToken } from '../../../src/resources/api-key.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { AccessWatch } from '../../../src/access/access-watch.ts';
import { ALL_TENANTS } from '../../support/access.ts';
import { gpuNode } from '../../support/http/fleet.ts';
import { gpuPool } from '../../support/inventory-world.ts';

export const TENANT = 'tenant-0';
export const TOKEN = 'bench-token';
const NODES = 1000;
const MOST_CALLS = 1_000_000_000;
const INSTANCES = 10_000;
const TENANTS = 10;
const TIME = '2026-01-01T00:00:00Z';
const PRODUCTS = ['NVIDIA-H100-80GB-HBM3', 'NVIDIA-A100-SXM4-80GB', 'NVIDIA-L40S', 'NVIDIA-L4'];

function filled<T extends KubeObject>(objects: readonly T[], indexers?: IndexFunctions<T>): ReadStore<T> {
  const cache = new Cache<T>({ ...(indexers && { indexers }), onListenerError: () => undefined });
  cache.replace(objects, '1000');
  return cache.store;
}

function nodeNamed(index: number) {
  const node = gpuNode(`node-${index}`, PRODUCTS[index % PRODUCTS.length] ?? '', 8);
  const conditions = [{ type: 'Ready', status: 'True', lastHeartbeatTime: TIME, lastTransitionTime: TIME }];
  return { ...node, status: { ...node.status, conditions } };
}

function instanceNamed(index: number): GpuInstance {
  const condition = { status: 'True', message: '', lastTransitionTime: TIME } as const;
  return {
    metadata: {
      name: `i-${String(index).padStart(12, '0')}`,
      namespace: `tenant-${index % TENANTS}`,
      uid: `uid-${index}`,
      resourceVersion: '1',
      creationTimestamp: TIME,
    },
    spec: {
      type: 'OnDemand',
      displayName: `instance ${index}`,
      image: 'pytorch/pytorch:2.7.0-cuda12.6-cudnn9-runtime',
      diskGb: 64,
      installMonitoring: false,
      powerState: 'Running',
      onNoCapacity: 'Fail',
      onExpiry: 'Stop',
      onGPUFailure: 'Keep',
      diskPolicy: 'Delete',
    },
    status: {
      conditions: [
        { ...condition, type: 'Claimed', reason: 'Granted' },
        { ...condition, type: 'Ready', reason: 'Running' },
      ],
      claim: {
        offerId: 1,
        pool: 'default',
        node: `node-${index % NODES}`,
        resourceName: 'nvidia.com/gpu',
        product: PRODUCTS[index % PRODUCTS.length] ?? '',
        gpuCount: 1,
        memoryMb: 81_559,
        isolation: 'whole',
        pricePerHour: '2.49',
        currency: 'USD',
        simulated: true,
        grantedAt: TIME,
      },
      stages: { accepted: TIME, claimed: TIME, scheduled: TIME, pulled: TIME, started: TIME, ready: TIME },
      ssh: {
        host: 'ssh.example.com',
        port: 2222,
        user: `i-${index}`,
        knownHosts: '[ssh.example.com]:2222 ssh-ed25519 AAAAC3Nza',
      },
    },
  };
}

function apiKey(): ApiKey {
  return {
    metadata: { name: 'bench', namespace: TENANT, uid: 'bench' },
    spec: {
      hash: hashToken(TOKEN),
      prefix: '',
      displayName: '',
      scopes: ['compute:read'],
      revoked: false,
      limits: { requestsPerMinute: MOST_CALLS },
    },
    status: { lastUsedTime: new Date().toISOString() },
  };
}

/** An API server that always fails: the measured requests are answered from the caches. */
const NO_CLUSTER = new Proxy({} as KubeClient, {
  get: () => () => Promise.reject(new Error('There is no cluster in this benchmark.')),
});

const NO_PORTS = { hostOf: () => undefined, close: () => undefined } as unknown as ApiDeps['ports'];

/** The API over watch caches of the size of the target, filled without a cluster. */
export function benchDeps(): ApiDeps {
  const clock = systemClock();
  const stores = {
    pods: filled([]),
    instances: filled(
      Array.from({ length: INSTANCES }, (_, index) => instanceNamed(index)),
      INDEXES.instances,
    ),
    nodes: filled(Array.from({ length: NODES }, (_, index) => nodeNamed(index))),
    sshKeys: filled([], INDEXES.sshKeys),
    templates: filled([], INDEXES.templates),
    apiKeys: filled([apiKey()], INDEXES.apiKeys),
    tenantLimits: filled<TenantLimit>([], INDEXES.tenantLimits),
    namespaces: filled([]),
    registries: filled<RegistryCredential>([], INDEXES.registries),
    pools: filled([gpuPool('default')]),
  };
  const authenticator = new Authenticator({ apiKeys: stores.apiKeys, tenants: ALL_TENANTS, clock });
  const ceilingsOf = ceilingsReader(stores.tenantLimits);
  // No ceiling of calls ends a measurement, however fast the machine is.
  const ceilings: typeof ceilingsOf = (tenant) => {
    const { http, ...others } = ceilingsOf(tenant);
    return { ...others, http: { ...http, requestsPerMinute: MOST_CALLS } };
  };
  const inventory = new Inventory({ ...stores, storageClasses: filled([]) }, clock);
  return {
    client: NO_CLUSTER,
    stores,
    offers: inventory,
    models: { router: Router(), calls: new Map(), endCalls: () => undefined },
    authenticator,
    access: new AccessWatch({ authenticator, apiKeys: stores.apiKeys, tenants: ALL_TENANTS, clock }),
    tenants: ALL_TENANTS,
    dashboard: Router(),
    ports: NO_PORTS,
    readMonitor: () => Promise.reject(new Error('There is no exporter.')),
    ceilings,
    calls: new CallLimits(memoryCounter(), ceilings),
    sessionKey: () => Promise.resolve(Buffer.alloc(32)),
    namespace: 'berth-system',
    defaultImage: 'debian:12',
    trustProxy: false,
    clock,
    // To /dev/null: writing a line per request is part of the cost.
    log: pino({ level: 'info' }, pino.destination({ dest: '/dev/null', sync: false })),
    registry: new Registry(),
  };
}
