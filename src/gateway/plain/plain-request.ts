import type { Json } from '../../lib/json.ts';
import type { Member } from '../balance/model.ts';
import type { Call } from '../calls/call.ts';
import { withUsage } from '../dialects/index.ts';
import { spliceBody } from '../splice-body.ts';
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
  return { ...request, body: spliceBody(bytes, body, adjusted(body, upstreamModel, inspection.stream)) };
}

function adjusted(body: Json, model: string, isStream: boolean): Json {
  if (!isStream) return { ...body, model };
  return { ...body, model, stream_options: withUsage(body.stream_options) };
}
