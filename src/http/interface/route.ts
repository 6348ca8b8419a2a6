import { type Request, type RequestHandler, type Response, Router } from 'express';
import type { z } from 'zod';
import { getPrincipal, type Principal, type PrincipalScope } from '../../access/principal.ts';
import { allowOf, type Method, notAllowed } from '../../lib/allow.ts';
import { requireScope } from './auth/middleware.ts';
import { ApiError } from './errors/api-error.ts';
import type { ErrorCode } from './errors/catalogue.ts';
import { idempotencyKey } from './idempotency.ts';
import { compress } from './send.ts';
import { parseBody } from './validate.ts';

/** One pair of method and path, as the OpenAPI document describes it. */
export interface Operation {
  method: Method;
  /** Relative to the API base, with parameters as OpenAPI writes them: /instances/{instanceId}. */
  path: string;
  /** The operationId. */
  id: string;
  tag:
    | 'Offers'
    | 'Instances'
    | 'Templates'
    | 'SSH keys'
    | 'Registries'
    | 'Webhooks'
    | 'Limits'
    | 'Usage'
    | 'Models'
    | 'Fleet';
  scope: PrincipalScope;
  summary: string;
  description?: string;
  request?: RequestBody<z.ZodType>;
  /** The parameters of its query, as `parseQuery` takes them. */
  query?: z.ZodObject;
  success: { status: 200 | 201; schema: z.ZodType; description: string };
  /** What text/plain has, for an endpoint that also answers so. */
  plainText?: string;
  /** What application/openmetrics-text has, for an endpoint that also answers so. */
  openMetrics?: string;
  /** What text/csv has, for an endpoint that also answers so. */
  csv?: string;
  /** The types of its events, for an endpoint that also answers with an event stream. */
  events?: string;
  /** Takes an Idempotency-Key. */
  idempotent?: boolean;
  /** Operations that take the id of what was created, and the name of their parameter. */
  links?: Record<string, string>;
  /** Beside those that follow from the other fields, and those of every endpoint. */
  errors?: readonly ErrorCode[];
}

/** A body that works unchanged: a test sends each of them. */
export interface Example {
  summary: string;
  value: Record<string, unknown>;
}

interface RequestBody<S extends z.ZodType> {
  /** By default JSON. */
  media?: 'application/json' | 'multipart/form-data';
  schema: S;
  required: boolean;
  examples: Record<string, Example>;
}

/** An operation that this interface serves itself, with what it needs for it. */
export interface Route<C> extends Operation {
  /** Compresses the answers of the handler, not those of the checks before it. */
  compressed?: boolean;
  serve: (context: C) => RequestHandler;
}

/** The routes below one path; `compressed` is for all answers there, errors included. */
export interface Resource<C> {
  path: string;
  compressed?: boolean;
  routes: readonly Route<C>[];
}

/** An authenticated request whose key has the scope of the route. */
export interface Call {
  request: Request;
  response: Response;
  caller: Principal;
}

export interface CallWithBody<B> extends Call {
  body: B;
  /** The Idempotency-Key, on routes that take one. */
  key: string | undefined;
}

type Handler<C, A extends Call> = (context: C, call: A) => void | Promise<void>;
type Described = Omit<Route<never>, 'serve'>;

export function route<C>({ handle, ...described }: Described & { handle: Handler<C, Call> }): Route<C> {
  return {
    ...described,
    serve: (context) => (request, response) => handle(context, { request, response, caller: getPrincipal(request) }),
  };
}

export function routeWithBody<C, S extends z.ZodType>({
  handle,
  ...described
}: Described & { request: RequestBody<S>; handle: Handler<C, CallWithBody<z.infer<S>>> }): Route<C> {
  const schema = described.request.schema as z.ZodType<z.infer<S>>;
  return {
    ...described,
    serve: (context) => (request, response) => {
      const key = described.idempotent ? idempotencyKey(request.headers) : undefined;
      const body = parseBody(schema, request.body);
      return handle(context, { request, response, caller: getPrincipal(request), body, key });
    },
  };
}

/** Answers OPTIONS, and 405 for all else; mount it after the handlers of the methods that are allowed. */
export function methodNotAllowed(methods: readonly Method[]): RequestHandler {
  const allow = allowOf(methods);
  return (request, response) => {
    if (request.method === 'OPTIONS') {
      response.set('allow', allow).set('content-length', '0').status(200).end();
      return;
    }
    throw new ApiError('method_not_allowed', notAllowed(request.method, allow), { headers: { allow } });
  };
}

/** Mounts the routes of a resource. The scope is checked before the body is read. */
export function resourceRouter<C extends { readJson: RequestHandler }>(
  { path: base, routes }: Resource<C>,
  context: C,
): Router {
  const router = Router({ caseSensitive: true });
  for (const [path, atPath] of Map.groupBy(routes, (one) => one.path)) {
    const below = path.slice(base.length).replaceAll(/\{(\w+)\}/g, ':$1') || '/';
    for (const { method, scope, compressed, request, serve } of atPath) {
      const middleware = [...(compressed ? [compress()] : []), ...(request ? [context.readJson] : [])];
      router[method](below, requireScope(scope), ...middleware, serve(context));
    }
    router.all(below, methodNotAllowed(atPath.map(({ method }) => method)));
  }
  return router;
}
