import { personSigningKey, publicPart } from '../access/person-token.ts';
import { SESSION_SECRETS, sessionKeyReader } from '../access/session-key.ts';
import { People } from '../http/interface/auth/people.ts';
import { ByteTurns } from '../lib/byte-turns.ts';
import { EndedSessions } from '../web/ended-sessions.ts';
import { OidcProvider } from '../web/oidc-provider.ts';
import { dashboardRouter } from '../web/router.ts';
import { SignInCodes } from '../web/sign-in-codes.ts';
import { SignedInUsers } from '../web/signed-in-users.ts';
import { Vouching } from '../web/vouching.ts';
import { TerminalGateway } from '../http/features/terminal/pass-on.ts';
import { startApiRole } from './api.ts';
import { startTerminals } from './terminals.ts';
import type { Role } from './role.ts';

/** Any free port, for this machine alone. */
const LOOPBACK = { host: '127.0.0.1', port: 0 };

/** The api role with the dashboard and the terminals in it, for one process that is all of Berth. */
export const apiWithDashboardRole: Role = async (context) => {
  const { process, caches } = context;
  const { client, clock, config } = process;
  const { keyDays, webhooks } = config;
  const stores = caches.pick(['apiKeys']);
  const sessionKey = sessionKeyReader(client, { namespace: config.namespace, name: SESSION_SECRETS.dashboard });
  const readKey = async () => publicPart(personSigningKey(await sessionKey()));
  const oidc = config.oidc && new OidcProvider(config.oidc, clock);
  const ended = new EndedSessions({ client, clock, namespace: config.namespace });
  const users = new SignedInUsers({ client, clock, oidc, ended });
  const vouching = new Vouching({ client, clock, sessionKey, users });
  const people = new People({ readKey, vouch: vouching.ask, clock });
  const terminals = new TerminalGateway(
    await startTerminals(context, LOOPBACK, { people, turns: new ByteTurns(clock) }),
  );
  const codes = new SignInCodes(clock);
  const dashboard = dashboardRouter({ ...process, stores, sessionKey, ended, oidc, webhooks, keyDays, codes });
  await startApiRole(context, { dashboard, people, terminals });
};
