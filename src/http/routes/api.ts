import { Router } from 'express';
import { authenticate } from '../auth/middleware.ts';
import { acceptPeople } from '../auth/people.ts';
import type { ApiContext } from '../context.ts';
import { noEndpoint } from '../errors/api-error.ts';
import { compress } from '../middleware/compress.ts';
import { requireHost } from '../middleware/require-host.ts';
import { limitRequests } from '../middleware/request-limit.ts';
import { apiSecurity, cors } from '../middleware/security.ts';
import { serviceIndex } from './docs.ts';
import { isProxied, methodsAt, options } from './methods.ts';
import { proxyRouter } from './ports.ts';
import { resourceRouter } from './route.ts';
import { RESOURCES } from './table.ts';

function isKnown(path: string): boolean {
  return isProxied(path) || methodsAt(path) !== undefined;
}

/** Everything under the API base. Only CORS preflights need no key. */
export function apiRouter(context: ApiContext): Router {
  const router = Router({ caseSensitive: true });
  router.use(
    cors(isKnown),
    acceptPeople(context.people),
    authenticate(context.authenticator, context.lastUsed),
    context.keepAccepted,
    context.takeTurns,
  );
  const limit = limitRequests(context.calls);
  router.use(apiSecurity, requireHost, options);
  for (const resource of RESOURCES) {
    router.use(resource.path, limit, ...(resource.compressed ? [compress()] : []), resourceRouter(resource, context));
  }
  router.use('/instances', proxyRouter(context));
  router.use(context.models);
  router.get('/', limit, serviceIndex);
  router.use(limit, () => {
    throw noEndpoint();
  });
  return router;
}
