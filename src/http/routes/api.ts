import { Router } from 'express';
import { authenticate } from '../auth/middleware.ts';
import type { ApiContext } from '../context.ts';
import { ApiError } from '../errors/api-error.ts';
import { limitRequests } from '../middleware/request-limit.ts';
import { apiSecurity } from '../middleware/security.ts';
import { compress } from '../middleware/compress.ts';
import { cors } from '../middleware/cors.ts';
import { instancesRouter } from './instances.ts';
import { offersRouter } from './offers.ts';
import { portsRouter } from './ports.ts';
import { serviceIndex } from './service-index.ts';
import { sshKeysRouter } from './ssh-keys.ts';

/** Everything under the API base, all of it behind a key but CORS preflights. */
export function apiRouter(context: ApiContext): Router {
  const router = Router({ caseSensitive: true });
  router.use(cors, authenticate(context.authenticator, context.lastUsed));
  const limit = limitRequests(context.requestCounter);
  const zip = compress();
  router.use(apiSecurity);
  router.use('/offers', limit, zip, offersRouter(context));
  router.use('/instances', limit, instancesRouter(context), portsRouter(context));
  router.use('/ssh-keys', limit, zip, sshKeysRouter(context));
  router.use(context.models);
  router.get('/', limit, serviceIndex);
  router.use(limit, () => {
    throw new ApiError('not_found', 'No endpoint has this path. See /docs for those there are.');
  });
  return router;
}
