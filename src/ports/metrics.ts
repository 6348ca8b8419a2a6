import { Counter, type Registry } from 'prom-client';

const WAYS = ['direct', 'forward'] as const;

/** Counts a new connection to a port, by its way: straight to the pod, or by port-forward through the API server. */
export type CountConnection = (way: (typeof WAYS)[number]) => void;

/** Registers the metric; call it once per registry. */
export function createPortMetrics(registry: Registry): CountConnection {
  const connections = new Counter({
    name: 'berth_port_connections_total',
    help: 'Connections to ports of instances, by the way of their bytes: direct to the pod, forward through the API server and the kubelet.',
    labelNames: ['way'],
    registers: [registry],
  });
  for (const way of WAYS) connections.inc({ way }, 0);
  return (way) => connections.inc({ way });
}
