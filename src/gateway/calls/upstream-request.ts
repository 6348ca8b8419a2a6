import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Member } from '../balance/model.ts';
import { chooseUpstream, DialectError, quirksOf, ROUTES, translateRequest, type Dialect } from '../dialects/index.ts';
import type { EngineCredential } from '../discovery/engine-credential.ts';
import { plainRequest } from '../plain/plain-request.ts';
import { spliceBody } from '../splice-body.ts';
import type { Call } from './call.ts';

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
