import { hash, randomBytes } from 'node:crypto';
import { type Kubectl, withNext } from './kubectl.ts';

/** Milliseconds that the key lives when this process dies before it can delete it. */
const LIFE_MS = 60 * 60_000;

const NEXT =
  'kubectl berth makes an API key for the command: it needs create and delete of apikeys.berth.dev in the namespace, as berth-admin has them. -n NAMESPACE names another one.';

/** A key that lives as long as a command. */
export interface ShortKey {
  token: string;
  remove: () => Promise<void>;
}

/**
 * Makes an API key in the namespace of the kubeconfig, with the rights that its user has there. The cluster gets the
 * SHA-256; the token stays in this process.
 */
export async function makeShortKey(kubectl: Kubectl, now: number): Promise<ShortKey> {
  const token = `berth_${randomBytes(32).toString('base64url')}`;
  const manifest = {
    apiVersion: 'berth.dev/v1alpha1',
    kind: 'APIKey',
    metadata: { generateName: 'kubectl-berth-' },
    spec: {
      hash: hash('sha256', token),
      prefix: token.slice(0, 12),
      displayName: 'kubectl berth, for one command',
      expiresAt: new Date(now + LIFE_MS).toISOString(),
    },
  };
  const name = await kubectl
    .run(['create', '-f', '-', '-o', 'name'], JSON.stringify(manifest))
    .catch((error: unknown) => {
      throw withNext(error, NEXT);
    });
  return {
    token,
    remove: async () => {
      await kubectl.run(['delete', name.trim(), '--wait=false']);
    },
  };
}
