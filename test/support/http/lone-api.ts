import { connect, type Socket } from 'node:net';
import { Router } from 'express';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { ceilingsReader } from '../../../src/access/ceilings.ts';
import { INDEXES } from '../../../src/caches/indexes.ts';
import { Authenticator } from '../../../src/http/auth/authenticator.ts';
import type { ApiDeps } from '../../../src/http/context.ts';
import { CallLimits } from '../../../src/http/middleware/request-limit.ts';
import { type ApiServer, startApi } from '../../../src/http/server.ts';
import { Inventory } from '../../../src/inventory/inventory.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { Cache } from '../../../src/kube/watch/cache.ts';
import type { IndexFunctions, ReadStore } from '../../../src/kube/watch/store.ts';
import type { KubeObject, Pod } from '../../../src/kube/types.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { type ApiKey, hashToken } from '../../../src/resources/api-key.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import type { RegistryCredential } from '../../../src/resources/registry-credential.ts';
import type { Ceilings } from '../../../src/resources/tenants/ceilings.ts';
import { DEFAULT_CEILINGS } from '../../../src/resources/tenants/ceilings.ts';
import { TENANT_LIMIT_NAME, type TenantLimit } from '../../../src/resources/tenants/tenant-limit.ts';
import { memoryCounter } from '../../../src/runtime/counter.ts';
import { dashboardRouter } from '../../../src/web/router.ts';

export interface LoneApiOptions {
  /** Tenants; the token of each is its name. */
  tenants: readonly string[];
  /** What is other than the default ceilings of a tenant. */
  http?: Record<string, Partial<Ceilings['http']>>;
  instances?: readonly GpuInstance[];
  pods?: readonly Pod[];
  /** Calls of the API server; without it every call fails. */
  client?: Partial<KubeClient>;
  clock?: Clock;
  maxConnections?: number;
  trustProxy?: ApiDeps['trustProxy'];
}

export interface LoneApi extends ApiServer {
  /** The value of a metric without labels. */
  metric(name: string): Promise<number>;
  /** A connection that has sent these bytes. */
  send(...bytes: (string | Buffer)[]): Client;
}

function filled<T extends KubeObject>(objects: readonly T[], indexers?: IndexFunctions<T>): ReadStore<T> {
  const cache = new Cache<T>({ ...(indexers && { indexers }), onListenerError: () => undefined });
  cache.replace(objects, '1');
  return cache.store;
}

function keyOfTenant(namespace: string): ApiKey {
  const spec = { hash: hashToken(namespace), prefix: '', displayName: '', revoked: false };
  const metadata = { name: 'key', namespace, uid: `uid-of-${namespace}`, creationTimestamp: '2026-01-01T00:00:00Z' };
  return {
    metadata,
    spec: { ...spec, scopes: ['compute:read', 'compute:write'] },
    // In the future, so that nothing writes it.
    status: { lastUsedTime: '2100-01-01T00:00:00Z' },
  };
}

/** The bytes that a client got, and whether its connection is closed. */
export class Client {
  readonly socket: Socket;
  got = '';
  closed = false;

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1');
    this.socket.setEncoding('utf8');
    this.socket.on('data', (text: string) => (this.got += text));
    this.socket.on('error', () => undefined);
    this.socket.once('close', () => (this.closed = true));
  }

  /** Statuses of the answers so far. */
  get statuses(): number[] {
    return [...this.got.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));
  }
}

/** The HTTP interface in this process, without a cluster. */
export async function startLoneApi(options: LoneApiOptions): Promise<LoneApi> {
  const { tenants, http = {}, clock = systemClock(), trustProxy = false, maxConnections } = options;
  const limits = Object.entries(http).map(([namespace, changed]): TenantLimit => {
    const spec = { ...DEFAULT_CEILINGS, http: { ...DEFAULT_CEILINGS.http, ...changed }, policies: [] };
    return { metadata: { namespace, name: TENANT_LIMIT_NAME }, spec };
  });
  const stores = {
    instances: filled(options.instances ?? [], INDEXES.instances),
    pods: filled(options.pods ?? [], INDEXES.pods),
    nodes: filled([]),
    sshKeys: filled([], INDEXES.sshKeys),
    templates: filled([], INDEXES.templates),
    namespaces: filled([]),
    registries: filled<RegistryCredential>([], INDEXES.registries),
    apiKeys: filled(tenants.map(keyOfTenant), INDEXES.apiKeys),
    tenantLimits: filled(limits),
  };
  const refuse = (): Promise<never> => Promise.reject(new Error('There is no cluster.'));
  const client = new Proxy((options.client ?? {}) as KubeClient, {
    get: (target, name) => Reflect.get(target, name) ?? refuse,
  });
  const ceilings = ceilingsReader(stores.tenantLimits);
  const registry = new Registry();
  const log = pino({ level: 'silent' });
  const sessionKey = (): Promise<Buffer> => Promise.resolve(Buffer.alloc(32, 1));
  const server = await startApi({
    client,
    stores,
    offers: new Inventory({ ...stores, pools: filled([]), storageClasses: filled([]) }, clock),
    models: Router(),
    authenticator: new Authenticator({ apiKeys: stores.apiKeys, clock }),
    dashboard: dashboardRouter({ client, stores, clock, log, sessionKey }),
    ports: { hostOf: () => undefined, close: () => undefined } as unknown as ApiDeps['ports'],
    calls: new CallLimits(memoryCounter(), ceilings),
    ceilings,
    sessionKey,
    namespace: 'berth-system',
    defaultImage: 'debian:12',
    claimOnPod: false,
    trustProxy,
    clock,
    log,
    registry,
    ...(maxConnections !== undefined && { maxConnections }),
    address: { host: '127.0.0.1', port: 0 },
  });
  const clients: Client[] = [];
  return {
    address: server.address,
    send(...bytes) {
      const sender = new Client(server.address.port);
      clients.push(sender);
      for (const one of bytes) sender.socket.write(one);
      return sender;
    },
    async metric(name) {
      const metric = await registry.getSingleMetric(name)?.get();
      return metric?.values[0]?.value ?? 0;
    },
    async close() {
      for (const { socket } of clients) socket.destroy();
      await server.close();
    },
  };
}

/** The head of a request with a body of so many bytes. */
export function post(path: string, length: number | 'chunked', headers: Record<string, string> = {}): string {
  const framing = length === 'chunked' ? 'transfer-encoding: chunked' : `content-length: ${length}`;
  const more = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${framing}\r\n${more.join('')}\r\n`;
}
