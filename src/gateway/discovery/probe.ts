import { isObject, type Json } from '../../lib/json.ts';
import type { ScaleSpec } from '../../resources/model-servers/scale.ts';
import { DIALECTS, optionalCount, ROUTES, type Dialect, type Engine } from '../dialects/index.ts';
import { PLAIN_NAMES, PLAIN_ROUTES, type PlainPaths } from '../plain-routes.ts';
import { ProbeError, routeTest, type Ask, type RouteTest } from './route-test.ts';
import type { Probe, ServedModel, ServerSpec } from './types.ts';

const MAX_MODELS = 512;
const MAX_NAME = 256;
/** The last second that a Date can hold. */
const MAX_CREATED = 8.64e12;

interface Signature {
  engine: Engine;
  paths: readonly string[];
  matches: (body: Json) => boolean;
  version: (body: Json) => unknown;
}

const SIGNATURES: readonly Signature[] = [
  {
    engine: 'vllm',
    paths: ['/version'],
    matches: ({ version }) => typeof version === 'string',
    version: ({ version }) => version,
  },
  {
    engine: 'sglang',
    paths: ['/server_info', '/get_server_info'],
    matches: (body) => 'version' in body && ('internal_states' in body || 'model_path' in body),
    version: ({ version }) => version,
  },
  {
    engine: 'llama.cpp',
    paths: ['/props'],
    matches: (body) => 'default_generation_settings' in body || 'build_info' in body,
    version: ({ build_info }) => build_info,
  },
  {
    engine: 'ollama',
    paths: ['/api/version'],
    matches: ({ version }) => typeof version === 'string',
    version: ({ version }) => version,
  },
  {
    engine: 'tgi',
    paths: ['/info'],
    matches: (body) => 'model_id' in body && 'version' in body,
    version: ({ version }) => version,
  },
];

/** `owned_by` of the model list names the engine in most cases, which saves the other requests. */
const OWNERS = new Map<unknown, Engine>([
  ['vllm', 'vllm'],
  ['sglang', 'sglang'],
  ['llamacpp', 'llama.cpp'],
  ['library', 'ollama'],
]);

/**
 * Finds out what one server is. Throws ProbeError without a model or a route, else what `ask` throws.
 */
export async function probe(ask: Ask, server: ServerSpec): Promise<Probe> {
  const { prefix, body } = await listModels(ask, server.prefix);
  const known = await identify(ask, server.engine ?? OWNERS.get(firstOf(body).owned_by), server.engine !== undefined);
  const engine = server.engine ?? known?.engine ?? 'unknown';
  const models = modelsOf(body, known?.info ?? {});
  if (models.length === 0) throw new ProbeError('The server lists no model.');
  const has = await routeTest(ask, prefix);
  const [countTokens, tokenize] = [await has(`${ROUTES.messages}/count_tokens`), await has('/tokenize', '')];
  const dialects = server.dialects ?? (await dialectsOf(has));
  const plainPaths = await plainPathsOf(has);
  if (dialects.length === 0 && Object.keys(plainPaths).length === 0)
    throw new ProbeError('The server has none of the routes chat/completions, responses and messages.');
  const version = known?.version;
  return {
    engine,
    prefix,
    models,
    dialects,
    plainPaths,
    countTokens,
    tokenize,
    ...(version !== undefined && { version }),
  };
}

async function listModels(ask: Ask, given: string | undefined): Promise<{ prefix: string; body: unknown }> {
  // KServe's Hugging Face runtime serves under /openai/v1 (KServe, "OpenAI SDK integration").
  const prefixes = given === undefined ? ['', '/openai'] : [given];
  let last = 0;
  for (const prefix of prefixes) {
    const { status, json } = await ask(`${prefix}/v1/models`);
    if (status === 200 && Array.isArray(record(json).data)) return { prefix, body: json };
    last = status;
  }
  const info = record((await ask('/info')).json);
  // Text Generation Inference before 2.2 has no model list.
  if (typeof info.model_id === 'string') return { prefix: given ?? '', body: { data: [{ id: info.model_id }] } };
  throw new ProbeError(`The server answered GET /v1/models with ${last}.`);
}

