import { Router } from 'express';
import { authenticate } from '../auth/middleware.ts';
import type { ApiContext } from '../context.ts';
import { ApiError } from '../errors/api-error.ts';
import { cors } from '../middleware/cors.ts';
import { instancesRouter } from './instances.ts';
import { offersRouter } from './offers.ts';
import { sshKeysRouter } from './ssh-keys.ts';

/** Everything under the API base, all of it behind a key but CORS preflights. */
export function apiRouter(context: ApiContext): Router {
  const router = Router({ caseSensitive: true });
  router.use(cors, authenticate(context.authenticator, context.lastUsed));
  router.use('/offers', offersRouter(context));
  router.use('/instances', instancesRouter(context));
  router.use('/ssh-keys', sshKeysRouter(context));
  router.use(context.models);
  router.use(() => {
    throw new ApiError('not_found', 'No endpoint has this path. See /docs for those there are.');
  });
  return router;
}
