import { type Request, Router } from 'express';
import { z } from 'zod';
import { ApiError } from '../http/interface/errors/api-error.ts';
import { parseBody } from '../http/interface/validate.ts';
import { ConflictError, NotFoundError } from '../kube/errors.ts';
import { quote } from '../lib/quote.ts';
import { GPU_POOLS, gpuPoolSpecSchema, specVersion } from '../resources/gpu-pool.ts';
import { mayAccess } from './reviews.ts';
import { limitPerson, requireSession, userOf, type WebContext } from './session-routes.ts';

const { currency, prices, sizes } = gpuPoolSpecSchema.shape;

/** What people change of a pool in the page. The rest of its spec decides where containers run, and stays with kubectl. */
const changeSchema = z.strictObject({
  /** Of the pool that the person saw: another change in between is not overwritten. */
  version: z.string().regex(/^[-0-9a-f]{36}\/\d{1,18}$/, 'the version of the pool as it was read'),
  currency: currency.unwrap(),
  sizes: sizes.unwrap(),
  prices: prices.unwrap(),
});

const nameSchema = z
  .string()
  .max(253)
  .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/, 'the name of a GPUPool');

/** What SubjectAccessReview takes for objects without a namespace. */
const NO_NAMESPACE = '';
const PATCH_POOLS = { resource: 'gpupools', namespace: NO_NAMESPACE, verb: 'patch' } as const;

/** Commands that let a user change pools, on any cluster. */
function roleCommands(username: string): string {
  return (
    `kubectl create clusterrole berth-prices --verb=patch --resource=gpupools.berth.dev; ` +
    `kubectl create clusterrolebinding berth-prices --clusterrole=berth-prices --user=${quote(username)}`
  );
}

/**
 * GET /pools/rights: whether the person may change pools. PATCH /pools/{name}: changes prices and sizes of one, where the
 * cluster's RBAC lets the person patch it.
 */
export function poolsRouter(context: WebContext): Router {
  const { client, log, readJson } = context;
  const router = Router({ caseSensitive: true });
  const person = [requireSession(context), limitPerson()];
  const mayPatch = (request: Request): Promise<boolean> => mayAccess(client, userOf(request), PATCH_POOLS);

  router.get('/pools/rights', ...person, async (request, response) => {
    response.json({ object: 'pool_rights', change: await mayPatch(request) });
  });

  router.patch('/pools/:name', ...person, readJson, async (request, response) => {
    const { username } = userOf(request);
    if (!(await mayPatch(request))) {
      throw new ApiError(
        'not_allowed',
        `${username} may not patch gpupools.berth.dev. An administrator of the cluster can allow it: ${roleCommands(username)}`,
      );
    }
    const { version, ...fields } = parseBody(changeSchema, request.body);
    const name = parseBody(nameSchema, request.params['name']);
    const [uid, generation] = version.split('/');
    const operations = [
      { op: 'test', path: '/metadata/uid', value: uid },
      { op: 'test', path: '/metadata/generation', value: Number(generation) },
      ...Object.entries(fields).map(([field, value]) => ({ op: 'add', path: `/spec/${field}`, value })),
    ];
    const pool = await client.patch(GPU_POOLS, { name }, operations, { type: 'json' }).catch((error: unknown) => {
      if (error instanceof NotFoundError) {
        throw new ApiError('not_found', `There is no GPUPool ${name}. Make one: kubectl create -f.`);
      }
      if (!(error instanceof ConflictError)) throw error;
      throw new ApiError(
        'pool_changed',
        `The pool ${name} has changed since it was read. Look at it, and change it again.`,
      );
    });
    log.info({ user: username, pool: name }, 'Changed the prices of a pool');
    response.json({ object: 'pool', name, version: specVersion(pool) });
  });
  return router;
}
