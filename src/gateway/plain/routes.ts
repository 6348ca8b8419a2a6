/**
 * What clients call besides the three dialects. The gateway passes these calls on as they are, to the servers that have
 * the route: `path` at the gateway, `upstream` behind the path prefix of a server, in the order in which they are tried.
 */
export const PLAIN_ROUTES = {
  embeddings: { path: '/embeddings', upstream: ['/v1/embeddings'] },
  // Text Embeddings Inference and Infinity have it without /v1.
  rerank: { path: '/rerank', upstream: ['/v1/rerank', '/rerank'] },
  completions: { path: '/completions', upstream: ['/v1/completions'] },
  transcriptions: { path: '/audio/transcriptions', upstream: ['/v1/audio/transcriptions'] },
} as const satisfies Record<string, { path: string; upstream: readonly string[] }>;

export type PlainRoute = keyof typeof PLAIN_ROUTES;

export const PLAIN_NAMES = Object.keys(PLAIN_ROUTES) as PlainRoute[];

/** The routes that a server has, with their paths behind its prefix. */
export type PlainPaths = Readonly<Partial<Record<PlainRoute, string>>>;
