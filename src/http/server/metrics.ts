import { Gauge, Histogram, type Registry } from 'prom-client';
import type { Clock } from '../../lib/clock.ts';
import { relativePath } from '../interface/errors/families.ts';
import type { Step } from '../interface/step.ts';
import { OPERATIONS } from './table.ts';

const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** Labels by the first part of a path: of a resource as a whole, and of everything below one of its members. */
const RESOURCES = new Map<string, string>();
const MEMBERS = new Map<string, string>();
for (const { path } of OPERATIONS) {
  const [, resource = '', parameter = ''] = path.split('/');
  if (parameter.startsWith('{')) MEMBERS.set(resource, `/${resource}/${parameter}`);
  else RESOURCES.set(resource, path);
}

/** The label of a path. No text of a client becomes a label. */
function routeOf(path: string): string {
  const [, resource = '', id = '', part] = (relativePath(path) ?? '').split('/');
  const all = RESOURCES.get(resource);
  if (all === undefined) return path.startsWith('/dashboard') ? '/dashboard' : 'other';
  const member = MEMBERS.get(resource) ?? all;
  if (resource === 'instances' && part === 'proxy') return `${member}/proxy`;
  return id === '' ? all : member;
}

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PATCH', 'PUT', 'DELETE', 'OPTIONS']);

/** Counts and times every request, by endpoint and status. */
export function measureRequests({ registry, clock }: { registry: Registry; clock: Clock }): Step {
  const duration = new Histogram({
    name: 'berth_http_request_duration_seconds',
    help: 'Time from the start of a request to the end of its answer.',
    labelNames: ['method', 'route', 'code'],
    buckets: BUCKETS,
    registers: [registry],
  });
  let underWay = 0;
  const gauge: Gauge = new Gauge({
    name: 'berth_http_requests_under_way',
    help: 'Requests without a complete answer yet, event streams included.',
    registers: [registry],
    collect: () => gauge.set(underWay),
  });
  return (request, response, next) => {
    const start = clock.monotonic();
    // Now: a mount changes the URL.
    const { method: asked = '', url = '' } = request;
    underWay += 1;
    response.once('close', () => {
      underWay -= 1;
      const method = METHODS.has(asked) ? asked : 'other';
      const route = routeOf(url.split('?', 1)[0] ?? '');
      // 499: the client went away, as nginx counts it.
      const code = response.writableFinished || response.headersSent ? response.statusCode : 499;
      duration.observe({ method, route, code }, (clock.monotonic() - start) / 1000);
    });
    next();
  };
}
