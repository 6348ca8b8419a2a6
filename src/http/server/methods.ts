import { pathOf, type Step } from '../interface/step.ts';
import { allowOf, type Operation } from '../interface/route.ts';
import { OPERATIONS } from './table.ts';

type Endpoint = Pick<Operation, 'method' | 'path'>;

/** Model endpoints beside those of the table. `...` is the rest of the path: names of models have slashes. */
const MORE_MODEL_ENDPOINTS: readonly Endpoint[] = [
  { method: 'post', path: '/messages/count_tokens' },
  { method: 'post', path: '/responses/input_tokens' },
  { method: 'get', path: '/models/...' },
  { method: 'get', path: '/responses/{id}' },
  { method: 'delete', path: '/responses/{id}' },
  { method: 'get', path: '/responses/{id}/input_items' },
  { method: 'post', path: '/responses/{id}/cancel' },
];

/** Calls of programs in instances, which take any method. */
const PROXY = /^\/instances\/[^/]+\/proxy\/[^/]+(?:\/.*)?$/;

function patternOf(path: string): RegExp {
  const source = path.replaceAll(/\{\w+\}/g, '[^/]+').replace('/...', '/.+');
  return new RegExp(`^${source === '/' ? '' : source}/?$`);
}

/** A terminal is a WebSocket, which OpenAPI does not describe. */
const TERMINAL: Endpoint = { method: 'get', path: '/instances/{instanceId}/terminal' };
const ENDPOINTS = [...OPERATIONS, ...MORE_MODEL_ENDPOINTS, TERMINAL, { method: 'get', path: '/' } as const];
const PATHS = [...Map.groupBy(ENDPOINTS, ({ path }) => path)].map(([path, endpoints]) => ({
  pattern: patternOf(path),
  methods: endpoints.map(({ method }) => method),
}));

/** The methods of a path below the API base, for example /instances/i-1; undefined when no endpoint has the path. */
export function methodsAt(path: string): readonly Operation['method'][] | undefined {
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
