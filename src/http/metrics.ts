import type { RequestHandler } from 'express';
import { Gauge, Histogram, type Registry } from 'prom-client';
import { relativePath } from './errors/families.ts';

const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** The endpoints by name, so that no text of a client becomes a label. */
function routeOf(path: string): string {
  const parts = (relativePath(path) ?? '').split('/');
  const [, resource = '', id, part] = parts;
  if (resource === 'instances' && part === 'proxy') return '/instances/{instanceId}/proxy';
  if (resource === 'instances') return id === undefined || id === '' ? '/instances' : '/instances/{instanceId}';
  if (resource === 'ssh-keys') return id === undefined || id === '' ? '/ssh-keys' : '/ssh-keys/{sshKeyId}';
  if (['offers', 'models', 'messages', 'responses'].includes(resource)) return `/${resource}`;
  if (resource === 'chat') return '/chat/completions';
  return path.startsWith('/dashboard') ? '/dashboard' : 'other';
}

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PATCH', 'PUT', 'DELETE', 'OPTIONS']);

/** Counts and times every request, by endpoint and status. */
export function measureRequests(registry: Registry): RequestHandler {
  const duration = new Histogram({
    name: 'berth_http_request_duration_seconds',
    help: 'Time from the head of a request to the end of its answer.',
    labelNames: ['method', 'route', 'code'],
    buckets: BUCKETS,
    registers: [registry],
  });
  let underWay = 0;
  const gauge: Gauge = new Gauge({
    name: 'berth_http_requests_under_way',
    help: 'Requests that have no complete answer yet, event streams included.',
    registers: [registry],
    collect: () => gauge.set(underWay),
  });
  return (request, response, next) => {
    const start = performance.now();
    underWay += 1;
    response.once('close', () => {
      underWay -= 1;
      const method = METHODS.has(request.method) ? request.method : 'other';
      const route = routeOf(request.originalUrl.split('?', 1)[0] ?? '');
      // 499: the client went away, as nginx counts it.
      const code = response.writableFinished || response.headersSent ? response.statusCode : 499;
      duration.observe({ method, route, code }, (performance.now() - start) / 1000);
    });
    next();
  };
}
