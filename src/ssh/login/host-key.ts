import type { KubeClient } from '../../kube/client/client.ts';
import { AlreadyExistsError, NotFoundError } from '../../kube/errors.ts';
import { SECRETS, type ObjectRef, type Secret } from '../../kube/types.ts';
import { newEd25519Key, publicHalf } from './ed25519-key.ts';

const CURRENT = 'ssh_host_ed25519_key';
/** The next key before a rotation, and the previous key after it. Clients are told of both keys. */
const OTHER = 'ssh_host_ed25519_key_other';
const SECRET_NAME = 'berth-ssh-host-key';

/** The Secret has no usable host key. */
export class HostKeyError extends Error {
  override name = 'HostKeyError';
}

export interface HostKeys {
  /** Private key in OpenSSH's format, with which the gateway proves who it is. */
  current: string;
  /** Public keys as in known_hosts, the current one first. */
  publicKeys: readonly string[];
}

function publicOf(privateKey: string): string {
  const key = publicHalf(privateKey);
  if (key !== undefined) return key;
  throw new HostKeyError(
    `The Secret ${SECRET_NAME} does not hold an ed25519 key in OpenSSH format. Restore it; or delete it and restart the ssh and controller roles, and clients will see a new host key.`,
  );
}

function newKey(): string {
  return newEd25519Key('berth').private;
}

function decode(secret: Secret, key: string): string | undefined {
  const text = secret.data?.[key];
  return text === undefined ? undefined : Buffer.from(text, 'base64').toString();
}

function hostKeysOf(secret: Secret): HostKeys {
  const current = decode(secret, CURRENT);
  if (current === undefined) {
    throw new HostKeyError(
      `The Secret ${SECRET_NAME} has no ${CURRENT}. Restore it, or delete the Secret: a new key is made.`,
    );
  }
  const other = decode(secret, OTHER);
  return { current, publicKeys: [current, ...(other === undefined ? [] : [other])].map(publicOf) };
}

function secretRef(namespace: string): ObjectRef {
  return { namespace, name: SECRET_NAME };
}

/** The host key of all replicas, from its Secret, which the first replica creates. Throws {@link HostKeyError}. */
export async function loadHostKeys(client: KubeClient, namespace: string): Promise<HostKeys> {
  try {
    return hostKeysOf(await client.get(SECRETS, secretRef(namespace)));
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
  }
  try {
    const secret: Secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: SECRET_NAME, namespace },
      type: 'Opaque',
      data: { [CURRENT]: Buffer.from(newKey()).toString('base64') },
    };
    return hostKeysOf(await client.create(SECRETS, secret));
  } catch (error) {
    if (!(error instanceof AlreadyExistsError)) throw error;
    return hostKeysOf(await client.get(SECRETS, secretRef(namespace)));
  }
}

/**
 * One step of a rotation. `announce` adds the next key: clients learn it from the API record while the gateway still uses
 * the current one. `switch` makes it the current one and still announces the old one. `retire` forgets the old one. A
 * step takes effect when the gateway's replicas restart. Throws {@link HostKeyError}.
 */
export async function rotateHostKey(
  client: KubeClient,
  namespace: string,
  step: 'announce' | 'switch' | 'retire',
): Promise<HostKeys> {
  const secret = await client.get(SECRETS, secretRef(namespace));
  const current = decode(secret, CURRENT);
  const other = decode(secret, OTHER);
  if (step === 'announce' && other !== undefined)
    throw new HostKeyError('A second key is announced already. Run "switch", or "retire" to forget it.');
  if (step === 'switch' && other === undefined)
    throw new HostKeyError('No second key is announced to switch to. Run "announce" first.');
  const data = {
    [CURRENT]: Buffer.from((step === 'switch' ? other : current) ?? newKey()).toString('base64'),
    ...(step === 'retire'
      ? {}
      : { [OTHER]: Buffer.from((step === 'switch' ? current : undefined) ?? newKey()).toString('base64') }),
  };
  // `replace` carries the resourceVersion that was read: two rotations at once cannot both win.
  return hostKeysOf(await client.replace(SECRETS, { ...secret, data }));
}

/** Lines for known_hosts, one for each key: with them StrictHostKeyChecking=yes accepts the gateway. */
export function knownHostsLine(keys: HostKeys, host: string, port: number): string {
  const name = port === 22 ? host : `[${host}]:${port}`;
  return keys.publicKeys.map((key) => `${name} ${key}`).join('\n');
}
