import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Json } from '../../lib/json.ts';
import type { Member } from '../balance/model.ts';
import {
  bodyToGoOn,
  chooseUpstream,
  DialectError,
  dialectsWithSalt,
  fieldsForOutside,
  forOutside,
  quirksOf,
  refuseImagesInText,
  ROUTES,
  translateRequest,
  trialsForOutside,
  withUsage,
  type Dialect,
  type GoingOn,
  type Quirks,
  type RequestOptions,
  type Told,
} from '../dialects/index.ts';
import { pathAt } from '../discovery/types.ts';
import type { Endpoint } from '../endpoint.ts';
import { ANTHROPIC_VERSION, type EngineCredential } from '../../resources/model-servers/engine-credential.ts';
import { writeForm, type Part } from './multipart.ts';
import { isTranscription, PLAIN_ROUTES } from '../plain-routes.ts';
import { spliceBody } from './splice-body.ts';
import type { Call, PlainCall } from './call.ts';

/** What is sent to one endpoint for a call. */
export interface UpstreamRequest {
  /** The dialect that the endpoint is spoken to. */
  dialect: Dialect;
  /** The endpoint answers in the dialect of the client. */
  native: boolean;
  path: string;
  /** The name under which the endpoint has the model. */
  model: string;
  body: Buffer;
  /** What the endpoint puts between texts of the system, where it has the client's body of messages and that is known. */
  joinsSystem?: string | undefined;
  /** By default JSON. */
  contentType?: string;
  /** What the endpoint asks for. */
  credential: EngineCredential | undefined;
  /** The endpoint is outside the cluster. */
  isOutside: boolean;
}

interface Begun {
  told: Told;
  joinsSystem: string | undefined;
}

type Sent = Omit<UpstreamRequest, 'model' | 'credential' | 'isOutside'>;

/** Long enough for a call that waits in the queue of its engine. */
const FIRST_BYTE_TIMEOUT_MS = 600_000;
const SILENCE_TIMEOUT_MS = 300_000;

/** From here on it matters that the body is let go before the answer is complete. */
const LARGE_BODY = 65_536;

/** @throws DialectError when the endpoint cannot serve the call */
export function upstreamRequest(call: Call, member: Member): UpstreamRequest {
  if (member.endpoint.probe?.engine === 'tgi')
    refuseImagesInText([call.history, ...call.references.values(), call.body]);
  const request = call.plain === undefined ? dialectRequest(call, member) : plainRequest(call, call.plain, member);
  const { credential, isOutside } = member.endpoint;
  return { ...request, model: member.upstreamModel, credential, isOutside };
}

/**
 * Undefined where the endpoint cannot go on with the answer as if it had begun it.
 *
 * @param begun what the client has, and what the first endpoint put between texts of the system
 */
export function requestToGoOn(
  call: Call,
  member: Member,
  begun: Begun,
): { request: UpstreamRequest; goingOn: GoingOn } | undefined {
  const { endpoint, upstreamModel } = member;
  const { probe, credential, isOutside } = endpoint;
  if (probe?.dialects.includes('chat') !== true || isOutside) return undefined;
  const quirks = quirksOf(probe.engine, probe.version, upstreamModel);
  const whole = unlessRefused(() => bodyFor('chat', call, member, { quirks, joinsSystem: begun.joinsSystem }));
  const goingOn = whole && bodyToGoOn(whole, begun.told, quirks);
  if (goingOn === undefined) return undefined;
  const body = Buffer.from(JSON.stringify(withSalt(goingOn.body, call, endpoint, quirks)));
  const path = pathAt(probe, ROUTES.chat);
  const to = { dialect: 'chat', native: false, path, model: upstreamModel } as const;
  return { request: { ...to, body, credential, isOutside }, goingOn };
}

/** The first engine took what this one does not. */
function unlessRefused(body: () => Json): Json | undefined {
  try {
    return body();
  } catch (error) {
    if (error instanceof DialectError) return undefined;
    throw error;
  }
}

function bodyFor(
  dialect: Dialect,
  call: Call,
  { upstreamModel, contextLength }: Member,
  engine: Pick<RequestOptions, 'quirks' | 'joinsSystem'>,
): Json {
  const { history, references, prices } = call;
  return translateRequest(call.dialect, dialect, call.body, {
    ...engine,
    model: upstreamModel,
    history,
    references,
    contextLength,
    isPriced: prices !== undefined,
  });
}

