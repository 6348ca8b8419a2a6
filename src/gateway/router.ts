import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Request, type RequestHandler, type Response, Router } from 'express';
import { getPrincipal, type Principal } from '../access/principal.ts';
import { allowOf, notAllowed } from '../lib/allow.ts';
import { MODEL_ENDPOINTS, type ModelEndpoint, type OwnAnswer } from '../wire/model-endpoints.ts';
import type { ModelRouterDeps } from './deps.ts';
import { DialectError, errorBody } from './dialects/index.ts';
import { sendModel, sendModels } from './model-list.ts';
import { findModel, listModels } from './find-model.ts';
import { nextCallId } from './calls/call.ts';
import { countTokens } from './calls/count-tokens.ts';
import { type CallKind, handleCall, requestIdOf, requireScope } from './calls/handle-call.ts';
import { readStored, listInputItems } from './state/history.ts';
import type { StoredResponse } from './state/response-store.ts';

/** Serves one POST. Never rejects. Uses nothing of Express. */
type Serve = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

type Endpoint = (typeof MODEL_ENDPOINTS)[number];

/** What is called with POST, by its path relative to the API base. Authentication runs before; nothing reads the body. */
export function createModelCalls(deps: ModelRouterDeps): Map<string, Serve> {
  const calls = new Map<string, Serve>();
  for (const one of MODEL_ENDPOINTS) if ('call' in one) calls.set(one.path, serveCall(deps, one.call));
  return calls;
}

function serveCall(deps: ModelRouterDeps, call: Extract<Endpoint, { call: object }>['call']): Serve {
  if ('counts' in call) return (request, response) => countTokens(deps, call.counts, request, response);
  const kind: CallKind = 'plain' in call ? { dialect: 'chat', plain: call.plain } : call;
  return (request, response) => handleCall(deps, kind, request, response);
}

/** The model endpoints, relative to the API base. Authentication runs before; nothing before may read the body. */
export function createModelRouter(deps: ModelRouterDeps): Router {
  const router = Router();
  for (const [path, endpoints] of Map.groupBy(MODEL_ENDPOINTS, (one) => one.path)) {
    const at = path.replace(/\{(\w+)\.{3}\}/, '*$1').replaceAll(/\{(\w+)\}/g, ':$1');
    for (const one of endpoints)
      router[one.method](at, 'call' in one ? serveCall(deps, one.call) : ownAnswer(deps, one));
    router.all(at, wrongMethod(endpoints));
  }
  return router;
}

/** Gives an answer of the gateway's own. A DialectError becomes the answer; any other error goes to the app's error handler. */
function ownAnswer(deps: ModelRouterDeps, endpoint: ModelEndpoint & { id: OwnAnswer }): RequestHandler {
  return async (request, response) => {
    try {
      const principal = getPrincipal(request);
      requireScope(principal);
      // Names of models contain slashes (`org/name`), sent encoded or not.
      const id = [request.params.id ?? ''].flat().join('/');
      await OWN_ANSWERS[endpoint.id]({ deps, request, response, principal, id });
    } catch (error) {
      if (!(error instanceof DialectError)) throw error;
      sendError(endpoint.errors, response, error);
    }
  };
}

interface Asked {
  deps: ModelRouterDeps;
  request: Request;
  response: Response;
  principal: Principal;
  /** Of the model or the stored answer; empty for a list of models. */
  id: string;
}

const OWN_ANSWERS: Readonly<Record<OwnAnswer, (asked: Asked) => void | Promise<void>>> = {
  listModels({ deps, request, response, principal }) {
    sendModels(request, response, listModels(deps, principal));
  },
  readModel({ deps, request, response, principal, id }) {
    sendModel(request, response, findModel(deps, principal, id));
  },
  async readResponse(asked) {
    asked.response.json((await storedResponse(asked)).response);
  },
  async deleteResponse({ deps, response, principal, id }) {
    if (!(await deps.store.delete(principal, id))) throw noResponse(id);
    response.json({ id, object: 'response', deleted: true });
  },
  async listInputItems(asked) {
    asked.response.json(listInputItems(asked.id, await storedResponse(asked), asked.request.query));
  },
  async cancelResponse(asked) {
    await storedResponse(asked);
    throw notInBackground();
  },
};

async function storedResponse({ deps, principal, id }: Asked): Promise<StoredResponse> {
  const stored = await readStored(deps.store, principal, id);
  if (stored === undefined) throw noResponse(id);
  return stored;
}

function sendError(errors: ModelEndpoint['errors'] | undefined, response: Response, error: DialectError): void {
  const dialect = errors === 'anthropic' ? 'messages' : 'chat';
  const { body, headers } = errorBody(dialect, error, requestIdOf(response) ?? nextCallId());
  response.writeHead(error.status, headers).end(JSON.stringify(body));
}

/** @param endpoints all of one path */
function wrongMethod(endpoints: readonly ModelEndpoint[]): RequestHandler {
  const allow = allowOf(endpoints.map(({ method }) => method));
  return (request, response) => {
    response.setHeader('allow', allow);
    const message = notAllowed(request.method, allow);
    const error = new DialectError({ status: 405, message, code: 'method_not_allowed' });
    sendError(endpoints[0]?.errors, response, error);
  };
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
