import { SESSION_SECRETS, sessionKeyReader } from '../access/session-key.ts';
import { EndedSessions } from '../web/ended-sessions.ts';
import { OidcProvider } from '../web/oidc-provider.ts';
import { startDashboard } from '../web/server.ts';
import type { Role } from './role.ts';

/** Milliseconds: longer than most clients pause between calls. Before it begins the endpoints have changed. */
const LAST_ANSWERS_MS = 1_000;

/** Serves the dashboard alone. Its account is the one that makes API keys. */
export const dashboardRole: Role = async ({ process, caches, shutdown }) => {
  const { client, clock, config, log } = process;
  const server = await startDashboard({
    ...process,
    stores: caches.pick(['apiKeys']),
    sessionKey: sessionKeyReader(client, { namespace: config.namespace, name: SESSION_SECRETS.dashboard }),
    ended: new EndedSessions({ client, clock, namespace: config.namespace }),
    oidc: config.oidc && new OidcProvider(config.oidc, clock),
    webhooks: config.webhooks,
    keyDays: config.keyDays,
    trustProxy: config.trustProxy,
    address: config.http,
  });
  shutdown.defer('dashboard', () => server.close(LAST_ANSWERS_MS));
  log.info({ address: server.address }, 'Dashboard listens');
};
