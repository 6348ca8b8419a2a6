import { MODEL_ENDPOINTS, type ModelEndpoint } from '../../../wire/model-endpoints.ts';

/** The shape of error bodies: Berth's, OpenAI's or Anthropic's. */
export type ErrorFamily = 'compute' | ModelEndpoint['errors'];

function firstPart(path: string): string {
  return path.split('/', 2)[1] ?? '';
}

const MODEL_PATHS = new Map<string, ModelEndpoint>(MODEL_ENDPOINTS.map((one) => [firstPart(one.path), one]));

/** The family of a path relative to the API base, for example /instances/i-1. */
export function familyOf(path: string): ErrorFamily {
  return MODEL_PATHS.get(firstPart(path))?.errors ?? 'compute';
}

/** Whether an endpoint also takes the key as X-Api-Key. */
export function takesAnthropicKey(path: string): boolean {
  return MODEL_PATHS.get(firstPart(path))?.xApiKey ?? false;
}

/** `path` without the API base, which it may have once or twice; undefined for a path outside of the base. */
export function relativePath(path: string): string | undefined {
  if (!path.startsWith('/api/v1/')) return undefined;
  const once = path.slice('/api/v1'.length);
  return once.startsWith('/api/v1/') ? once.slice('/api/v1'.length) : once;
}
