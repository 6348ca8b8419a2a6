import { Router } from 'express';
import { proxyRouter } from '../features/ports/routes.ts';
import { terminalRouter } from '../features/terminal/routes.ts';
import { noEndpoint } from '../interface/errors/api-error.ts';
import { limitRequests } from '../interface/request-limit.ts';
import { resourceRouter } from '../interface/route.ts';
import { compress } from '../interface/send.ts';
import type { ApiContext } from './context.ts';
import { serviceIndex } from './docs.ts';
import { options } from './methods.ts';
import type { ApiSteps } from './steps.ts';
import { RESOURCES } from './table.ts';

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
  router.use(limit, (request) => {
    throw noEndpoint(request);
  });
  return router;
}
