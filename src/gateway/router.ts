import type { IncomingMessage, ServerResponse } from 'node:http';
import { Router, type Request, type Response } from 'express';
import { getPrincipal } from '../access/principal.ts';
import { countTokens } from './count-tokens.ts';
import type { ModelRouterDeps } from './deps.ts';
import { DialectError, errorBody, type Dialect } from './dialects/index.ts';
import { sendModel, sendModels } from './model-list.ts';
import { findModel, listModels } from './find-model.ts';
import { nextCallId } from './calls/call.ts';
import { handleCall, requestIdOf, requireScope } from './calls/handle-call.ts';
import { PLAIN_NAMES, PLAIN_ROUTES } from './plain/routes.ts';
import { readStored } from './state/history.ts';
import { listInputItems } from './state/input-items.ts';
import type { StoredResponse } from './state/response-store.ts';

const POSTS = {
  '/chat/completions': 'chat',
  '/responses': 'responses',
  '/messages': 'messages',
} as const satisfies Record<string, Dialect>;

const COUNTS = { '/messages/count_tokens': 'messages', '/responses/input_tokens': 'responses' } as const;

/** Serves one POST. Never rejects. Uses nothing of Express. */
type Serve = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** What is called with POST, by its path relative to the API base. Authentication runs before; nothing reads the body. */
export function createModelCalls(deps: ModelRouterDeps): Map<string, Serve> {
  const calls = new Map<string, Serve>();
  for (const [path, dialect] of Object.entries(POSTS))
    calls.set(path, (request, response) => handleCall(deps, { dialect }, request, response));
  for (const plain of PLAIN_NAMES)
    calls.set(PLAIN_ROUTES[plain].path, (request, response) =>
      handleCall(deps, { dialect: 'chat', plain }, request, response),
    );
  for (const [path, dialect] of Object.entries(COUNTS))
    calls.set(path, (request, response) => countTokens(deps, dialect, request, response));
  return calls;
}

const DIALECTS: Readonly<Record<string, Dialect>> = { ...POSTS, ...COUNTS };

function dialectAt(path: string): Dialect {
  return DIALECTS[path] ?? 'chat';
}

/** The model endpoints, relative to the API base. Authentication runs before; nothing before may read the body. */
export function createModelRouter(deps: ModelRouterDeps, calls: ReadonlyMap<string, Serve>): Router {
  const router = Router();
  for (const [path, serve] of calls) {
    router.post(path, serve);
    router.all(path, (request, response) => wrongMethod(dialectAt(path), request, response, 'POST'));
  }

  router.get('/models', (request, response) =>
    answer('chat', response, () => {
      const principal = getPrincipal(request);
      requireScope(principal);
      sendModels(request, response, listModels(deps, principal));
    }),
  );
  router.get('/models/*id', (request, response) =>
    answer('chat', response, () => {
      const principal = getPrincipal(request);
      requireScope(principal);
      // Model names contain slashes (`org/name`), sent encoded or not.
      sendModel(request, response, findModel(deps, principal, request.params.id.join('/')));
    }),
  );
  router.all(['/models', '/models/*id'], (request, response) => wrongMethod('chat', request, response, 'GET, HEAD'));

  addStoredResponses(router, deps);
  return router;
}

/** What clients do with the answers that the gateway keeps. */
function addStoredResponses(router: Router, deps: ModelRouterDeps): void {
  const find = async (request: Request<{ id: string }>): Promise<StoredResponse> => {
    const principal = getPrincipal(request);
    requireScope(principal);
    const stored = await readStored(deps.store, principal, request.params.id);
    if (stored === undefined) throw noResponse(request.params.id);
    return stored;
  };
  router.get('/responses/:id', (request, response) =>
    answer('responses', response, async () => {
      response.json((await find(request)).response);
    }),
  );
  router.delete('/responses/:id', (request, response) =>
    answer('responses', response, async () => {
      const { id } = request.params;
      const principal = getPrincipal(request);
      requireScope(principal);
      if (!(await deps.store.delete(principal, id))) throw noResponse(id);
      response.json({ id, object: 'response', deleted: true });
    }),
  );
  router.all('/responses/:id', (request, response) => wrongMethod('responses', request, response, 'GET, HEAD, DELETE'));
  router.get('/responses/:id/input_items', (request, response) =>
    answer('responses', response, async () => {
      response.json(listInputItems(request.params.id, await find(request), request.query));
    }),
  );
  router.all('/responses/:id/input_items', (request, response) =>
    wrongMethod('responses', request, response, 'GET, HEAD'),
  );
  router.post('/responses/:id/cancel', (request, response) =>
    answer('responses', response, async () => {
      await find(request);
      throw notInBackground();
    }),
  );
  router.all('/responses/:id/cancel', (request, response) => wrongMethod('responses', request, response, 'POST'));
}

/** Runs a small handler. Its DialectError becomes the answer; any other error goes to the app's error handler. */
async function answer(dialect: Dialect, response: Response, handler: () => void | Promise<void>): Promise<void> {
  try {
    await handler();
  } catch (error) {
    if (!(error instanceof DialectError)) throw error;
    sendError(dialect, response, error);
  }
}

function sendError(dialect: Dialect, response: Response, error: DialectError): void {
  const { body, headers } = errorBody(dialect, error, requestIdOf(response) ?? nextCallId());
  response.writeHead(error.status, headers).end(JSON.stringify(body));
}

function wrongMethod(dialect: Dialect, request: Request, response: Response, allow: string): void {
  response.setHeader('allow', `${allow}, OPTIONS`);
  const message = `${request.method} is not allowed here, only ${allow}.`;
  sendError(dialect, response, new DialectError({ status: 405, message, code: 'method_not_allowed' }));
}

/** OpenAI's answer for a response that was not made in the background, and none is here. */
function notInBackground(): DialectError {
  return new DialectError({
    status: 400,
    message: 'Cannot cancel a synchronous response. Close the connection of a call to end it.',
    code: 'invalid_request',
  });
}

function noResponse(id: string): DialectError {
  return new DialectError({
    status: 404,
    message: `Response with id '${id.slice(0, 100)}' not found. It was not stored, was deleted, or has expired.`,
    code: 'response_not_found',
  });
}
