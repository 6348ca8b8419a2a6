import { Counter, Gauge, type Registry } from 'prom-client';

const OUTCOMES = ['accepted', 'denied', 'limited', 'hurried', 'refused'] as const;

/**
 * How a connection ended its login: `accepted`; `denied`, without a key that opens an instance; `limited`, with such a
 * key, but the tenant or the replica has as many connections as it may have; `hurried`, of a tenant that logs in too often;
 * `refused`, before it could offer a key, because its network or all strangers have too many connections.
 */
type LoginOutcome = (typeof OUTCOMES)[number];
export type CountLogin = (outcome: LoginOutcome) => void;

interface SshMetrics {
  countLogin: CountLogin;
  /** Takes the function that says how many connections are logged in. */
  watchConnections: (count: () => number) => void;
}

/** Registers the metrics of logins; call it once per registry. No label says who logged in, or from where. */
export function createSshMetrics(registry: Registry): SshMetrics {
  const registers = [registry];
  const logins = new Counter({
    name: 'berth_ssh_logins_total',
    help: 'Connections by outcome of their login: accepted, denied (no key opens an instance), limited (ceiling of tenant or replica), hurried (too many logins of the tenant), refused (of one network).',
    labelNames: ['outcome'],
    registers,
  });
  for (const outcome of OUTCOMES) logins.inc({ outcome }, 0);
  let connections = (): number => 0;
  const gauge: Gauge = new Gauge({
    name: 'berth_ssh_connections',
    help: 'Connections that are logged in now.',
    registers,
    collect: () => gauge.set(connections()),
  });
  return {
    countLogin: (outcome) => logins.inc({ outcome }),
    watchConnections: (count) => void (connections = count),
  };
}
