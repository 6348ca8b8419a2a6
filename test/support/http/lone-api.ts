import { connect, type Socket } from 'node:net';
import { Router } from 'express';
import { type Logger, pino } from 'pino';
import { Registry } from 'prom-client';
import { AccessWatch } from '../../../src/access/access-watch.ts';
import { Authenticator } from '../../../src/access/authenticator.ts';
import { ceilingsReader } from '../../../src/access/ceilings.ts';
import { INDEXES } from '../../../src/caches/indexes.ts';
import type { Tenants } from '../../../src/access/tenants.ts';
import { personSigningKey, publicPart } from '../../../src/access/person-token.ts';
import { People } from '../../../src/http/interface/auth/people.ts';
import type { ApiDeps, ModelEndpoints } from '../../../src/http/server/context.ts';
import { CallLimits } from '../../../src/http/interface/request-limit.ts';
import { type ApiServer, startApi } from '../../../src/http/server/server.ts';
import { Inventory } from '../../../src/inventory/inventory.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { Cache } from '../../../src/kube/watch/cache.ts';
import type { IndexFunctions, ReadStore } from '../../../src/kube/watch/store.ts';
import type { KubeObject, Node, Pod } from '../../../src/kube/types.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { type ApiKey, hashToken } from '../../../src/resources/api-key.ts';
import type { GpuPool } from '../../../src/resources/gpu-pool.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import type { RegistryCredential } from '../../../src/resources/registry-credential.ts';
import type { SshKey } from '../../../src/resources/ssh-key.ts';
import type { Ceilings } from '../../../src/resources/tenants/ceilings.ts';
import { DEFAULT_CEILINGS } from '../../../src/resources/tenants/ceilings.ts';
import { TENANT_LIMIT_NAME, type TenantLimit } from '../../../src/resources/tenants/tenant-limit.ts';
import { memoryCounter } from '../../../src/runtime/counter.ts';
import { EndedSessions } from '../../../src/web/ended-sessions.ts';
import { dashboardRouter } from '../../../src/web/router.ts';
import { ALL_TENANTS } from '../access.ts';
import { gpuPool } from '../inventory-world.ts';
import { memorySecrets } from '../memory-secrets.ts';

export interface LoneApiOptions {
  /** Tenants; the token of each is its name. */
  tenants: readonly string[];
  /** What is other than the default ceilings of a tenant. */
  http?: Record<string, Partial<Ceilings['http']>>;
  instances?: readonly GpuInstance[] | ReadStore<GpuInstance>;
  pods?: readonly Pod[];
  nodes?: readonly Node[];
  sshKeys?: readonly SshKey[];
  pools?: readonly GpuPool[];
  /** Calls of the API server; without it every call fails. */
  client?: Partial<KubeClient>;
  /** Asks exporters; without it every question fails. */
  readMonitor?: ApiDeps['readMonitor'];
  clock?: Clock;
  /** By default every namespace is a tenant. */
  namespaces?: Tenants;
  /** In place of the keys of the tenants. */
  apiKeys?: ReadStore<ApiKey>;
  /** What is other than usual in the keys of tenants. */
  keys?: Record<string, Partial<ApiKey['spec']>>;
  /** By default they are off. */
  webhooks?: ApiDeps['webhooks'];
  /** By default none. */
  terminals?: ApiDeps['terminals'];
  /** By default none. */
  models?: (process: { registry: Registry; log: Logger; clock: Clock; access: AccessWatch }) => ModelEndpoints;
  log?: Logger;
  /** A host of a port of an instance, where 204 answers everything but /never, and says who sent it. */
  portHost?: string;
  maxConnections?: number;
  trustProxy?: ApiDeps['trustProxy'];
  /** Proxies have an address of their own. */
  hasIngress?: boolean;
  /** By default nothing is traced. */
  tracer?: ApiDeps['tracer'];
}

export interface LoneApi extends ApiServer {
  registry: Registry;
  /** The value of a metric without labels. */
  metric(name: string): Promise<number>;
  /** A connection that has sent these bytes. */
  send(...bytes: (string | Buffer)[]): Client;
  /** The same at the address of proxies. */
  sendProxied(...bytes: (string | Buffer)[]): Client;
}

function filled<T extends KubeObject>(objects: readonly T[], indexers?: IndexFunctions<T>): ReadStore<T> {
  const cache = new Cache<T>({ ...(indexers && { indexers }), onListenerError: () => undefined });
  cache.replace(objects, '1');
  return cache.store;
}

function storeOf(instances: readonly GpuInstance[] | ReadStore<GpuInstance>): ReadStore<GpuInstance> {
  return 'onChange' in instances ? instances : filled(instances, INDEXES.instances);
}

