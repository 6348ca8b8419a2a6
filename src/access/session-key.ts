import { randomBytes } from 'node:crypto';
import type { KubeClient } from '../kube/client/client.ts';
import { AlreadyExistsError, NotFoundError } from '../kube/errors.ts';
import { SECRETS, type Secret } from '../kube/types.ts';

/**
 * Secrets in Berth's own namespace that all replicas of a role share. Deleting one ends its sessions at the next restart.
 * Each role has its own: who holds the dashboard's key can sign in there as anybody.
 */
export const SESSION_SECRETS = {
  dashboard: 'berth-dashboard-session',
  ports: 'berth-port-session',
  /** Made by the notifier. The secrets of all webhooks are derived from it. */
  webhooks: 'berth-webhook-key',
} as const;
const FIELD = 'key';
const KEY_BYTES = 32;

/** The Secret exists and holds no session key. */
export class SessionKeyError extends Error {
  override name = 'SessionKeyError';
}

function keyOf(secret: Secret): Buffer {
  const key = Buffer.from(secret.data?.[FIELD] ?? '', 'base64');
  if (key.length === KEY_BYTES) return key;
  throw new SessionKeyError(
    `Secret ${secret.metadata.name} has no "${FIELD}" of ${KEY_BYTES} bytes. Delete it; Berth creates a new one.`,
  );
}

interface SecretRef {
  namespace: string;
  name: (typeof SESSION_SECRETS)[keyof typeof SESSION_SECRETS];
}

/** Reads the key that seals sessions, or creates it. The first replica to write it decides for all. */
async function loadSessionKey(client: KubeClient, ref: SecretRef): Promise<Buffer> {
  try {
    return keyOf(await client.get(SECRETS, ref));
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
  }
  const data = { [FIELD]: randomBytes(KEY_BYTES).toString('base64') };
  try {
    return keyOf(await client.create(SECRETS, { metadata: ref, type: 'Opaque', data }));
  } catch (error) {
    if (!(error instanceof AlreadyExistsError)) throw error;
    return keyOf(await client.get(SECRETS, ref));
  }
}

/** As {@link sessionKeyReader}, of a key that another role creates: rejects with NotFoundError before that. */
export function foreignKeyReader(client: KubeClient, ref: SecretRef): () => Promise<Buffer> {
  return keptReader(async () => keyOf(await client.get(SECRETS, ref)));
}

/** Reads the key at its first use and keeps it. After a failure the next use reads it again. */
export function sessionKeyReader(client: KubeClient, ref: SecretRef): () => Promise<Buffer> {
  return keptReader(() => loadSessionKey(client, ref));
}

function keptReader(load: () => Promise<Buffer>): () => Promise<Buffer> {
  let key: Promise<Buffer> | undefined;
  return () => {
    key ??= load().catch((error: unknown) => {
      key = undefined;
      throw error;
    });
    return key;
  };
}
