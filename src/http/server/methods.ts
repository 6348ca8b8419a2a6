import { allowOf, type Method } from '../../lib/allow.ts';
import { MODEL_ENDPOINTS } from '../../wire/model-endpoints.ts';
import { pathOf, type Step } from '../interface/step.ts';
import { RESOURCES } from './table.ts';

/** Calls of programs in instances, which take any method. */
const PROXY = /^\/instances\/[^/]+\/proxy\/[^/]+(?:\/.*)?$/;

function segmentsOf(path: string): string[] {
  return (path.endsWith('/') ? path.slice(0, -1) : path).split('/');
}

/** Whether a path is one of an endpoint, whose segments in braces stand for any text, or with dots for all the rest. */
function matches(endpoint: readonly string[], path: readonly string[]): boolean {
  const hasRest = endpoint.at(-1)?.endsWith('...}') === true;
  if (hasRest ? path.length < endpoint.length : path.length !== endpoint.length) return false;
  return endpoint.every((segment, at) => (segment.startsWith('{') ? path[at] !== '' : path[at] === segment));
}

/** A terminal is a WebSocket, which OpenAPI does not describe. */
const TERMINAL = { method: 'get', path: '/instances/{instanceId}/terminal' } as const;
const ENDPOINTS: readonly { method: Method; path: string }[] = [
  ...RESOURCES.flatMap(({ routes }) => routes),
  ...MODEL_ENDPOINTS,
  TERMINAL,
  { method: 'get', path: '/' },
];
const PATHS = [...Map.groupBy(ENDPOINTS, ({ path }) => path)].map(([path, endpoints]) => ({
  segments: segmentsOf(path),
  methods: endpoints.map(({ method }) => method),
}));

/** The methods of a path below the API base, for example /instances/i-1; undefined when no endpoint has the path. */
export function methodsAt(path: string): readonly Method[] | undefined {
  const asked = segmentsOf(path);
  return PATHS.find(({ segments }) => matches(segments, asked))?.methods;
}

/** Whether the path belongs to a program in an instance. */
export function isProxied(path: string): boolean {
  return PROXY.test(path);
}

/** Whether an endpoint, or a program in an instance, may have the path. */
export function isKnown(path: string): boolean {
  return isProxied(path) || methodsAt(path) !== undefined;
}

/** Answers OPTIONS with the methods of an endpoint. Programs in instances answer for themselves. */
export const options: Step = (request, response, next) => {
  const methods = request.method === 'OPTIONS' ? methodsAt(pathOf(request)) : undefined;
  if (methods === undefined) return next();
  response.writeHead(200, { allow: allowOf(methods), 'content-length': '0' }).end();
};
