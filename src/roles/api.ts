import { hostname } from 'node:os';
import { budgetReader, keyBudgetReader } from '../budgets/counted.ts';
import type { AccessWatch } from '../access/access-watch.ts';
import type { Authenticator } from '../access/authenticator.ts';
import { type CeilingsOf, ceilingsReader } from '../access/ceilings.ts';
import { foreignKeyReader, SESSION_SECRETS, sessionKeyReader } from '../access/session-key.ts';
import { DEVICE_CACHES } from '../caches/table.ts';
import { isTenant, onTenants } from '../caches/tenants.ts';
import { createModelGateway, type ModelGatewayDeps } from '../gateway/gateway.ts';
import type { Tenants } from '../access/tenants.ts';
import type { ValkeyStore } from '../gateway/state/valkey-store.ts';
import { People } from '../http/interface/auth/people.ts';
import { API_CACHES, type ApiDeps } from '../http/server/context.ts';
import { CallLimits } from '../http/interface/request-limit.ts';
import { startApi } from '../http/server/server.ts';
import { TerminalGateway } from '../http/features/terminal/pass-on.ts';
import { Inventory } from '../inventory/inventory.ts';
import { SECRETS } from '../kube/types.ts';
import { InstancePorts } from '../ports/instance-ports.ts';
import { createPortMetrics } from '../ports/metrics.ts';
import { PORT_USE } from '../ports/open-streams.ts';
import { monitorReader } from '../ports/read-monitor.ts';
import { type Counters, localCounters } from '../runtime/counter.ts';
import { DashboardProxy, NO_DASHBOARD } from '../web/pass-on.ts';
import { accessOf } from './access.ts';
import type { Role, RoleContext } from './role.ts';

/** Milliseconds: longer than most clients pause between calls. Before it begins the endpoints have changed. */
const LAST_ANSWERS_MS = 1_000;

/** The parts that several others of the role need. */
interface Shared {
  authenticator: Authenticator;
  access: AccessWatch;
  tenants: Tenants;
  counters: Counters;
  ceilings: CeilingsOf;
  calls: CallLimits;
  sessionKey: () => Promise<Buffer>;
}

// Loaded on demand, as is the other below: the client of Valkey takes 5 MiB, which most installations have no use for.
async function createCounters({ config, log, clock }: RoleContext['process']): Promise<Counters> {
  if (config.valkeyUrl === undefined) return localCounters();
  return (await import('../runtime/shared-counter.ts')).sharedCounters(config.valkeyUrl, log, clock);
}

/** Undefined without Valkey. */
async function createResponseStore({ config, log }: RoleContext['process']): Promise<ValkeyStore | undefined> {
  if (config.valkeyUrl === undefined) return undefined;
  const stores = await import('../gateway/state/valkey-store.ts');
  return new stores.ValkeyStore(config.valkeyUrl, log);
}

async function createShared(context: RoleContext): Promise<Shared> {
  const { process, caches, shutdown } = context;
  const { client, config } = process;
  const counters = await createCounters(process);
  shutdown.defer('counters', () => counters.close());
  const ceilings = ceilingsReader(caches.get('tenantLimits'));
  return {
    ...accessOf(context),
    counters,
    ceilings,
    calls: new CallLimits(counters.counter('requests'), ceilings),
    sessionKey: sessionKeyReader(client, { namespace: config.namespace, name: SESSION_SECRETS.ports }),
  };
}

function createInventory({ process, caches, shutdown }: RoleContext): Inventory {
  const supply = caches.pick(['instances', 'nodes', 'pods', 'pools', 'storageClasses']);
  const { toolsArchitectures: architectures } = process.config;
  const stores = { ...supply, devices: caches.pick(DEVICE_CACHES) };
  const inventory = new Inventory(stores, process.clock, { architectures });
  shutdown.defer('inventory', () => inventory.close());
  return inventory;
}

/** Without a namespace to scale in, the role needs no right to Leases. */
function scaleFromZero({ process, caches }: RoleContext): ModelGatewayDeps['scaleFromZero'] {
  const { client, config } = process;
  const { scaleNamespaces: namespaces } = config;
  if (namespaces.length === 0) return undefined;
  return { client, leases: caches.get('modelLeases'), namespaces, identity: hostname() };
}

