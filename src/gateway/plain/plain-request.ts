import { isObject, type Json } from '../../lib/json.ts';
import type { Member } from '../balance/model.ts';
import type { Call } from '../calls/call.ts';

import { withField } from './multipart.ts';
import type { PlainCall } from './plain-call.ts';
import { PLAIN_ROUTES } from './routes.ts';

/**
 * The request for a call outside of the dialects: the client's own bytes, but for the name of an alias, and the question
 * for the usage of a stream.
 */
export function plainRequest(
  { body, bytes, inspection }: Call,
  { route, form }: PlainCall,
  { endpoint, upstreamModel }: Member,
) {
  const { prefix = '', plainPaths = {} } = endpoint.probe ?? {};
  const path = `${prefix}${plainPaths[route] ?? PLAIN_ROUTES[route].upstream[0]}`;
  const isAlias = inspection.model !== upstreamModel;
  // The answers are read as those of chat, which has usage under the same names.
  const request = { dialect: 'chat', native: true, path } as const;
  if (form !== undefined) {
    const own = isAlias ? withField(bytes, form.model, upstreamModel) : bytes;
    return { ...request, body: own, contentType: form.contentType };
  }
  if (!isAlias && !inspection.stream) return { ...request, body: bytes };
  return { ...request, body: Buffer.from(JSON.stringify(adjusted(body, upstreamModel, inspection.stream))) };
}

function adjusted(body: Json, model: string, isStream: boolean): Json {
  if (!isStream) return { ...body, model };
  const asked = isObject(body.stream_options) ? body.stream_options : {};
  return { ...body, model, stream_options: { ...asked, include_usage: true } };
}
