import { Counter, Histogram, type Registry } from 'prom-client';

/** One request on the API server. `code` is `<error>` when no answer came. */
export interface RequestSample {
  verb: string;
  code: string;
  seconds: number;
}

export interface ClientMetrics {
  observe(sample: RequestSample): void;
}

/** client-go's metrics under the names that controller-runtime registers (pkg/metrics/client_go_adapter.go). */
export function createClientMetrics(registry: Registry, host: string): ClientMetrics {
  const requests = new Counter({
    name: 'rest_client_requests_total',
    help: 'Number of HTTP requests, partitioned by status code, method, and host.',
    labelNames: ['code', 'method', 'host'],
    registers: [registry],
  });
  const duration = new Histogram({
    name: 'rest_client_request_duration_seconds',
    help: 'Request latency in seconds. Broken down by verb, and host.',
    labelNames: ['verb', 'host'],
    buckets: [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60],
    registers: [registry],
  });
  return {
    observe({ verb, code, seconds }) {
      requests.inc({ code, method: verb, host });
      duration.observe({ verb, host }, seconds);
    },
  };
}
