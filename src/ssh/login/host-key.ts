import { createPrivateKey } from 'node:crypto';
import ssh2 from 'ssh2';
import type { KubeClient } from '../../kube/client/client.ts';
import { AlreadyExistsError, NotFoundError } from '../../kube/errors.ts';
import { SECRETS, type ObjectRef, type Secret } from '../../kube/types.ts';
import { newEd25519Key } from './ed25519-key.ts';

const CURRENT = 'ssh_host_ed25519_key';
/** The key that comes next (before a rotation) or was there before (after it): clients are told of both. */
const OTHER = 'ssh_host_ed25519_key_other';
const SECRET_NAME = 'berth-ssh-host-key';

/** The Secret has no usable host key. */
export class HostKeyError extends Error {
  override name = 'HostKeyError';
}

export interface HostKeys {
  /** Private key in OpenSSH's format, which the server proves. */
  current: string;
  /** Public keys as in known_hosts, the current one first. */
  publicKeys: readonly string[];
}

function publicOf(privateKey: string): string {
  const parsed = ssh2.utils.parseKey(privateKey);
  if (parsed instanceof Error || parsed.type !== 'ssh-ed25519') {
    throw new HostKeyError('The Secret of the SSH host key does not hold an ed25519 key in OpenSSH format.');
  }
  createPrivateKey(parsed.getPrivatePEM());
  return `ssh-ed25519 ${parsed.getPublicSSH().toString('base64')}`;
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
  if (current === undefined) throw new HostKeyError(`The Secret ${secret.metadata.name} has no ${CURRENT}.`);
  const other = decode(secret, OTHER);
  return { current, publicKeys: [current, ...(other === undefined ? [] : [other])].map(publicOf) };
}

function secretRef(namespace: string): ObjectRef {
  return { namespace, name: SECRET_NAME };
}

/**
 * The host key of all replicas, from the Secret `berth-ssh-host-key`. It is created when absent; when several replicas
 * try, the API server lets one win and the others read its key. Throws {@link HostKeyError}.
 */
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
 * One step of a rotation. `announce` adds the next key, which clients learn from the API record while the current one
 * still serves; `switch` makes it the current one and keeps the old one announced; `retire` forgets the old one. Each
 * step takes effect when the gateway's replicas restart.
 */
export async function rotateHostKey(
  client: KubeClient,
  namespace: string,
  step: 'announce' | 'switch' | 'retire',
): Promise<HostKeys> {
  const secret = await client.get(SECRETS, secretRef(namespace));
  const current = decode(secret, CURRENT);
  const other = decode(secret, OTHER);
  if (step === 'announce' && other !== undefined) throw new HostKeyError('A second key is announced already.');
  if (step === 'switch' && other === undefined) throw new HostKeyError('Announce the next key before switching to it.');
  const data = {
    [CURRENT]: Buffer.from((step === 'switch' ? other : current) ?? newKey()).toString('base64'),
    ...(step === 'retire'
      ? {}
      : { [OTHER]: Buffer.from((step === 'switch' ? current : undefined) ?? newKey()).toString('base64') }),
  };
  // `replace` carries the resourceVersion that was read: two rotations at once cannot both win.
  return hostKeysOf(await client.replace(SECRETS, { ...secret, data }));
}

/** Lines for known_hosts, one per key, with which StrictHostKeyChecking=yes accepts the gateway. */
export function knownHostsLine(keys: HostKeys, host: string, port: number): string {
  const name = port === 22 ? host : `[${host}]:${port}`;
  return keys.publicKeys.map((key) => `${name} ${key}`).join('\n');
}
