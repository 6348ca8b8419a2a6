import { Router } from 'express';
import helmet from 'helmet';
import { ApiError } from '../http/interface/errors/api-error.ts';
import { compress } from '../http/interface/send.ts';
import { dashboardBodies } from '../http/interface/bodies/body-shares.ts';
import { jsonBody } from '../http/interface/bodies/json-body.ts';
import { keysRouter } from './key-routes.ts';
import { oidcRouter } from './oidc/routes.ts';
import { pageRouter } from './page-files.ts';
import { poolsRouter } from './pool-routes.ts';
import { refuseForeignSites, sessionRouter, type WebContext, type WebDeps } from './session-routes.ts';
import { SignedInUsers } from './signed-in-users.ts';
import { tokenRouter } from './token-routes.ts';

/** Nothing from other hosts, nothing inline, no text that becomes code. */
const POLICY = helmet({
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      'default-src': ["'none'"],
      'script-src': ["'self'"],
      'style-src': ["'self'"],
      'img-src': ["'self'"],
      'connect-src': ["'self'"],
      'form-action': ["'none'"],
      'base-uri': ["'none'"],
      'frame-ancestors': ["'none'"],
      'require-trusted-types-for': ["'script'"],
    },
  },
  referrerPolicy: { policy: 'no-referrer' },
});

/** The dashboard: its page, and under /api the endpoints that the page calls. */
export function dashboardRouter(deps: WebDeps): Router {
  const readJson = jsonBody(dashboardBodies(), deps.clock);
  const context: WebContext = { ...deps, users: new SignedInUsers(deps), readJson };
  const router = Router({ caseSensitive: true });
  router.use(compress(), POLICY);
  router.use(pageRouter());
  router.use('/api', (_request, response, next) => {
    // Answers have tokens and names of users.
    response.set('cache-control', 'no-store');
    next();
  });
  router.use('/oidc', oidcRouter(context));
  router.use('/api', refuseForeignSites);
  router.use('/api/session', sessionRouter(context));
  router.use('/api', tokenRouter(context), poolsRouter(context), keysRouter(context));
  router.use(() => {
    throw new ApiError('not_found', 'The dashboard has no page at this path. Open /dashboard.');
  });
  return router;
}
