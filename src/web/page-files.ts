import { existsSync, readFileSync } from 'node:fs';
import { Router } from 'express';
import { ApiError } from '../http/interface/errors/api-error.ts';

const FOLDER = new URL('./public/', import.meta.url);

/** The page finds its view by the address: every view is the same file. */
const VIEWS = [
  '/',
  '/instances/:id',
  '/rent',
  '/rent/:template',
  '/templates',
  '/models',
  '/usage',
  '/ssh-keys',
  '/registries',
  '/api-access',
  '/fleet',
];

const FILES = [
  { paths: VIEWS, file: 'index.html', type: 'text/html; charset=utf-8' },
  { paths: ['/app.js'], file: 'built/app.js', type: 'text/javascript; charset=utf-8' },
  // The terminal, which the page loads when somebody opens one.
  { paths: ['/screen.js'], file: 'built/screen.js', type: 'text/javascript; charset=utf-8' },
  { paths: ['/xterm.css'], file: 'built/xterm.css', type: 'text/css; charset=utf-8' },
  { paths: ['/style.css'], file: 'style.css', type: 'text/css; charset=utf-8' },
  { paths: ['/controls.css'], file: 'controls.css', type: 'text/css; charset=utf-8' },
  { paths: ['/views.css'], file: 'views.css', type: 'text/css; charset=utf-8' },
  { paths: ['/instance.css'], file: 'instance.css', type: 'text/css; charset=utf-8' },
  { paths: ['/pages.css'], file: 'pages.css', type: 'text/css; charset=utf-8' },
  { paths: ['/fleet.css'], file: 'fleet.css', type: 'text/css; charset=utf-8' },
  { paths: ['/icon.svg'], file: 'icon.svg', type: 'image/svg+xml' },
] as const;

/** The page, and the files that it loads. */
export function pageRouter(): Router {
  const router = Router({ caseSensitive: true });
  for (const { paths, file, type } of FILES) {
    const path = new URL(file, FOLDER);
    // A checkout has no bundle before the first build, and the roles without a page need none.
    const content = existsSync(path) ? readFileSync(path) : undefined;
    router.get([...paths], (_request, response) => {
      if (content === undefined) {
        throw new ApiError('not_found', 'The page is not built. Run `npm run build:page`, and start Berth again.');
      }
      response.set({ 'content-type': type, 'cache-control': 'no-cache' }).send(content);
    });
  }
  return router;
}
