import type { KubeClient } from '../../src/kube/client/client.ts';
import { NotFoundError } from '../../src/kube/errors.ts';

const USER = { username: 'system:serviceaccount:team:ann' };
const NOT_FOUND = { message: 'not found', status: 404, reason: 'NotFound' };

/** The API server of a person who may do everything, and who has nothing yet. */
export const allowedPerson = {
  raw: (_method: string, path: string) =>
    Promise.resolve({
      status: path.endsWith('/tokenreviews')
        ? { authenticated: true, user: USER, audiences: ['berth'] }
        : { allowed: true },
    }),
  list: () => Promise.resolve({ items: [] }),
  get: () => Promise.reject(new NotFoundError(NOT_FOUND)),
} as unknown as Partial<KubeClient>;
