import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type RequestHandler, Router } from 'express';
import helmet from 'helmet';

// The entry of the package loads the program for browsers too, 10 MiB of memory.
import absolutePath from 'swagger-ui-dist/absolute-path.js';
import { openApiDocument } from './openapi/document.ts';
import { GUIDES, guideText } from './openapi/guides.ts';
import { apiMarkdown, LLMS_TEXT } from './openapi/markdown.ts';
import { sendJson } from '../interface/send.ts';
import { staticFile } from '../interface/static-file.ts';
import { methodNotAllowed } from '../interface/route.ts';
import { siteFiles } from './site.ts';

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Berth API</title>
<link rel="alternate" type="text/markdown" href="/docs/api.md">
<link rel="alternate" type="text/plain" href="/llms.txt">
<link rel="stylesheet" href="/docs/swagger-ui.css">
<link rel="icon" href="/docs/favicon-32x32.png">
</head>
<body>
<noscript>This page needs JavaScript. The same as text: <a href="/docs/api.md">/docs/api.md</a>. For programs:
<a href="/llms.txt">/llms.txt</a> and <a href="/openapi.json">/openapi.json</a>.</noscript>
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

const FILES = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'favicon-32x32.png': 'image/png',
} as const;

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
  llms: '/llms.txt',
  dashboard: '/dashboard',
  cli: '/cli/berth.tgz',
});

/** Lists the entry points. Some clients ask their base URL before the first call (Claude Code: HEAD). */
export const serviceIndex: RequestHandler = (request, response) => {
  if (request.accepts(['json', 'html']) === 'html') response.redirect('/dashboard');
  else sendJson(response, INDEX);
};

const OPEN = { 'access-control-allow-origin': '*', 'cache-control': 'public, max-age=3600' };

function openText(type: string, text: string): RequestHandler {
  return staticFile(() => Buffer.from(text), { ...OPEN, 'content-type': `${type}; charset=utf-8` });
}

/** /openapi.json, /llms.txt, the API reference, the documents, and their addresses at / and at /api, the base URL of Anthropic's clients. */
export function docsRouter(): Router {
  const router = Router({ caseSensitive: true });
  const document = Buffer.from(JSON.stringify(openApiDocument()));
  const markdown = openText('text/markdown', apiMarkdown());
  const page = staticFile(() => Buffer.from(PAGE), { 'content-type': 'text/html; charset=utf-8' });
  const root = absolutePath();
  router.get(['/', '/api'], serviceIndex);
  router.get(
    '/openapi.json',
    staticFile(() => document, {
      'access-control-allow-origin': '*',
      'cache-control': 'private, no-cache',
      'content-type': 'application/json; charset=utf-8',
    }),
  );
  router.get('/llms.txt', openText('text/plain', LLMS_TEXT));
  router.get('/docs/api.md', markdown);
  router.get('/docs/api', POLICY, page);
  const site = siteFiles();
  const index = site.get('/docs/');
  router.get('/docs', POLICY, (request, response, next) => {
    response.vary('accept');
    // Programs that read pages ask for Markdown by name; browsers and */* get the page.
    const isMarkdown = request.accepts(['html', 'text/markdown']) === 'text/markdown';
    if (isMarkdown) return markdown(request, response, next);
    // The addresses of its files begin with the slash.
    if (index !== undefined && request.path === '/docs') return response.redirect('/docs/');
    return (index ?? page)(request, response, next);
  });
  router.get(
    '/docs/start.js',
    staticFile(() => Buffer.from(START), { 'content-type': 'text/javascript; charset=utf-8' }),
  );
  for (const { file } of GUIDES) router.get(`/docs/${file}`, openText('text/markdown', guideText(file)));
  for (const [file, type] of Object.entries(FILES)) {
    const headers = { 'cache-control': 'public, max-age=86400', 'content-type': type };
    router.get(
      `/docs/${file}`,
      staticFile(() => readFileSync(join(root, file)), headers),
    );
  }
  router.get('/docs/*path', POLICY, (request, response, next) => {
    const file = site.get(request.path);
    return file === undefined ? next() : file(request, response, next);
  });
  router.all(['/openapi.json', '/llms.txt', '/docs', '/docs/api', '/docs/api.md'], methodNotAllowed(['get']));
  return router;
}
