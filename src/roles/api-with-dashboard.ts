import { personSigningKey, publicPart } from '../access/person-token.ts';
import { SESSION_SECRETS, sessionKeyReader } from '../access/session-key.ts';
import { People } from '../http/auth/people.ts';
import { dashboardRouter } from '../web/router.ts';
import { startApiRole } from './api.ts';
import type { Role } from './role.ts';

/** The api role with the dashboard in it, for one process that is all of Berth. */
export const apiWithDashboardRole: Role = (context) => {
  const { process, caches } = context;
  const { client, clock, config } = process;
  const stores = caches.pick(['apiKeys']);
  const sessionKey = sessionKeyReader(client, { namespace: config.namespace, name: SESSION_SECRETS.dashboard });
  const readKey = async () => publicPart(personSigningKey(await sessionKey()));
  return startApiRole(context, {
    dashboard: dashboardRouter({ ...process, stores, sessionKey }),
    people: new People({ readKey, clock }),
  });
};
