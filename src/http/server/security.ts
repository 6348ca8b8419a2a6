import type * as Http from 'node:http';
import { http } from '../../lib/lean-http.ts';
import { Socket } from 'node:net';
import helmet, { type HelmetOptions } from 'helmet';
import { ApiError, noEndpoint } from '../interface/errors/api-error.ts';
import { pathOf, type Step } from '../interface/step.ts';

/** Nothing in an answer may run, load or be framed. Pages set a policy of their own. */
const CONTENT_POLICY = {
  useDefaults: false,
  directives: { 'default-src': ["'none'"], 'frame-ancestors': ["'none'"] },
};

/** For pages: all that helmet has. */
export const security = helmet({ contentSecurityPolicy: CONTENT_POLICY });

/** Sets the headers that helmet would set. They are the same for every request, so helmet is asked once. */
function fixed(options: Readonly<HelmetOptions>): Step {
  const sample = new http.ServerResponse(new http.IncomingMessage(new Socket()));
  const headers: [name: string, value: string][] = [];
  sample.setHeader = (name, value) => {
    headers.push([name, String(value)]);
    return sample;
  };
  helmet(options)(sample.req, sample, () => undefined);
  return (_request, response, next) => {
    for (const [name, value] of headers) response.setHeader(name, value);
    next();
  };
}

/** For JSON that web pages of any origin read: without the headers that only concern pages and windows. */
export const apiSecurity = fixed({
  contentSecurityPolicy: CONTENT_POLICY,
  crossOriginResourcePolicy: { policy: 'cross-origin' },
  crossOriginOpenerPolicy: false,
  originAgentCluster: false,
  referrerPolicy: false,
  xDnsPrefetchControl: false,
  xDownloadOptions: false,
  xFrameOptions: false,
  xPermittedCrossDomainPolicies: false,
  xXssProtection: false,
});

const ALLOW_METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';
const ALLOW_HEADERS =
  'Authorization, Content-Type, Accept, Idempotency-Key, If-None-Match, Last-Event-ID, X-Request-Id, X-Api-Key, Api-Key, ' +
  'Anthropic-Version, Anthropic-Beta, OpenAI-Beta, OpenAI-Organization, OpenAI-Project, Traceparent, Tracestate';
const MAX_AGE_SECONDS = '7200';

/** A browser's question before a call to another origin (Fetch standard, CORS-preflight fetch). It has no key. */
function isPreflight({ method, headers }: Http.IncomingMessage): boolean {
  return method === 'OPTIONS' && headers.origin !== undefined && headers['access-control-request-method'] !== undefined;
}

/**
 * Lets pages of any origin call the API: the key is a header they must know, not a cookie. Answers preflights.
 * @param isKnown whether there is an endpoint at the path
 * @param strangers lets preflights, which have no key, have their answer
 */
export function cors(isKnown: (path: string) => boolean, strangers: Step): Step {
  return (request, response, next) => {
    response.setHeader('access-control-allow-origin', '*');
    if (!isPreflight(request)) {
      // All of them: no call has cookies, so the asterisk means what it says (Fetch standard, 3.3.3).
      response.setHeader('access-control-expose-headers', '*');
      return next();
    }
    if (!isKnown(pathOf(request))) throw noEndpoint();
    response.setHeader('access-control-allow-methods', ALLOW_METHODS);
    response.setHeader('access-control-allow-headers', ALLOW_HEADERS);
    response.setHeader('access-control-max-age', MAX_AGE_SECONDS);
    return strangers(request, response, () => void response.writeHead(204).end());
  };
}

/** Refuses requests of HTTP/1.1 without Host (RFC 9112 section 3.2). Node itself would answer before authentication. */
export const requireHost: Step = (request, _response, next) => {
  if (request.headers.host !== undefined || request.httpVersion === '1.0') return next();
  throw new ApiError('bad_request', 'The request has no Host header. Send one.');
};