function keyOfTenant(namespace: string, changed: Partial<ApiKey['spec']> = {}): ApiKey {
  const spec = { hash: hashToken(namespace), prefix: '', displayName: '', revoked: false };
  const metadata = { name: 'key', namespace, uid: `uid-of-${namespace}`, creationTimestamp: '2026-01-01T00:00:00Z' };
  return {
    metadata,
    spec: { ...spec, scopes: ['compute:read', 'compute:write'], ...changed },
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

function fakePorts(portHost: string | undefined): ApiDeps['ports'] {
  const ports: Pick<ApiDeps['ports'], 'hostOf' | 'page' | 'close'> = {
    hostOf: ({ headers: { host } }) => (host !== undefined && host === portHost ? { port: 80, uid: 'uid' } : undefined),
    page: async ({ request, response, answer, sender }) =>
      answer(() => {
        if (request.url !== '/never') response.writeHead(204, { 'x-sender': sender.address }).end();
      }),
    close: () => undefined,
  };
  return ports as ApiDeps['ports'];
}

const NO_MODELS: ModelEndpoints = { router: Router(), calls: new Map(), endCalls: () => undefined };

/** The HTTP interface in this process, without a cluster. */
export async function startLoneApi(options: LoneApiOptions): Promise<LoneApi> {
  const { tenants, http = {}, clock = systemClock(), trustProxy = false, maxConnections } = options;
  const limits = Object.entries(http).map(([namespace, changed]): TenantLimit => {
    const spec = { ...DEFAULT_CEILINGS, http: { ...DEFAULT_CEILINGS.http, ...changed }, policies: ['gold'] };
    return { metadata: { namespace, name: TENANT_LIMIT_NAME }, spec };
  });
  const stores = {
    instances: storeOf(options.instances ?? []),
    pods: filled(options.pods ?? [], INDEXES.pods),
    nodes: filled(options.nodes ?? []),
    pools: filled(options.pools ?? [gpuPool('default')]),
    sshKeys: filled(options.sshKeys ?? [], INDEXES.sshKeys),
    templates: filled([], INDEXES.templates),
    namespaces: filled([]),
    registries: filled<RegistryCredential>([], INDEXES.registries),
    apiKeys:
      options.apiKeys ??
      filled(
        tenants.map((name) => keyOfTenant(name, options.keys?.[name])),
        INDEXES.apiKeys,
      ),
    tenantLimits: filled(limits),
  };
  const refuse = (): Promise<never> => Promise.reject(new Error('There is no cluster.'));
  const client = new Proxy((options.client ?? {}) as KubeClient, {
    get: (target, name) => Reflect.get(target, name) ?? refuse,
  });
  const tenancy = options.namespaces ?? ALL_TENANTS;
  const authenticator = new Authenticator({ apiKeys: stores.apiKeys, tenants: tenancy, clock });
  const access = new AccessWatch({ authenticator, apiKeys: stores.apiKeys, tenants: tenancy, clock });
  const ceilings = ceilingsReader(stores.tenantLimits);
  const registry = new Registry();
  const { log = pino({ level: 'silent' }) } = options;
  const sessionKey = (): Promise<Buffer> => Promise.resolve(Buffer.alloc(32, 1));
  const server = await startApi({
    client,
    stores,
    offers: new Inventory({ ...stores, storageClasses: filled([]) }, clock),
    models: options.models?.({ registry, log, clock, access }) ?? NO_MODELS,
    authenticator,
    access,
    tenants: tenancy,
    dashboard: dashboardRouter({
      client,
      stores,
      clock,
      log,
      sessionKey,
      ended: new EndedSessions({ client: memorySecrets(), clock, namespace: 'berth-system' }),
      webhooks: options.webhooks !== undefined,
      keyDays: { default: 0, max: 0 },
    }),
    people: new People({
      readKey: async () => publicPart(personSigningKey(await sessionKey())),
      vouch: () => Promise.reject(new Error('there is no dashboard')),
      clock,
    }),
    ports: fakePorts(options.portHost),
    webhooks: options.webhooks,
    terminals: options.terminals,
    tracer: options.tracer,
    readMonitor: options.readMonitor ?? refuse,
    calls: new CallLimits(memoryCounter(), ceilings),
    ceilings,
    sessionKey,
    namespace: 'berth-system',
    defaultImage: 'debian:12',
    trustProxy,
    clock,
    log,
    registry,
    ...(maxConnections !== undefined && { maxConnections }),
    address: { host: '127.0.0.1', port: 0 },
    ...(options.hasIngress && { ingress: { host: '127.0.0.1', port: 0 } }),
  });
  const clients: Client[] = [];
  const sendTo = (port: number, bytes: (string | Buffer)[]): Client => {
    const sender = new Client(port);
    clients.push(sender);
    for (const one of bytes) sender.socket.write(one);
    return sender;
  };
  return {
    address: server.address,
    ingress: server.ingress,
    registry,
    send: (...bytes) => sendTo(server.address.port, bytes),
    sendProxied: (...bytes) => sendTo(server.ingress?.port ?? 0, bytes),
    async metric(name) {
      const metric = await registry.getSingleMetric(name)?.get();
      return metric?.values[0]?.value ?? 0;
    },
    async close() {
      for (const { socket } of clients) socket.destroy();
      await server.close();
      access.close();
    },
  };
}

/** The head of a request with a body of so many bytes. */
export function post(path: string, length: number | 'chunked', headers: Record<string, string> = {}): string {
  const framing = length === 'chunked' ? 'transfer-encoding: chunked' : `content-length: ${length}`;
  const more = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${framing}\r\n${more.join('')}\r\n`;
}
