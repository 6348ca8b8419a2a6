import { type RequestHandler, Router } from 'express';
import helmet from 'helmet';
// The entry of the package loads the program for browsers too, 10 MiB of memory.
import absolutePath from 'swagger-ui-dist/absolute-path.js';
import { compress } from '../middleware/compress.ts';
import { openApiDocument } from '../openapi/document.ts';
import { sendJson } from '../send.ts';
import { methodNotAllowed } from './route.ts';

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Berth API</title>
<link rel="stylesheet" href="/docs/swagger-ui.css">
<link rel="icon" href="/docs/favicon-32x32.png">
</head>
<body>
<div id="swagger-ui"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`;

/** `validatorUrl: null`: the badge of the validator would send the document to another host. */
const START = `const dark = matchMedia('(prefers-color-scheme: dark)');
function follow() {
  document.documentElement.classList.toggle('dark-mode', dark.matches);
}
dark.addEventListener('change', follow);
follow();
SwaggerUIBundle({
  url: '/openapi.json', dom_id: '#swagger-ui', deepLinking: true, validatorUrl: null, persistAuthorization: false,
  defaultModelsExpandDepth: 0, displayRequestDuration: true,
});
`;

const FILES = ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png'] as const;

/** The renderer draws icons from data: URLs and sets styles on elements. It loads nothing from other hosts. */
const POLICY = helmet.contentSecurityPolicy({
  useDefaults: false,
  directives: {
    'default-src': ["'none'"],
    'script-src': ["'self'"],
    'style-src': ["'self'", "'unsafe-inline'"],
    'img-src': ["'self'", 'data:'],
    'connect-src': ["'self'"],
    'base-uri': ["'none'"],
    'form-action': ["'none'"],
    'frame-ancestors': ["'none'"],
  },
});

const INDEX = JSON.stringify({
  object: 'service',
  name: 'Berth',
  api: '/api/v1',
  docs: '/docs',
  openapi: '/openapi.json',
  dashboard: '/dashboard',
});

/** Lists the entry points. Some clients ask their base URL before the first call (Claude Code: HEAD). */
export const serviceIndex: RequestHandler = (request, response) => {
  if (request.accepts(['json', 'html']) === 'html') response.redirect('/dashboard');
  else sendJson(response, INDEX);
};

/** /openapi.json and /docs, and their addresses at / and at /api, the base URL of Anthropic's clients. */
export function docsRouter(): Router {
  const router = Router({ caseSensitive: true });
  const document = JSON.stringify(openApiDocument());
  const root = absolutePath();
  router.get(['/', '/api'], serviceIndex);
  router.get('/openapi.json', compress(), (_request, response) => {
    response.set('access-control-allow-origin', '*');
    sendJson(response, document);
  });
  router.get('/docs', compress(), POLICY, (_request, response) => {
    response.type('html').send(PAGE);
  });
  router.get('/docs/start.js', compress(), (_request, response) => {
    response.type('js').send(START);
  });
  for (const file of FILES) {
    router.get(`/docs/${file}`, compress(), (_request, response) => {
      response.sendFile(file, { root, maxAge: '1d' });
    });
  }
  router.all(['/openapi.json', '/docs'], methodNotAllowed(['get']));
  return router;
}