interface Identity {
  engine: Engine;
  version?: string;
  info: Json;
}

async function identify(ask: Ask, hint: Engine | undefined, hintIsFinal: boolean): Promise<Identity | undefined> {
  const first = SIGNATURES.filter(({ engine }) => engine === hint);
  const rest = hintIsFinal ? [] : SIGNATURES.filter(({ engine }) => engine !== hint);
  for (const signature of [...first, ...rest]) {
    for (const path of signature.paths) {
      const { status, json } = await ask(path);
      const info = record(json);
      if (status !== 200 || !signature.matches(info)) continue;
      const version = signature.version(info);
      return { engine: signature.engine, info, ...(typeof version === 'string' && { version: version.slice(0, 64) }) };
    }
  }
  return undefined;
}

async function dialectsOf(has: RouteTest): Promise<Dialect[]> {
  const present = await Promise.all(DIALECTS.map((dialect) => has(ROUTES[dialect])));
  return DIALECTS.filter((_, index) => present[index]);
}

async function plainPathsOf(has: RouteTest): Promise<PlainPaths> {
  const found = PLAIN_NAMES.map(async (name) => {
    for (const path of PLAIN_ROUTES[name].upstream) if (await has(path)) return [[name, path] as const];
    return [];
  });
  return Object.fromEntries((await Promise.all(found)).flat());
}

/** Nobody knows what a server has that was never there. The first call of any kind may find out. */
const EVERY_PATH: PlainPaths = Object.fromEntries(PLAIN_NAMES.map((name) => [name, PLAIN_ROUTES[name].upstream[0]]));

/** What a server without a replica is taken for: what the last one was, and the names that its Service states. */
export function assumedProbe(
  { engine = 'unknown', dialects = ['chat'], prefix = '' }: ServerSpec,
  { models }: ScaleSpec,
  last: Probe | undefined,
): Probe | undefined {
  const known = last?.models ?? [];
  const stated = models.filter((name) => known.every(({ id }) => id !== name)).map((id) => ({ id }));
  if (last === undefined && stated.length === 0) return undefined;
  const probe = last ?? {
    engine,
    prefix,
    dialects,
    models: [],
    plainPaths: EVERY_PATH,
    countTokens: false,
    tokenize: false,
  };
  return { ...probe, models: [...known, ...stated] };
}

function modelsOf(body: unknown, info: Json): ServedModel[] {
  const data = record(body).data;
  if (!Array.isArray(data)) return [];
  const listed = data.slice(0, MAX_MODELS).map(record);
  return listed.flatMap((model) => {
    if (typeof model.id !== 'string' || model.id === '' || model.id.length > MAX_NAME) return [];
    const contextLength = contextOf(model, info) ?? parentContext(model, listed, info);
    const created = optionalCount(model.created);
    return [
      {
        id: model.id,
        ...(contextLength !== undefined && { contextLength }),
        ...(created !== undefined && created <= MAX_CREATED && { created }),
      },
    ];
  });
}

/** The context length: vLLM and SGLang report it in the model list, llama.cpp in /props, TGI in /info. */
function contextOf(model: Json, info: Json): number | undefined {
  const candidates = [
    model.max_model_len,
    model.context_length,
    record(info.default_generation_settings).n_ctx,
    record(model.meta).n_ctx_train,
    info.max_total_tokens,
  ];
  return candidates.map(optionalCount).find((value) => value !== undefined && value > 0);
}

/** The context length of a LoRA adapter. vLLM and SGLang write it on the model that the adapter names as its parent. */
function parentContext({ parent }: Json, listed: readonly Json[], info: Json): number | undefined {
  const found = typeof parent === 'string' ? listed.find(({ id }) => id === parent) : undefined;
  return found === undefined ? undefined : contextOf(found, info);
}

function firstOf(body: unknown): Json {
  const data = record(body).data;
  return Array.isArray(data) ? record(data[0]) : {};
}

function record(value: unknown): Json {
  return isObject(value) ? value : {};
}
