import { Router } from 'express';
import type { ApiContext } from '../context.ts';
import { noEndpoint } from '../errors/api-error.ts';
import { compress } from '../middleware/compress.ts';
import { limitRequests } from '../middleware/request-limit.ts';
import type { ApiSteps } from '../steps.ts';
import { serviceIndex } from './docs.ts';
import { options } from './methods.ts';
import { proxyRouter } from './ports.ts';
import { resourceRouter } from './route.ts';
import { RESOURCES } from './table.ts';
import { terminalRouter } from '../terminal/route.ts';

/** Everything under the API base. Only CORS preflights need no key. */
export function apiRouter(context: ApiContext, steps: ApiSteps): Router {
  const router = Router({ caseSensitive: true });
  const limit = limitRequests(context.calls);
  router.use(...steps.entry, options);
  for (const resource of RESOURCES) {
    router.use(resource.path, limit, ...(resource.compressed ? [compress()] : []), resourceRouter(resource, context));
  }
  router.use('/instances', proxyRouter(context), terminalRouter(context));
  router.use(context.models.router);
  router.get('/', limit, serviceIndex);
  router.use(limit, () => {
    throw noEndpoint();
  });
  return router;
}
