import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Request, type RequestHandler, type Response, Router } from 'express';
import { getPrincipal, mayUseModel, type Principal } from '../access/principal.ts';
import { allowOf, notAllowed } from '../lib/allow.ts';
import { etagOf, hasVersion } from '../lib/etag.ts';
import { ABSENT_ENDPOINTS, MODEL_ENDPOINTS, type ModelEndpoint, type OwnAnswer } from '../wire/model-endpoints.ts';
import type { ModelRouterDeps } from './deps.ts';
import { DialectError } from './dialects/index.ts';
import { LONG_LIST, type Versioned, versioned } from './long-lists.ts';
import { modelsBody, type Seen, sendModel, wantsAnthropic } from './model-list.ts';
import { findModel, listModels } from './find-model.ts';
import { nextCallId } from './calls/call.ts';
import { countTokens } from './calls/count-tokens.ts';
import { answerError } from './calls/answer-error.ts';
import { ClientWriter } from './calls/client-writer.ts';
import { type CallKind, handleCall, holdOf, requestIdOf } from './calls/handle-call.ts';
import { callerNow, requireScope } from './calls/let-in.ts';
import { holdBytes } from './calls/read-body.ts';
import { LimitError } from './limits/limiter.ts';
import { readStored, listInputItems } from './state/history.ts';
import type { Part, StoredPart } from './state/response-store.ts';

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
  for (const { path, errors, help } of ABSENT_ENDPOINTS) router.use(path, absent(errors, help));
  for (const [path, endpoints] of Map.groupBy(MODEL_ENDPOINTS, (one) => one.path)) {
    const at = path.replace(/\{(\w+)\.{3}\}/, '*$1').replaceAll(/\{(\w+)\}/g, ':$1');
    for (const one of endpoints)
      router[one.method](at, 'call' in one ? serveCall(deps, one.call) : ownAnswer(deps, one));
    router.all(at, wrongMethod(endpoints));
  }
  return router;
}

/** Gives an answer of the gateway's own. */
function ownAnswer(deps: ModelRouterDeps, endpoint: ModelEndpoint & { id: OwnAnswer }): RequestHandler {
  return async (request, response) => {
    try {
      const principal = getPrincipal(request);
      requireScope(principal);
      // Names of models contain slashes (`org/name`), sent encoded or not.
      const id = [request.params.id ?? ''].flat().join('/');
      await OWN_ANSWERS[endpoint.id]({ deps, request, response, principal, id });
    } catch (error) {
      answerError(deps, writerOf(endpoint.errors, response), error);
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
  async listModels(asked) {
    send(asked, await listBody(asked));
  },
  readModel({ deps, request, response, principal, id }) {
    sendModel(request, response, findModel(deps, principal, id), seenBy(deps, principal));
  },
  async readResponse(asked) {
    const { text } = await storedPart(asked, 'response');
    send(asked, { bytes: Buffer.from(text), etag: etagOfStored(asked) });
  },
  async deleteResponse({ deps, response, principal, id }) {
    if (!(await deps.store.delete(principal, id))) throw noResponse(id);
    response.json({ id, object: 'response', deleted: true });
  },
  async listInputItems(asked) {
    const stored = await storedPart(asked, 'items');
    const items = listInputItems(asked.id, stored, queryOf(asked.request));
    send(asked, { bytes: Buffer.from(JSON.stringify(items)), etag: etagOfStored(asked) });
  },
  async cancelResponse(asked) {
    await storedPart(asked, 'response');
    throw notInBackground();
  },
};

async function listBody({ deps, request, principal }: Asked): Promise<Versioned> {
  const isAnthropic = wantsAnthropic(request);
  const models = listModels(deps, principal);
  const write = (): Buffer => modelsBody(listModels(deps, principal), seenBy(deps, principal), isAnthropic);
  if (models.length <= LONG_LIST) return versioned(write());
  const variant = JSON.stringify([isAnthropic, principal.models]);
  const asked = { tenant: principal.namespace, variant, of: deps.catalog(), models: models.length };
  const body = await deps.lists.body(asked, write);
  callerNow(deps, principal);
  return body;
}

function seenBy({ catalog, queue }: ModelRouterDeps, principal: Principal): Seen {
  const { namespace } = principal;
  return {
    lineOf: (model) => queue.lineOf(model, namespace),
    mayCall: (name) => mayUseModel(principal, name) && catalog().find(namespace, name) !== undefined,
  };
}

/** Counts as a call, in its minute and while it is under way. */
async function storedPart({ deps, principal, id }: Asked, part: Part): Promise<StoredPart> {
  const { limiter, store } = deps;
  const entered = limiter.enter(principal);
  if (entered !== undefined) throw new LimitError(entered);
  try {
    const denied = await limiter.countRequest(principal);
    if (denied !== undefined) throw new LimitError(denied);
    const stored = await readStored(store, principal, id, part);
    if (stored === undefined) throw noResponse(id);
    return stored;
  } finally {
    limiter.leave(principal);
  }
}

/** The app in front parses no query. Of a parameter that comes twice the last counts. */
function queryOf({ url }: Request): Record<string, string> {
  const begin = url.indexOf('?');
  return Object.fromEntries(new URLSearchParams(begin === -1 ? '' : url.slice(begin)));
}

/** What is stored is never another one: its version is where it is. */
function etagOfStored({ request, principal }: Asked): string {
  return etagOf(`${principal.namespace} ${request.originalUrl}`);
}

/** Sends an answer, which counts as the body of a call until its client has read it, or 304 when the client has it. */
function send({ deps, request, response, principal }: Asked, { bytes, etag }: Versioned): void {
  if (response.closed) return;
  response.setHeader('cache-control', 'private, no-cache');
  response.setHeader('etag', etag);
  if (hasVersion(request.headers['if-none-match'], etag)) return void response.status(304).end();
  const hold = holdOf(deps, principal);
  holdBytes(hold, bytes.length);
  response.once('close', () => hold.release());
  response.writeHead(200, { 'content-type': 'application/json; charset=utf-8', 'content-length': bytes.length });
  response.end(bytes);
}

function writerOf(errors: ModelEndpoint['errors'] | undefined, response: Response): ClientWriter {
  const dialect = errors === 'anthropic' ? 'messages' : 'chat';
  return new ClientWriter(response, dialect, requestIdOf(response) ?? nextCallId());
}

/** @param endpoints all of one path */
function wrongMethod(endpoints: readonly ModelEndpoint[]): RequestHandler {
  const allow = allowOf(endpoints.map(({ method }) => method));
  return (request, response) => {
    response.setHeader('allow', allow);
    const message = notAllowed(request.method, allow);
    const error = new DialectError({ status: 405, message, code: 'method_not_allowed' });
    writerOf(endpoints[0]?.errors, response).sendError(error);
  };
}

function absent(errors: ModelEndpoint['errors'], message: string): RequestHandler {
  return (_request, response) => {
    writerOf(errors, response).sendError({ status: 404, message, code: 'unsupported_endpoint' });
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
