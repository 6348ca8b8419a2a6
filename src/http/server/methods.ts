import { allowOf, type Method } from '../../lib/allow.ts';
import { MODEL_ENDPOINTS } from '../../wire/model-endpoints.ts';
import { pathOf, type Step } from '../interface/step.ts';
import { RESOURCES } from './table.ts';

/** Calls of programs in instances, which take any method. */
const PROXY = /^\/instances\/[^/]+\/proxy\/[^/]+(?:\/.*)?$/;

function patternOf(path: string): RegExp {
  const source = path.replaceAll(/\{\w+\}/g, '[^/]+').replace(/\{\w+\.{3}\}/, '.+');
  return new RegExp(`^${source === '/' ? '' : source}/?$`);
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
  pattern: patternOf(path),
  methods: endpoints.map(({ method }) => method),
}));

/** The methods of a path below the API base, for example /instances/i-1; undefined when no endpoint has the path. */
export function methodsAt(path: string): readonly Method[] | undefined {
  return PATHS.find(({ pattern }) => pattern.test(path))?.methods;
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
