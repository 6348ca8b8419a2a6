import { Router, type RequestHandler } from 'express';
import { sendJson } from '../send.ts';

const INDEX = JSON.stringify({
  object: 'service',
  name: 'Berth',
  api: '/api/v1',
  docs: '/docs',
  openapi: '/openapi.json',
  dashboard: '/dashboard',
});

/** What is where. Clients ask their base URL before the first call, and people open it in a browser. */
export const serviceIndex: RequestHandler = (request, response) => {
  if (request.accepts(['json', 'html']) === 'html') response.redirect('/dashboard');
  else sendJson(response, INDEX);
};

/** GET / and /api, the base URL of clients of Anthropic. */
export function serviceIndexRouter(): Router {
  const router = Router({ caseSensitive: true });
  router.get(['/', '/api'], serviceIndex);
  return router;
}
