import type { ServerResponse } from 'node:http';
import type { ErrorFamily } from '../errors/families.ts';

/** The bodies of section 7 of the specification of the interface. /messages has that of GET /models. */
const MODEL_BODY = Buffer.from('{"error":{"message":"Invalid API key.","type":"invalid_request_error","code":401}}');
const COMPUTE_BODY = Buffer.from('{"error":{"message":"Invalid API key.","code":"invalid_api_key"}}');

/** Answers 401 with exactly the headers and body of the specification, past Express: `json()` would add a charset. */
export function sendUnauthorized(response: ServerResponse, family: ErrorFamily): void {
  const body = family === 'compute' ? COMPUTE_BODY : MODEL_BODY;
  response.writeHead(401, {
    'cache-control': 'no-cache, private',
    'content-type': 'application/json',
    'access-control-allow-origin': '*',
    'content-length': body.length,
  });
  response.end(response.req.method === 'HEAD' ? undefined : body);
}
