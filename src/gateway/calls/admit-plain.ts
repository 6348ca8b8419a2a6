import { isObject, type Json } from '../../lib/json.ts';
import type { Model } from '../balance/model.ts';
import type { Incoming } from './admit.ts';
import type { Call, PlainCall } from './call.ts';
import type { ModelRouterDeps } from '../deps.ts';
import {
  checkBody,
  invalid,
  optionalString,
  PLAIN,
  promptTokens,
  refuseOfProxies,
  refuseOfServers,
  remoteMedia,
  type Inspection,
  type RemoteMedia,
  unsupported,
} from '../dialects/index.ts';
import { findModel, requireMedia, requireRoute } from '../find-model.ts';
import { readForm, textOf, type Part } from './multipart.ts';
import { parseBody } from './parse-body.ts';
import { PLAIN_ROUTES } from '../plain-routes.ts';
import type { PlainRoute } from '../../wire/model-endpoints.ts';

/** Whisper makes 1500 frames of the 30 s that it hears at once. Nobody knows the length of the audio before. */
const AUDIO_TOKENS = 1500;
/** What servers take for yes and no in a form (pydantic). */
const TRUE = /^(?:true|yes|on|1|t|y)$/i;
const FALSE = /^(?:false|no|off|0|f|n)$/i;

/** Reads what routing needs of a call outside of the dialects, and finds its model. Throws DialectError. */
export function admitPlain(deps: ModelRouterDeps, incoming: Incoming, route: PlainRoute): { call: Call; model: Model } {
  const { bytes, principal, contentType } = incoming;
  const read = PLAIN_ROUTES[route].isForm ? readFields(bytes, contentType, route) : readJson(bytes, route);
  const model = findModel(deps, principal, read.name);
  if (model.isShared) refuseOfServers(read.form === undefined ? read.body : fieldsOf(read.form));
  requireRoute(deps, principal, model, route);
  const media = read.form === undefined ? remoteMedia(read.body) : read.form.flatMap(mediaOfField);
  requireMedia(model, media);
  const inspection: Inspection = {
    model: read.name,
    stream: read.stream,
    promptPrefix: read.prefix,
    sessionHint: undefined,
    wantsUsage: isObject(read.body.stream_options) && read.body.stream_options.include_usage === true,
    store: false,
    previousResponseId: undefined,
    itemReferences: [],
  };
  const call: Call = {
    ...incoming,
    plain: { route, ...(read.form && { form: read.form }) },
    promptTokens: read.form === undefined ? promptTokens(read.body, bytes.length) : AUDIO_TOKENS,
    mayRetry: true,
    prices: model.prices,
    body: read.body,
    inspection,
    features: PLAIN,
    media,
    cacheSalt: deps.salts.of(principal.namespace, optionalString(read.body.cache_salt)),
    history: [],
    references: new Map(),
    createdAt: Math.floor(deps.clock.now() / 1000),
  };
  return { call, model };
}

interface Read {
  name: string;
  /** The client asked for a stream, of an answer that can be one. */
  stream: boolean;
  body: Json;
  /** What calls for the same server have in common. One empty text: nothing. */
  prefix: string[];
  form?: PlainCall['form'];
}

function readJson(bytes: Buffer, route: PlainRoute): Read {
  const body = parseBody(bytes);
  checkBody(body);
  const { model, stream, prompt } = body;
  if (stream !== undefined && stream !== null && typeof stream !== 'boolean')
    throw invalid('stream', 'expected a boolean');
  refuseEvents(body, route);
  const first: unknown = Array.isArray(prompt) ? prompt[0] : prompt;
  const hasPrefix = route === 'completions' && typeof first === 'string' && first !== '';
  const isStream = route === 'completions' && stream === true;
  return { name: model, stream: isStream, body, prefix: hasPrefix ? ['', '', first] : [''] };
}

/** Throws DialectError 400 for an answer in events where no client could tell a cut one from a whole one. */
function refuseEvents({ stream, stream_format: format }: Json, route: PlainRoute): void {
  if (route === 'images' && stream === true) throw unsupported('stream', 'Images come whole here. Remove the field.');
  if (route === 'speech' && format === 'sse')
    throw unsupported('stream_format', "Speech comes as sound here. Send 'audio', or remove the field.");
}

function readFields(bytes: Buffer, contentType: string | undefined, route: PlainRoute): Read {
  const form = readForm(bytes, contentType);
  refuseOfProxies(fieldsOf(form));
  const name = textOf(form, 'model') ?? '';
  if (name === '') throw invalid('model', 'expected one value');
  const given = textOf(form, 'stream') ?? 'false';
  // The text of a field that may be null in JSON.
  const stream = given === 'null' ? 'false' : given;
  if (!TRUE.test(stream) && !FALSE.test(stream)) throw invalid('stream', 'expected true or false');
  const isStream = TRUE.test(stream);
  if (route === 'image-edits') refuseEvents({ stream: isStream }, 'images');
  return { name, stream: isStream, body: {}, prefix: [''], form };
}

/** A field `image[url]` stands for a field of an object. */
function namesIn({ name }: Part): string[] {
  return name.split(/[[\].]+/).filter((one) => one !== '');
}

function mediaOfField(part: Part): RemoteMedia[] {
  if (part.filename !== undefined) return [];
  const value = part.content.toString('utf8');
  return remoteMedia(Object.fromEntries(namesIn(part).map((one) => [one, value])));
}

/** All names in a form, each set. */
function fieldsOf(form: readonly Part[]): Json {
  return Object.fromEntries(form.flatMap(namesIn).map((name) => [name, true]));
}
