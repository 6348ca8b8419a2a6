import type { InstanceDirectory, InstanceView } from '../directory.ts';
import { sendBanner } from '../ssh2/private.ts';
import type { AuthContext, Connection } from '../ssh2/protocol.ts';
import { matchKey, type AuthorizedKey } from './authorized-key.ts';
import { refusalOf } from './certificate.ts';
import { parseUserName } from './user-name.ts';

export interface Authenticated {
  instance: InstanceView;
  key: AuthorizedKey;
}

export interface AuthenticationEvents {
  /** The client's address, and milliseconds since 1970: certificates have limits in both. */
  address: string;
  now: () => number;
  /** The client offered a key. The answer tells it something, also when it does not sign with the key. */
  keyOffered(): void;
  /** Why the client may not log in although its key opens the instance; undefined when it may. */
  admit(authenticated: Authenticated): string | undefined;
}

// sshd allows 6; agents of people who rent machines hold more keys than that.
const MAX_ATTEMPTS = 20;
const METHODS: ['publickey'] = ['publickey'];

type PublicKeyContext = Extract<AuthContext, { method: 'publickey' }>;

/** Why the certificate of a key logs nobody in here; undefined when it does, and for a plain key. */
function refusalOfCertificate(
  { certificate, authority }: AuthorizedKey,
  { name, namespace }: InstanceView,
  { address, now }: AuthenticationEvents,
): string | undefined {
  if (certificate === undefined) return undefined;
  const principals = authority?.principals ?? [name, `${name}.${namespace}`];
  const why = refusalOf(certificate, { principals, address, now: now() });
  return why && `the certificate "${certificate.id}" is ${why}.`;
}

/** Who logs in by an offered key: undefined when it is refused, 'unsigned' when the client may go on to sign with it. */
function identify(
  context: PublicKeyContext,
  client: Connection,
  directory: InstanceDirectory,
  events: AuthenticationEvents,
): Authenticated | 'unsigned' | undefined {
  const user = parseUserName(context.username);
  const instance = user && directory.find(user);
  if (instance === undefined) return undefined;
  const key = matchKey((fingerprint) => directory.tenantKeys(instance, fingerprint), context.key.data);
  if (key === undefined) return undefined;
  if (context.signature === undefined || context.blob === undefined) return 'unsigned';
  if (!key.verify(context.blob, context.signature, context.hashAlgo)) return undefined;
  const why = directory.opens(key, instance)
    ? refusalOfCertificate(key, instance, events)
    : `the key ${key.fingerprint} is not registered on instance ${instance.name}.`;
  if (why === undefined) return { instance, key };
  // Refused, and not let in to be told: the client goes on to its next key, which may be the right one.
  sendBanner(client, `berth: ${why}`);
  return undefined;
}

/**
 * Public-key authentication against the directory as it is at each step. Until a key of the tenant has signed, every
 * answer is the same refusal: a client cannot tell whether an instance exists.
 */
export function authenticate(client: Connection, directory: InstanceDirectory, events: AuthenticationEvents): void {
  let attempts = 0;
  client.on('authentication', (context) => {
    if (context.method !== 'publickey') {
      context.reject(METHODS);
      return;
    }
    events.keyOffered();
    attempts += 1;
    if (attempts > MAX_ATTEMPTS) {
      client.end();
      return;
    }
    const who = identify(context, client, directory, events);
    if (who === undefined) {
      context.reject(METHODS);
      return;
    }
    const refusal = who === 'unsigned' ? undefined : events.admit(who);
    if (refusal === undefined) {
      context.accept();
      return;
    }
    sendBanner(client, `berth: ${refusal}`);
    client.end();
  });
}
