import type { AuthContext, Connection } from 'ssh2';
import { matchKey, type AuthorizedKey } from './authorized-key.ts';
import type { InstanceDirectory, InstanceView } from '../directory.ts';
import { sendBanner } from '../ssh2/wire.ts';
import { parseUserName } from './user-name.ts';

/** Who logged in. */
export interface Authenticated {
  instance: InstanceView;
  key: AuthorizedKey;
}

export interface AuthenticationEvents {
  /** A key was offered, of which the answer tells something: also one that would open, and is not signed with. */
  tried(): void;
  done(authenticated: Authenticated): void;
}

// sshd allows 6; agents of people who rent machines hold more keys than that.
const MAX_ATTEMPTS = 20;
const METHODS: ['publickey'] = ['publickey'];

/**
 * Public-key authentication against the directory as it is at each step. Until a key of the tenant has signed, every
 * answer is the same refusal: an instance that exists and one that does not cannot be told apart.
 */
export function authenticate(client: Connection, directory: InstanceDirectory, events: AuthenticationEvents): void {
  let attempts = 0;
  const decide = (context: AuthContext): void => {
    if (context.method !== 'publickey') {
      context.reject(METHODS);
      return;
    }
    events.tried();
    attempts += 1;
    if (attempts > MAX_ATTEMPTS) {
      client.end();
      return;
    }
    const user = parseUserName(context.username);
    const instance = user === undefined ? undefined : directory.find(user);
    if (instance === undefined) {
      context.reject(METHODS);
      return;
    }
    const opens = (key: AuthorizedKey): boolean => directory.opens(key, instance);
    const key = matchKey(directory.tenantKeys(instance), context.key.data, opens);
    if (key === undefined) {
      context.reject(METHODS);
      return;
    }
    if (context.signature === undefined || context.blob === undefined) {
      context.accept();
      return;
    }
    if (!key.verify(context.blob, context.signature, context.hashAlgo)) {
      context.reject(METHODS);
      return;
    }
    if (!opens(key)) {
      // Refused rather than let in and told: the client goes on to its next key, which may be the right one.
      sendBanner(client, `berth: the key ${key.fingerprint} is not registered on instance ${instance.name}.`);
      context.reject(METHODS);
      return;
    }
    events.done({ instance, key });
    context.accept();
  };
  client.on('authentication', decide);
}
