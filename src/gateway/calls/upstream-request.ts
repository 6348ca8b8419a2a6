import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Json } from '../../lib/json.ts';
import type { Member } from '../balance/model.ts';
import {
  chooseUpstream,
  DialectError,
  quirksOf,
  ROUTES,
  translateRequest,
  withUsage,
  type Dialect,
} from '../dialects/index.ts';
import type { EngineCredential } from '../discovery/engine-credential.ts';
import { withField } from './multipart.ts';
import { PLAIN_ROUTES } from '../plain-routes.ts';
import { spliceBody } from './splice-body.ts';
import type { Call, PlainCall } from './call.ts';

/** What is sent to one endpoint for a call. */
export interface UpstreamRequest {
  /** The dialect that the endpoint is spoken to. */
  dialect: Dialect;
  /** The endpoint answers in the dialect of the client. */
  native: boolean;
  path: string;
  body: Buffer;
  /** By default JSON. */
  contentType?: string;
  /** What the endpoint asks for. */
  credential: EngineCredential | undefined;
}

/** Long enough for a call that waits in the queue of its engine. */
const FIRST_BYTE_TIMEOUT_MS = 600_000;
const SILENCE_TIMEOUT_MS = 300_000;

/** From here on it matters that the body is let go before the answer is complete. */
const LARGE_BODY = 65_536;

/** @throws DialectError when the endpoint cannot serve the call */
export function upstreamRequest(call: Call, member: Member): UpstreamRequest {
  const request = call.plain === undefined ? dialectRequest(call, member) : plainRequest(call, call.plain, member);
  return { ...request, credential: member.endpoint.credential };
}

function dialectRequest(
  call: Call,
  { endpoint, upstreamModel, contextLength }: Member,
): Omit<UpstreamRequest, 'credential'> {
  const { dialect: client, features, inspection, history, references } = call;
  const { probe } = endpoint;
  const quirks = quirksOf(probe?.engine ?? 'unknown', probe?.version, upstreamModel);
  const choice = chooseUpstream(client, probe?.dialects ?? ['chat'], quirks, features);
  if (choice === undefined) {
    throw new DialectError({ status: 503, message: `No server of '${inspection.model}' speaks a known dialect.` });
  }
  const { dialect, native } = choice;
  const path = `${probe?.prefix ?? ''}${ROUTES[dialect]}`;
  const body = translateRequest(client, dialect, call.body, {
    model: upstreamModel,
    quirks,
    history,
    references,
    contextLength,
  });
  return {
    dialect,
    native,
    path,
    body: native ? spliceBody(call.bytes, call.body, body) : Buffer.from(JSON.stringify(body)),
  };
}

/**
 * The request for a call outside of the dialects: the client's own bytes, but for the name of an alias, and the question
 * for the usage of a stream.
 */
function plainRequest(
  { body, bytes, inspection }: Call,
  { route, form }: PlainCall,
  { endpoint, upstreamModel }: Member,
): Omit<UpstreamRequest, 'credential'> {
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

/** undici holds a Buffer until the answer is complete, and what a stream gives until it is sent. */
async function* bytesOf(request: UpstreamRequest): AsyncGenerator<Buffer> {
  yield request.body;
}

function acceptOf({ inspection, plain }: Call): string {
  if (inspection.stream) return 'text/event-stream';
  return plain?.route === 'transcriptions' ? '*/*' : 'application/json';
}

/** @param to the endpoint, and the headers of the trace, each name with its value */
export function dispatchOptions(
  call: Call,
  to: { origin: string; trace: readonly string[] },
  request: UpstreamRequest,
): Dispatcher.DispatchOptions {
  const { path, body, credential, contentType = 'application/json' } = request;
  const accept = acceptOf(call);
  return {
    origin: to.origin,
    path,
    method: 'POST',
    headers: [
      'content-type',
      contentType,
      'accept',
      accept,
      'x-request-id',
      call.id,
      'content-length',
      String(body.length),
      ...to.trace,
      ...(credential === undefined ? [] : ['authorization', credential.authorization]),
    ],
    body: body.length < LARGE_BODY ? body : Readable.from(bytesOf(request)),
    headersTimeout: FIRST_BYTE_TIMEOUT_MS,
    bodyTimeout: SILENCE_TIMEOUT_MS,
  };
}
