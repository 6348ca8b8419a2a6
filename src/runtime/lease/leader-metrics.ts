import { Gauge, type Registry } from 'prom-client';

/** client-go's gauge of the leader under controller-runtime's name (pkg/metrics/leaderelection.go). */
export function createLeaderMetric(registry: Registry): (name: string) => (leading: boolean) => void {
  const status = new Gauge({
    name: 'leader_election_master_status',
    help: 'Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master.',
    labelNames: ['name'],
    registers: [registry],
  });
  return (name) => (leading) => status.set({ name }, leading ? 1 : 0);
}
