import { ABSENT_ENDPOINTS, MODEL_ENDPOINTS, type ModelEndpoint } from '../../../wire/model-endpoints.ts';

/** The shape of error bodies: Berth's, OpenAI's or Anthropic's. */
export type ErrorFamily = 'compute' | ModelEndpoint['errors'];

function firstPart(path: string): string {
  return path.split('/', 2)[1] ?? '';
}

const MODEL_PATHS = new Map<string, ModelEndpoint['errors']>(
  [...MODEL_ENDPOINTS, ...ABSENT_ENDPOINTS].map(({ path, errors }) => [firstPart(path), errors]),
);
const CALLS = MODEL_ENDPOINTS.flatMap((one) => ('call' in one ? [one.path] : []));

/** The family of a path relative to the API base, for example /instances/i-1. */
export function familyOf(path: string): ErrorFamily {
  return MODEL_PATHS.get(firstPart(path)) ?? 'compute';
}

/** Whether an endpoint also takes the key in headers of other APIs. */
export function takesOtherKeys(path: string): boolean {
  return MODEL_PATHS.has(firstPart(path));
}

const MODEL_LIST = /\/models(?:\/|$)/;
const OLLAMA = /^\/api\/(?:chat|generate|tags|show|ps|pull|embed|embeddings|version)$/;

/** What helps a client of models that asks at a path without an endpoint; undefined for other clients. */
export function helpOfModels(path: string): string | undefined {
  if (OLLAMA.test(path))
    return "Ollama's own API is not served. Choose a client for OpenAI's API, with a base URL that ends in /api/v1.";
  if (!MODEL_LIST.test(path) && !CALLS.some((call) => path.endsWith(call))) return undefined;
  return "The base URL of OpenAI's clients ends in /api/v1 here, that of Anthropic's in /api.";
}

/** The API base with slashes that stand twice, or with one more `/v1` behind it: clients add one to what they are given. */
const WRITTEN_BASE = /^\/{1,8}api\/{1,8}v1(?:\/{1,8}v1(?=\/))?\/{1,8}/;

/** A URL of the API in its one spelling; any other as it is. */
export function withPlainBase(url: string): string {
  return url.replace(WRITTEN_BASE, '/api/v1/');
}

/** `path` without the API base, which it may have once or twice; undefined for a path outside of the base. */
export function relativePath(path: string): string | undefined {
  if (!path.startsWith('/api/v1/')) return undefined;
  const once = path.slice('/api/v1'.length);
  return once.startsWith('/api/v1/') ? once.slice('/api/v1'.length) : once;
}
