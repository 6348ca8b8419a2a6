import { ceilingsReader } from '../access/ceilings.ts';
import { StoreDirectory } from '../ssh/directory.ts';
import { loadHostKeys } from '../ssh/login/host-key.ts';
import { SshServer } from '../ssh/server.ts';
import { createSshMetrics } from '../ssh/ssh-metrics.ts';
import { People } from '../http/interface/auth/people.ts';
import { DashboardProxy } from '../web/pass-on.ts';
import { ByteTurns } from '../lib/byte-turns.ts';
import { tenantsOf } from './access.ts';
import type { Role, RoleContext } from './role.ts';
import { startTerminals } from './terminals.ts';

/** Milliseconds. Sessions get most of the grace period to end by themselves. */
const DRAIN_MS = 20_000;

/** The dashboard vouches for people, and says with which key. */
function peopleOf({ process, shutdown }: RoleContext): People | undefined {
  const { clock, config } = process;
  if (config.dashboardUrl === undefined) return undefined;
  const dashboard = new DashboardProxy(config.dashboardUrl, clock);
  shutdown.defer('dashboard connections', () => dashboard.close());
  return new People({ readKey: () => dashboard.signingKey(), vouch: dashboard.vouch, clock });
}

export const sshRole: Role = async (context) => {
  const { process, caches, shutdown } = context;
  const { client, config, connection, log, clock, registry } = process;
  const { countLogin, watchConnections } = createSshMetrics(registry);
  const hostKeys = await loadHostKeys(client, config.namespace);
  const stores = { ...caches.pick(['instances', 'pods']), keys: caches.get('sshKeys') };
  const directory = new StoreDirectory({ ...stores, tenants: tenantsOf(context) });
  const turns = new ByteTurns(clock);
  const server = new SshServer({
    turns,
    endpoint: connection,
    directory,
    ceilingsOf: ceilingsReader(caches.get('tenantLimits')),
    audit: context.audit(),
    activity: context.activity(),
    countLogin,
    log,
    clock,
    hostKey: hostKeys.current,
    listen: { host: config.ssh.host, port: config.ssh.port },
  });
  watchConnections(() => server.connections);
  await server.listen();
  shutdown.defer('ssh', () => server.close(DRAIN_MS));
  log.info({ address: server.address }, 'SSH gateway listens');
  if (config.terminal !== undefined)
    await startTerminals(context, config.terminal, { people: peopleOf(context), turns });
};
