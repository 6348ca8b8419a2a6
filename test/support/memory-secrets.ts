import type { KubeClient } from '../../src/kube/client/client.ts';
import { AlreadyExistsError, NotFoundError } from '../../src/kube/errors.ts';
import type { ObjectRef, Secret } from '../../src/kube/types.ts';

/** The Secrets of an API server, in memory. */
export function memorySecrets(): Pick<KubeClient, 'get' | 'create' | 'patch'> & { kept: Map<string, Secret> } {
  const kept = new Map<string, Secret>();
  const found = ({ name }: ObjectRef): Secret => {
    const secret = kept.get(name);
    if (secret === undefined)
      throw new NotFoundError({ status: 404, reason: 'NotFound', message: `secrets "${name}" not found` });
    return structuredClone(secret);
  };
  const store = (secret: Secret): Secret => {
    kept.set(secret.metadata.name, structuredClone(secret));
    return secret;
  };
  return {
    kept,
    get: async (_type, ref) => (await Promise.resolve(found(ref))) as never,
    create: async (_type, object) => {
      const secret = (await Promise.resolve(object)) as unknown as Secret;
      if (kept.has(secret.metadata.name))
        throw new AlreadyExistsError({ status: 409, reason: 'AlreadyExists', message: 'The Secret exists.' });
      return store(secret) as never;
    },
    // A merge patch of data alone, where null removes a field.
    patch: async (_type, ref, body) => {
      const { data } = (await Promise.resolve(body)) as { data: Record<string, string | null> };
      const secret = found(ref);
      const merged = Object.entries({ ...secret.data, ...data }).filter(([, value]) => value !== null);
      return store({ ...secret, data: Object.fromEntries(merged) as Record<string, string> }) as never;
    },
  };
}
