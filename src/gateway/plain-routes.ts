import { MODEL_ENDPOINTS, type PlainRoute } from '../wire/model-endpoints.ts';

interface PlainEndpoint {
  /** At the gateway. */
  path: string;
  upstream: readonly [string, ...string[]];
  operation: string;
  isForm: boolean;
}

const ENTRIES = MODEL_ENDPOINTS.flatMap((one): [PlainRoute, PlainEndpoint][] => {
  if (!('call' in one && 'plain' in one.call)) return [];
  const { plain, upstream, operation } = one.call;
  return [[plain, { path: one.path, upstream, operation, isForm: 'form' in one.call }]];
});

/** What clients call besides the three dialects. The gateway passes these calls on as they are. */
export const PLAIN_ROUTES = Object.fromEntries(ENTRIES) as Readonly<Record<PlainRoute, PlainEndpoint>>;

export const PLAIN_NAMES = ENTRIES.map(([name]) => name);

/** The routes that a server has, with their paths behind its prefix. */
export type PlainPaths = Readonly<Partial<Record<PlainRoute, string>>>;

/** Whether what answers writes down what it heard. */
export function isTranscription(route: PlainRoute | undefined): boolean {
  return route === 'transcriptions' || route === 'translations';
}
