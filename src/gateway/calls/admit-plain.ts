import { isObject, type Json } from '../../lib/json.ts';
import type { Model } from '../balance/model.ts';
import { parseBody, type Incoming } from './admit.ts';
import type { Call, PlainCall } from './call.ts';
import type { ModelRouterDeps } from '../deps.ts';
import { checkBody, invalid, PLAIN, promptTokens, type Inspection } from '../dialects/index.ts';
import { findModel, requireRoute } from '../find-model.ts';
import { fieldOf, readFields } from './multipart.ts';
import { PLAIN_ROUTES } from '../plain-routes.ts';
import type { PlainRoute } from '../../wire/model-endpoints.ts';

/** Whisper makes 1500 frames of the 30 s that it hears at once. Nobody knows the length of the audio before. */
const AUDIO_TOKENS = 1500;
/** What servers take for yes in a form (pydantic). */
const TRUE = /^(?:true|yes|on|1|t|y)$/i;

/** Reads what routing needs of a call outside of the dialects, and finds its model. Throws DialectError. */
export function admitPlain(deps: ModelRouterDeps, incoming: Incoming, route: PlainRoute): { call: Call; model: Model } {
  const { bytes, principal, contentType } = incoming;
  const read = PLAIN_ROUTES[route].isForm ? readForm(bytes, contentType) : readJson(bytes, route);
  const model = findModel(deps, principal, read.name);
  requireRoute(deps, principal, model, route);
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
    body: read.body,
    inspection,
    features: PLAIN,
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
  const first: unknown = Array.isArray(prompt) ? prompt[0] : prompt;
  const hasPrefix = route === 'completions' && typeof first === 'string' && first !== '';
  const isStream = route === 'completions' && stream === true;
  return { name: model, stream: isStream, body, prefix: hasPrefix ? ['', '', first] : [''] };
}

function readForm(bytes: Buffer, contentType: string | undefined): Read {
  const fields = readFields(bytes, contentType);
  const model = fieldOf(fields, 'model');
  const stream = fields.some(({ name, value }) => name === 'stream' && TRUE.test(value));
  return { name: model.value, stream, body: {}, prefix: [''], form: { contentType: contentType ?? '', model } };
}
