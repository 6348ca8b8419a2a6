import { expect, it } from 'vitest';
import type { FleetGpus, FleetNode } from '../../../src/http/features/fleet/schema.ts';
import { countsOf, devicesOf, inWords, tilesOf } from '../../../src/web/page/fleet/tiles.ts';

const COLOURS = new Map([['team', 0]]);

function kindOf(gpus: Partial<FleetGpus>): FleetGpus {
  return {
    gpu_name: 'NVIDIA-A100-SXM4-80GB',
    resource: 'nvidia.com/gpu',
    isolation: 'whole',
    memory_mb: 81_920,
    total: 8,
    unhealthy: 0,
    others: 0,
    free: 0,
    instances: [],
    ...gpus,
  };
}

function nodeWith(...gpus: FleetGpus[]): FleetNode {
  return {
    name: 'n',
    pool: 'default',
    state: 'ready',
    message: '',
    simulated: false,
    created_at: '2026-11-01T00:00:00Z',
    driver_version: null,
    cuda_version: null,
    gpus,
  };
}

/** How many tiles of each kind a node shows whose eight GPUs are in these states. */
function tiles(gpus: Partial<FleetGpus>): { count: number; kinds: Record<string, number>; failed: string[] } {
  const kind = kindOf(gpus);
  const shown = tilesOf(kind, nodeWith(kind), COLOURS);
  const groups = Object.groupBy(shown, (tile) => tile.kind);
  const kinds = Object.fromEntries(Object.entries(groups).map(([name, of]) => [name, of.length]));
  const failed = shown.filter(({ isUnhealthy }) => isUnhealthy).map(({ title }) => title);
  return { count: shown.length, kinds, failed };
}

function holder(count: number, unhealthy: string[]): FleetGpus['instances'][number] {
  return {
    id: 'one',
    namespace: 'team',
    state: 'running',
    type: 0,
    gpu_count: count,
    unhealthy_gpus: unhealthy,
    devices: [],
  };
}

it('a node shows each GPU that the device plugin has taken out of service', () => {
  expect(tiles({ free: 6, unhealthy: 2 })).toEqual({ count: 8, kinds: { free: 6, unhealthy: 2 }, failed: [] });
});

it('an unhealthy GPU that an instance has is one of its tiles, with its id', () => {
  const failed = ['team/one: running. GPU GPU-b is unhealthy'];
  // Kubernetes takes it from what is allocatable, and counts it as used too: one healthy GPU less is placed.
  const gpus = { unhealthy: 1, free: 5, instances: [holder(2, ['GPU-b'])] };
  expect(tiles(gpus)).toEqual({ count: 8, kinds: { tenant: 2, free: 5, closed: 1 }, failed });
  expect(tiles({ unhealthy: 1, instances: [holder(8, ['GPU-b'])] })).toEqual({
    count: 8,
    kinds: { tenant: 8 },
    failed,
  });
});

it('where the kubelet does not say who has it, it has a tile of its own', () => {
  const { kinds } = tiles({ unhealthy: 1, instances: [holder(8, [])] });
  expect(kinds).toEqual({ tenant: 8, unhealthy: 1 });
});

it('a slice and a share are no GPU, and are counted as what they are', () => {
  const slices = kindOf({ isolation: 'mig', total: 7, free: 6, others: 1 });
  const shares = kindOf({ isolation: 'time_sliced', total: 4, free: 4 });
  const said = (...gpus: FleetGpus[]): string => inWords(countsOf([nodeWith(...gpus)]));
  expect(said(kindOf({ free: 6, instances: [holder(2, [])] }), slices, shares)).toBe(
    '8 GPUs, 7 MIG slices, 4 shares of time-sliced GPUs: 2 rented, 1 with other pods, 16 free',
  );
  expect(said(kindOf({ total: 1, free: 1 }))).toBe('1 GPU: 0 rented, 1 free');
  const many = [8000, 7000].map((count) => count.toLocaleString());
  expect(said(kindOf({ total: 8000, free: 7000 }))).toBe(`${many[0]} GPUs: 0 rented, ${many[1]} free`);
  expect(said()).toBe('0 GPUs: 0 rented, 0 free');
});

it('names devices by their uuid, and none where an earlier release answers', () => {
  const one = { driver: 'gpu.nvidia.com', pool: 'n', device: 'gpu-0' };
  const devices = [
    { ...one, uuid: 'GPU-1' },
    { ...one, uuid: null },
  ];
  expect(devicesOf({ devices })).toBe('GPU-1, n/gpu-0');
  expect(devicesOf({})).toBe('');
});