async function createModels(context: RoleContext, { access, authenticator, counters, ceilings, sessionKey }: Shared) {
  const { process, caches, shutdown } = context;
  const { config, client, log, registry, clock, billingClock } = process;
  const { namespace } = config;
  const tenancy = caches.pick(['namespaces', 'instances', 'apiKeys']);
  const store = await createResponseStore(process);
  shutdown.defer('responses', () => store?.close());
  return createModelGateway({
    ...caches.pick(['services', 'slices', 'inferencePools', 'pods', 'namespaces']),
    modelServers: config.outsideModels ? caches.get('modelServers') : undefined,
    tenants: {
      has: (name) => isTenant(tenancy, name),
      onChange: (listener) => onTenants(tenancy, listener),
    },
    client,
    replica: hostname(),
    namespace,
    engineSecrets: {
      names: config.engineSecrets,
      read: (name, signal) => client.get(SECRETS, { namespace, name }, { signal }),
    },
    caller: (principal) => authenticator.current(principal),
    access,
    saltKey: sessionKey,
    ceilings,
    budgets: budgetReader(caches.get('tenantLimits'), billingClock),
    keyBudgets: keyBudgetReader(caches.get('apiKeys'), billingClock),
    counter: (prefix) => counters.counter(prefix),
    holdings: counters.holdings,
    store,
    scaleFromZero: scaleFromZero(context),
    stopping: shutdown.stopping,
    metricsNameTenants: config.metricsNameTenants,
    registry,
    log,
    clock,
    billingClock,
  });
}

function createPorts(
  context: RoleContext,
  { access, authenticator, calls, counters, sessionKey }: Shared,
  people: Beside['people'],
): InstancePorts {
  const { process, caches } = context;
  const apiKeys = caches.get('apiKeys');
  const tickets = counters.counter('tickets');
  return new InstancePorts({
    ...process,
    ...caches.pick(['instances', 'pods']),
    endpoint: process.connection,
    base: process.config.proxyUrl,
    sessionKey,
    countUse: async (id) => (await tickets.add(id, 1)).total,
    access,
    isAuthorized: (user) => authenticator.refusal(user, PORT_USE) === undefined,
    vouch: people?.vouch,
    countCall: async ({ keyId, namespace }) => {
      const limits = apiKeys.by('uid', keyId)[0]?.spec.limits;
      return (await calls.count({ keyId, namespace, ...(limits && { limits }) })).refused?.message;
    },
    activity: context.activity(),
    countConnection: createPortMetrics(process.registry),
  });
}

/** Where webhooks are off, the role needs no right to them. */
function createWebhooks({ process, caches }: RoleContext): ApiDeps['webhooks'] {
  const { client, config } = process;
  if (!config.webhooks) return undefined;
  const ref = { namespace: config.namespace, name: SESSION_SECRETS.webhooks };
  return { store: caches.get('webhooks'), key: foreignKeyReader(client, ref) };
}

/** What other roles have: what answers below /dashboard, who knows the people whom it vouches for, and the terminals. */
type Beside = Pick<ApiDeps, 'dashboard' | 'people' | 'terminals'>;

/** The roles that have these, when this one is told where they are. */
function passOn({ process, shutdown }: RoleContext): Beside {
  const { clock, config } = process;
  const terminals = config.terminalUrl && new TerminalGateway(config.terminalUrl);
  if (config.dashboardUrl === undefined) return { dashboard: NO_DASHBOARD, terminals };
  const proxy = new DashboardProxy(config.dashboardUrl, clock);
  shutdown.defer('dashboard connections', () => proxy.close());
  const people = new People({ readKey: () => proxy.signingKey(), vouch: proxy.vouch, clock });
  return { dashboard: proxy.handle, people, terminals };
}

/** Serves HTTP: the compute endpoints, the model gateway and the ports of instances. Passes the dashboard on. */
export const apiRole: Role = (context) => startApiRole(context, passOn(context));

/** The role with what other roles have. */
export async function startApiRole(context: RoleContext, beside: Beside): Promise<void> {
  const { process, caches, shutdown } = context;
  const { config, log } = process;
  // First, so that it is stopped last.
  const tracer = await context.tracer();
  const inventory = createInventory(context);
  const shared = await createShared(context);
  const models = await createModels(context, shared);
  const ports = createPorts(context, shared, beside.people);
  const stores = caches.pick(API_CACHES);
  const server = await startApi({
    webhooks: createWebhooks(context),
    ...process,
    ...shared,
    tracer,
    stores,
    offers: inventory,
    models,
    ports,
    ...beside,
    readMonitor: monitorReader(process.connection),
    namespace: config.namespace,
    defaultImage: config.defaultImage,
    trustProxy: config.trustProxy,
    address: config.http,
    ingress: config.ingress,
  });
  models.start();
  shutdown.defer('models', () => models.stop());
  shutdown.defer('api', () => server.close(LAST_ANSWERS_MS));
  log.info({ address: server.address }, 'HTTP interface listens');
}
