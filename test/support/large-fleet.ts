import type { FleetRecord } from '../../src/wire/records.ts';

/** As many nodes as a large cluster has, of all states, with tenants on most of them. */
export function fleetOf(count: number): FleetRecord {
  const states = ['ready', 'ready', 'ready', 'ready', 'cordoned', 'quarantined', 'not_ready'] as const;
  const tenants = ['team', 'vision', 'speech', 'robots', 'search'];
  const at = (index: number): FleetRecord['nodes'][number] => {
    const [rented, tenant] = [index % 9, tenants[index % 5] ?? ''];
    const holder = {
      namespace: tenant,
      state: 'running',
      type: 0 as const,
      gpu_count: rented,
      unhealthy_gpus: [],
      devices: [],
    };
    const kind = { gpu_name: 'NVIDIA-H100-80GB-HBM3', resource: 'nvidia.com/gpu', isolation: 'whole' } as const;
    const counts = { memory_mb: 81_559, total: 8, unhealthy: 0, others: 0, free: 8 - rented };
    return {
      name: `node-${index}`,
      pool: 'default',
      state: index % 10 < 7 ? 'ready' : (states[index % 7] ?? 'ready'),
      message: '',
      simulated: false,
      created_at: new Date(Date.now() - index ** 2 * 4000).toISOString(),
      driver_version: '550.54.15',
      cuda_version: '12.4',
      gpus: [{ ...kind, ...counts, instances: rented === 0 ? [] : [{ id: `i-${index}`, ...holder }] }],
    };
  };
  const tenant = { policies: [], gpu_ceilings: [], instances_max: null, instances: 1, waiting: 0 };
  return {
    object: 'fleet',
    nodes: Array.from({ length: count }, (_, index) => at(index)),
    pools: [],
    tenants: tenants.map((namespace) => ({ namespace, gpus: count, ...tenant })),
    waiting: [],
    waiting_total: 0,
    displaced: [],
  };
}
