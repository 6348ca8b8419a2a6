import { isObject, type Json } from '../../lib/json.ts';
import { ROUTES } from '../dialects/index.ts';
import type { SmallResponse } from './small-http.ts';

/** What answered the probe is no model server, or none yet. */
export class ProbeError extends Error {
  override readonly name = 'ProbeError';
}

/** One exchange with the probed server. With a body it is a POST. Rejects when nothing answers. */
export type Ask = (path: string, body?: unknown) => Promise<SmallResponse>;

/** Whether the server has the route `path`, behind `prefix`, by default that of the server. */
export type RouteTest = (path: string, prefix?: string) => Promise<boolean>;

/** No server has it. How it is refused tells what a missing route looks like. */
const NO_ROUTE = '/v1/berth-route-test';
/** Says that the route is missing, or what it is for, whatever the status. LM Studio says it with a 200. */
const ABSENT =
  /unexpected endpoint|unknown (?:route|endpoint|path|url|method)|no such (?:route|endpoint)|(?:route|endpoint|url|path|method) (?:was )?not (?:found|allowed|supported|implemented)|does not support|not implemented/i;
const DIALECT_PATHS = new Set<string>(Object.values(ROUTES));
/** Complains of the empty object: llama.cpp did it with the status 500. */
const INVALID = /missing|required|must be provided|expected|invalid|validation|key '|not found in (?:json|object)/i;

/**
 * Makes a test for routes. It posts an empty object, which generates nothing: an engine with the route answers that it
 * is invalid, another 404 or 405. A server that answers anything with 200, or with an error of its own, is not fooled
 * into: a route counts when it is refused otherwise than one which no server has.
 */
export async function routeTest(ask: Ask, prefix: string): Promise<RouteTest> {
  const missing = await ask(`${prefix}${NO_ROUTE}`, {});
  const shape = shapeOf(missing, `${prefix}${NO_ROUTE}`);
  return async (path, own = prefix) => {
    const answer = await ask(`${own}${path}`, {});
    const { status } = answer;
    const text = errorText(answer);
    if (status === 405 || status === 501) return false;
    // A 404 about a model comes from the route itself: the empty object names no model.
    if (status === 404) return /model/i.test(text) && shapeOf(answer, `${own}${path}`) !== shape;
    if (status === 502 || status === 503 || status === 504) {
      if (!DIALECT_PATHS.has(path)) return false;
      throw new ProbeError(`The server answered POST ${own}${path} with ${status}.`);
    }
    if (shapeOf(answer, `${own}${path}`) === shape || ABSENT.test(text)) return false;
    if (status < 300) return missing.status >= 300;
    // Without a word, a 500 says nothing. Chat is what all engines have.
    return status < 500 || INVALID.test(text) || (path === ROUTES.chat && missing.status < 500);
  };
}

/** What of an answer is the same for every path. */
function shapeOf({ status, text }: SmallResponse, path: string): string {
  return `${status} ${text.replaceAll(path, '')}`;
}

/** The words of an error, in any shape. A text that is no JSON is one, too. */
function errorText({ text, json }: SmallResponse): string {
  if (!isObject(json)) return text.slice(0, 2000);
  const error: Json = isObject(json.error) ? json.error : json;
  return [error.code, error.message, json.error, json.detail, json.message]
    .map((value) => (typeof value === 'string' ? value : (JSON.stringify(value) ?? '')))
    .join(' ')
    .slice(0, 2000);
}
