import pino from 'pino';
import type { Client, ConnectConfig } from 'ssh2';
import { parseAuthorizedKey } from '../../src/ssh/login/authorized-key.ts';
import { systemClock } from '../../src/lib/clock.ts';
import type { InstanceView } from '../../src/ssh/directory.ts';
import { newEd25519Key } from '../../src/ssh/login/ed25519-key.ts';
import { DEFAULT_CEILINGS } from '../../src/resources/tenants/ceilings.ts';
import { SshServer, type SshServerDeps } from '../../src/ssh/server.ts';
import { ssh2 } from '../../src/ssh/ssh2/load.ts';

export interface LoneGateway {
  server: SshServer;
  /** Private half of the one key that opens the one instance. */
  key: string;
}

const NO_LEAK = { burst: 1e6, perSecond: 1e6 };
export const NO_ADDRESS_LIMITS = {
  ...NO_LEAK,
  exchanges: NO_LEAK,
  allExchanges: NO_LEAK,
  logins: NO_LEAK,
  failures: 1e6,
  failureWindowSeconds: 1,
  pending: 1e6,
  pendingOfKnown: 1e6,
};

/**
 * A gateway without a cluster: one instance, `i-one`, and one key that opens it; no limits for addresses. The instance is
 * stopped unless it has a target.
 */
export async function loneGateway(
  overrides: Partial<SshServerDeps> = {},
  target?: InstanceView['target'],
): Promise<LoneGateway> {
  const user = newEd25519Key('');
  const key = parseAuthorizedKey(user.public, 'team/k', 1);
  if (key === undefined) throw new Error('no key');
  const view = { namespace: 'team', name: 'i-one', uid: 'u', target, condition: 'stopped' };
  const server = new SshServer({
    endpoint: { server: 'http://127.0.0.1:1', tls: {}, headers: async () => ({}) },
    directory: {
      find: ({ instance }) => (instance === 'i-one' ? view : undefined),
      tenantKeys: (_instance, fingerprint) => (fingerprint === key.fingerprint ? [key] : []),
      opens: () => true,
      closed: () => undefined,
      onChange: () => () => true,
    },
    hostKey: newEd25519Key('').private,
    listen: { host: '127.0.0.1', port: 0 },
    log: pino({ level: 'silent' }),
    audit: () => undefined,
    activity: { began: () => () => undefined },
    countLogin: () => undefined,
    ceilingsOf: () => DEFAULT_CEILINGS,
    clock: systemClock(),
    addressLimits: NO_ADDRESS_LIMITS,
    ...overrides,
  });
  await server.listen();
  return { server, key: user.private };
}

/** Logs in with a key; undefined when the connection ends before, with a banner or an error that `onBanner` gets. */
export async function loginTo(
  server: SshServer,
  privateKey: string,
  onBanner: (text: string) => void = () => undefined,
  options: ConnectConfig = {},
): Promise<Client | undefined> {
  const client = new ssh2.Client();
  client.on('error', ({ message }) => onBanner(message)).on('banner', onBanner);
  const done = new Promise<Client | undefined>((resolve) => {
    client.once('ready', () => resolve(client)).once('close', () => resolve(undefined));
  });
  client.connect({ host: '127.0.0.1', port: server.address.port, username: 'i-one', privateKey, ...options });
  return await done;
}
