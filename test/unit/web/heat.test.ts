import { expect, it } from 'vitest';
import type { FleetGpus, FleetNode } from '../../../src/http/features/fleet/schema.ts';
import { cellOf, KEYS, paintOf } from '../../../src/web/page/fleet/heat.ts';

const NOW = Date.parse('2026-11-28T12:00:00Z');
const COLOURS = new Map([
  ['team', 0],
  ['rivals', 1],
]);

function holder(namespace: string, count: number): FleetGpus['instances'][number] {
  return { id: 'one', namespace, state: 'running', type: 0, gpu_count: count, unhealthy_gpus: [], devices: [] };
}

function node(gpus: Partial<FleetGpus>, changes: Partial<FleetNode> = {}): FleetNode {
  const kind = { gpu_name: 'NVIDIA-A100', resource: 'nvidia.com/gpu', isolation: 'whole', memory_mb: 81_920 } as const;
  const counts = { total: 4, unhealthy: 0, others: 0, free: 4, instances: [] };
  const facts = { pool: 'default', message: '', simulated: false, driver_version: null, cuda_version: null };
  return {
    name: 'n',
    state: 'ready',
    created_at: '2026-11-25T12:00:00Z',
    ...facts,
    gpus: [{ ...kind, ...counts, ...gpus }],
    ...changes,
  };
}

const SHARED = { free: 1, instances: [holder('team', 2), holder('rivals', 1)] };
const around = { colours: COLOURS, now: NOW };

it('a node is striped in the colours of its tenants, each as wide as what the tenant has', () => {
  expect(paintOf(node(SHARED), 'tenant', around)).toBe(
    'linear-gradient(90deg, var(--tenant-0) 0% 50%, var(--tenant-1) 50% 75%, var(--tile-free) 75% 100%)',
  );
});

it('its load is the share of its GPUs that something has', () => {
  expect(paintOf(node(SHARED), 'load', around)).toBe(KEYS.load[3]?.paint);
  expect(paintOf(node({ free: 2, others: 2 }), 'load', around)).toBe(KEYS.load[2]?.paint);
});

it.each([
  ['ready', {}, 0],
  ['cordoned', {}, 1],
  ['quarantined', {}, 2],
  ['not_ready', {}, 3],
  ['ready', { free: 3, unhealthy: 1 }, 3],
] as const)('the health of a node that is %s with %j', (state, gpus, at) => {
  const one = node(gpus, { state });
  expect([paintOf(one, 'health', around), cellOf(one, NOW).isTroubled]).toEqual([KEYS.health[at]?.paint, at > 0]);
});

it.each([
  ['2026-11-28T11:59:00Z', 0],
  ['2026-11-28T10:00:00Z', 1],
  ['2026-11-25T12:00:00Z', 2],
  ['2026-11-10T12:00:00Z', 3],
  ['2025-11-10T12:00:00Z', 4],
])('a node of %s has a colour for its age', (created_at, at) => {
  expect(paintOf(node({}, { created_at }), 'age', around)).toBe(KEYS.age[at]?.paint);
});

it('says in words what its colours show', () => {
  expect(cellOf(node(SHARED, { state: 'cordoned' }), NOW).label).toBe(
    'n: Cordoned · 4 GPUs: 3 rented, 0 free, 1 on closed nodes · team · rivals · added 3 d 0 h ago',
  );
});
