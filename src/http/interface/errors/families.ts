/** The shape of error bodies: Berth's, OpenAI's or Anthropic's. */
export type ErrorFamily = 'compute' | 'openai' | 'anthropic';

const OPENAI = new Set(['models', 'chat', 'responses', 'completions', 'embeddings', 'rerank', 'audio']);

/** The family of a path relative to the API base, for example /instances/i-1. */
export function familyOf(path: string): ErrorFamily {
  const segment = path.split('/', 2)[1] ?? '';
  if (segment === 'messages') return 'anthropic';
  return OPENAI.has(segment) ? 'openai' : 'compute';
}

/** `path` without the API base, which it may have once or twice; undefined for a path outside of the base. */
export function relativePath(path: string): string | undefined {
  if (!path.startsWith('/api/v1/')) return undefined;
  const once = path.slice('/api/v1'.length);
  return once.startsWith('/api/v1/') ? once.slice('/api/v1'.length) : once;
}
