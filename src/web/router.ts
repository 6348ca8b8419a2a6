import { existsSync, readFileSync } from 'node:fs';
import { type RequestHandler, Router } from 'express';
import helmet from 'helmet';
import { dashboardBodies } from '../http/interface/bodies/body-shares.ts';
import { jsonBody } from '../http/interface/bodies/json-body.ts';
import { compress } from '../http/interface/send.ts';
import { staticFile } from '../http/interface/static-file.ts';
import { ApiError } from '../http/interface/errors/api-error.ts';
import { keysRouter } from './key-routes.ts';
import { oidcRouter } from './oidc-routes.ts';
import { poolsRouter } from './pool-routes.ts';
import { refuseForeignSites, sessionRouter, type WebContext, type WebDeps } from './session-routes.ts';
import { SignedInUsers } from './signed-in-users.ts';
import { tokenRouter } from './token-routes.ts';

const FOLDER = new URL('./public/', import.meta.url);

/** The page finds its view by the address: every view is the same file. */
const VIEWS = [
  '/',
  '/instances',
  '/instances/:id',
  '/rent',
  '/rent/:template',
  '/templates',
  '/models',
  '/usage',
  '/ssh-keys',
  '/registries',
  '/api-access',
  '/webhooks',
  '/fleet',
];

const PAGE = { file: 'index.html', type: 'text/html; charset=utf-8' } as const;

/** Each part of the page with its states, for those who change them: only in a local cluster. */
const SHEET = [
  { paths: ['/parts'], ...PAGE },
  { paths: ['/sheet.js'], file: 'built/sheet.js', type: 'text/javascript; charset=utf-8' },
] as const;

const FILES = [
  { paths: VIEWS, ...PAGE },
  { paths: ['/app.js'], file: 'built/app.js', type: 'text/javascript; charset=utf-8' },
  // The terminal, which the page loads when somebody opens one.
  { paths: ['/screen.js'], file: 'built/screen.js', type: 'text/javascript; charset=utf-8' },
  { paths: ['/xterm.css'], file: 'built/xterm.css', type: 'text/css; charset=utf-8' },
  { paths: ['/style.css'], file: 'style.css', type: 'text/css; charset=utf-8' },
  { paths: ['/shell.css'], file: 'shell.css', type: 'text/css; charset=utf-8' },
  { paths: ['/controls.css'], file: 'controls.css', type: 'text/css; charset=utf-8' },
  { paths: ['/views.css'], file: 'views.css', type: 'text/css; charset=utf-8' },
  { paths: ['/instance.css'], file: 'instance.css', type: 'text/css; charset=utf-8' },
  { paths: ['/pages.css'], file: 'pages.css', type: 'text/css; charset=utf-8' },
  { paths: ['/fleet.css'], file: 'fleet.css', type: 'text/css; charset=utf-8' },
  { paths: ['/icon.svg'], file: 'icon.svg', type: 'image/svg+xml' },
] as const;

function notBuilt(): never {
  throw new ApiError('not_found', 'The page is not built. Run `npm run build:page`, and start Berth again.');
}

function fileAt({ file, type }: { file: string; type: string }): RequestHandler {
  const path = new URL(file, FOLDER);
  // A checkout has no bundle before the first build, and the roles without a page need none.
  const read = existsSync(path) ? (): Buffer => readFileSync(path) : notBuilt;
  return staticFile(read, { 'content-type': type, 'cache-control': 'no-cache' });
}

/** The page, and the files that it loads. */
function pageRouter(isLocal: boolean): Router {
  const router = Router({ caseSensitive: true });
  for (const one of isLocal ? [...FILES, ...SHEET] : FILES) router.get([...one.paths], fileAt(one));
  return router;
}

/** A path that no view has. People get the page, which says so and leads back; programs get an error. */
function noPage(): RequestHandler {
  const page = fileAt(FILES[0]);
  return (request, response, next) => {
    const isCall = request.method !== 'GET' || request.path.startsWith('/api/');
    if (isCall || request.accepts(['json', 'html']) !== 'html')
      throw new ApiError('not_found', 'The dashboard has no page at this path. Open /dashboard.');
    response.status(404);
    return page(request, response, next);
  };
}

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
  router.use(POLICY);
  router.use(pageRouter(deps.codes !== undefined));
  router.use(compress());
  router.use('/api', (_request, response, next) => {
    // Answers have tokens and names of users.
    response.set('cache-control', 'no-store');
    next();
  });
  router.use('/oidc', oidcRouter(context));
  router.use('/api', refuseForeignSites);
  router.use('/api/session', sessionRouter(context));
  router.use('/api', tokenRouter(context), poolsRouter(context), keysRouter(context));
  router.use(noPage());
  return router;
}