function dialectRequest(call: Call, member: Member): Sent {
  const { dialect: client, features, inspection } = call;
  const { endpoint, upstreamModel } = member;
  const { probe } = endpoint;
  const quirks = quirksOf(probe?.engine ?? 'unknown', probe?.version, upstreamModel);
  const known = probe?.dialects ?? ['chat'];
  const choice = chooseUpstream(client, endpoint.isShared ? dialectsWithSalt(known, quirks) : known, quirks, features);
  if (choice === undefined) {
    throw new DialectError({ status: 503, message: `No server of '${inspection.model}' speaks a known dialect.` });
  }
  const { dialect, native } = choice;
  const path = pathAt(probe ?? { prefix: '' }, ROUTES[dialect]);
  const translated = bodyFor(dialect, call, member, { quirks });
  const salted = dialect === 'messages' ? translated : withSalt(translated, call, endpoint, quirks);
  const body = endpoint.isOutside ? forOutside(salted, dialect) : salted;
  return {
    dialect,
    native,
    joinsSystem: native ? quirks.joinsSystem : undefined,
    path,
    body: native ? spliceBody(call.bytes, call.body, body) : Buffer.from(JSON.stringify(body)),
  };
}

/**
 * The request for a call outside of the dialects: JSON in the client's own bytes, but for the name of an alias, and the
 * question for the usage of a stream. A form is written anew, because servers read forms in many ways.
 */
function plainRequest(call: Call, { route, form }: PlainCall, { endpoint, upstreamModel }: Member): Sent {
  const { body, bytes, inspection } = call;
  const { probe } = endpoint;
  const path = pathAt(probe ?? { prefix: '' }, probe?.plainPaths[route] ?? PLAIN_ROUTES[route].upstream[0]);
  // The answers are read as those of chat, which has usage under the same names.
  const request = { dialect: 'chat', native: true, path } as const;
  if (form !== undefined) {
    const fields = endpoint.isOutside ? fieldsForOutside(form, route) : form;
    return { ...request, ...writeForm(adjustedForm(fields, upstreamModel, inspection.stream)) };
  }
  const quirks = quirksOf(probe?.engine ?? 'unknown', probe?.version, upstreamModel);
  const salted = withSalt(adjusted(body, upstreamModel, inspection.stream), call, endpoint, quirks);
  const sent = endpoint.isOutside ? forOutside(salted, route) : salted;
  return { ...request, body: spliceBody(bytes, body, sent) };
}

/** Tells a server that tenants share whose prompt it caches. The salt of a client is in that of the call. */
function withSalt(body: Json, { cacheSalt }: Call, { isShared }: Endpoint, { saltsCache }: Quirks): Json {
  return isShared && saltsCache ? { ...body, cache_salt: cacheSalt } : body;
}

function adjusted(body: Json, model: string, isStream: boolean): Json {
  if (!isStream) return { ...body, model };
  return { ...body, model, stream_options: withUsage(body.stream_options) };
}

function adjustedForm(form: readonly Part[], model: string, isStream: boolean): Part[] {
  const values = new Map([
    ['model', model],
    ['stream', String(isStream)],
  ]);
  return form.map((part) => {
    const value = values.get(part.name);
    return value === undefined ? part : { ...part, content: Buffer.from(value) };
  });
}

/** undici holds a Buffer until the answer is complete, and what it gets piece by piece until that is sent. */
function* bytesOf(request: UpstreamRequest): Generator<Buffer> {
  yield request.body;
}

function acceptOf({ inspection, plain }: Call): string {
  if (inspection.stream) return 'text/event-stream';
  return isTranscription(plain?.route) || plain?.route === 'speech' ? '*/*' : 'application/json';
}

function anthropicHeadersOf({ anthropicHeaders }: Call, { native, dialect, isOutside }: UpstreamRequest): string[] {
  if (dialect !== 'messages') return [];
  const { version, trials } = native ? anthropicHeaders : {};
  const told = trials !== undefined && isOutside ? trialsForOutside(trials) : trials;
  return [
    ...(version !== undefined ? [ANTHROPIC_VERSION[0], version] : isOutside ? ANTHROPIC_VERSION : []),
    ...(told === undefined ? [] : ['anthropic-beta', told]),
  ];
}

function credentialHeader({ credential, dialect, isOutside }: UpstreamRequest): string[] {
  if (credential === undefined) return [];
  return isOutside ? credential.headerOutside(dialect === 'messages') : ['authorization', credential.authorization];
}

/** @param to the endpoint, and the headers of the trace, each name with its value */
export function dispatchOptions(
  call: Call,
  to: { origin: string; trace: readonly string[] },
  request: UpstreamRequest,
): Dispatcher.DispatchOptions {
  const { path, body, isOutside, contentType = 'application/json' } = request;
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
      // Whoever is outside learns nothing of what traces this call.
      ...(isOutside ? [] : to.trace),
      ...anthropicHeadersOf(call, request),
      ...credentialHeader(request),
    ],
    // undici takes any iterable, and its types only streams, which cost more.
    body: body.length < LARGE_BODY ? body : (bytesOf(request) as unknown as Readable),
    headersTimeout: FIRST_BYTE_TIMEOUT_MS,
    bodyTimeout: SILENCE_TIMEOUT_MS,
  };
}
