import { ceilingsReader } from '../access/ceilings.ts';
import { isPersonToken } from '../access/person-token.ts';
import type { Address } from '../config/config.ts';
import type { ByteTurns } from '../lib/byte-turns.ts';
import type { People } from '../http/interface/auth/people.ts';
import { StoreDirectory } from '../ssh/directory.ts';
import { TerminalServer } from '../ssh/terminal/server.ts';
import { accessOf } from './access.ts';
import type { RoleContext } from './role.ts';

/** Milliseconds. Terminals get most of the grace period to end by themselves, as SSH sessions do. */
const DRAIN_MS = 20_000;
/** What a terminal needs. */
const USE = { scope: 'compute:write' } as const;

/**
 * Serves terminals at the address until the process stops. Resolves with where that is.
 * @param beside `turns`: in which tenants pass bytes in this process. `people` knows the people whom the dashboard vouches for; undefined: API keys alone open terminals
 */
export async function startTerminals(
  context: RoleContext,
  listen: Address,
  { people, turns }: { people: People | undefined; turns: ByteTurns },
): Promise<URL> {
  const { process, caches, shutdown } = context;
  const { connection, log, clock } = process;
  const { access, authenticator, tenants } = accessOf(context);
  const server = new TerminalServer({
    turns,
    endpoint: connection,
    directory: new StoreDirectory({ ...caches.pick(['instances', 'pods']), keys: caches.get('sshKeys'), tenants }),
    callers: {
      find: async (token) => (isPersonToken(token) ? await people?.find(token) : authenticator.authenticate(token)),
      refusal: (caller) => authenticator.refusal(caller, USE),
      open: (caller) => access.open(caller, USE),
    },
    ceilingsOf: ceilingsReader(caches.get('tenantLimits')),
    audit: context.audit(),
    activity: context.activity(),
    log,
    clock,
    listen,
  });
  await server.listen();
  // While SSH sessions drain, not after them: both have one grace period.
  let closed: Promise<void> | undefined;
  shutdown.stopping.addEventListener('abort', () => {
    closed = server.close(DRAIN_MS);
  });
  shutdown.defer('terminals', () => closed ?? server.close(DRAIN_MS));
  log.info({ address: server.address }, 'Terminals listen');
  return new URL(`http://${listen.host}:${server.address.port}`);
}
