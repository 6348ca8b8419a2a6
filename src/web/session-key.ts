import { randomBytes } from 'node:crypto';
import type { KubeClient } from '../kube/client/client.ts';
import { AlreadyExistsError, NotFoundError } from '../kube/errors.ts';
import { SECRETS, type Secret } from '../kube/types.ts';

/** Secret in Berth's own namespace that all replicas share. Deleting it ends all sessions at the next restart. */
export const SESSION_SECRET = 'berth-dashboard-session';
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
    `Secret ${SESSION_SECRET} has no "${FIELD}" of ${KEY_BYTES} bytes. Delete it; Berth creates a new one.`,
  );
}

/** Reads the key that seals sessions, or creates it. The first replica to write it decides for all. */
export async function loadSessionKey(client: KubeClient, namespace: string): Promise<Buffer> {
  const ref = { namespace, name: SESSION_SECRET };
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

/** Reads the key at its first use and keeps it. After a failure the next use reads it again. */
export function sessionKeyReader(client: KubeClient, namespace: string): () => Promise<Buffer> {
  let key: Promise<Buffer> | undefined;
  return () => {
    key ??= loadSessionKey(client, namespace).catch((error: unknown) => {
      key = undefined;
      throw error;
    });
    return key;
  };
}
