import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { nodeFacts } from '../../../src/inventory/nodes/node-view.ts';
import { offerClasses } from '../../../src/inventory/offers.ts';
import { orderPools } from '../../../src/inventory/pools.ts';
import type { GpuPool } from '../../../src/resources/gpu-pool.ts';
import { parseManifests } from '../../../tools/cluster/apply.ts';
import { devicesOf } from '../../../tools/cluster/fleet/labels.ts';
import { fleetNodes, otherMakersNodes } from '../../../tools/cluster/fleet/nodes.ts';
import { ROOT } from '../../../tools/lib/paths.ts';

const nodes = new Map(fleetNodes(false).map((node) => [node.metadata.name, node]));

describe('the fleet', () => {
  it('has every kind of node that a pool must cope with', () => {
    const products = [...nodes.values()].map(({ metadata }) => metadata.labels?.['nvidia.com/gpu.product']);
    expect(products.filter((product) => product === 'NVIDIA-H100-80GB-HBM3')).toHaveLength(3);
    expect(nodes.get('sim-l40s-cordoned-0')?.spec?.unschedulable).toBe(true);
    expect(nodes.get('sim-h100-dead-0')?.metadata.annotations).toEqual({});
    expect(nodes.get('sim-h100-0')?.spec?.taints).toEqual([
      { key: 'nvidia.com/gpu', value: 'present', effect: 'NoSchedule' },
    ]);
    expect(nodes.get('sim-t4-shared-0')?.status?.allocatable?.['nvidia.com/gpu']).toBe('8');
  });

  it('has the taint of its GPUs on every node beside the pods of others', () => {
    for (const node of [...fleetNodes(true), ...otherMakersNodes(true)]) {
      const [taint] = node.spec?.taints ?? [];
      expect(Object.keys(node.status?.capacity ?? {})).toContain(taint?.key);
    }
  });

  it('marks every node as simulated and gives it valid label values', () => {
    for (const { metadata } of [...nodes.values(), ...otherMakersNodes(false)]) {
      expect(metadata.labels?.['berth.dev/simulated']).toBe('true');
      for (const value of Object.values(metadata.labels ?? {})) {
        expect(value).toMatch(/^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/);
      }
    }
  });

  it('labels the devices of a MIG node by profile', () => {
    expect(nodes.get('sim-a100-mig-0')?.metadata.labels).toMatchObject({
      'nvidia.com/gpu.product': 'NVIDIA-A100-SXM4-80GB',
      'nvidia.com/mig.strategy': 'mixed',
      'nvidia.com/mig-3g.40gb.count': '2',
      'nvidia.com/mig-3g.40gb.product': 'NVIDIA-A100-SXM4-80GB-MIG-3g.40gb',
      'nvidia.com/mig-3g.40gb.slices.gi': '3',
    });
  });

  it('says how a GPU is shared', () => {
    const gpu = { product: 'Tesla-T4', memory: 15_360, family: 'turing', compute: '7.5', count: 1 };
    expect(devicesOf(gpu).labels).toMatchObject({
      'nvidia.com/gpu.sharing-strategy': 'none',
      'nvidia.com/gpu.replicas': '1',
    });
    expect(devicesOf({ ...gpu, replicas: 4 }).labels).toMatchObject({
      'nvidia.com/gpu.product': 'Tesla-T4-SHARED',
      'nvidia.com/gpu.sharing-strategy': 'time-slicing',
      'nvidia.com/gpu.replicas': '4',
    });
  });

  it('has a pool for each other maker, which selects its nodes and prices its product', () => {
    const pools = parseManifests(readFileSync(join(ROOT, 'deploy/local/makers/pools.yaml'), 'utf8')) as GpuPool[];
    const owned = orderPools(pools);
    const offers = [...offerClasses(otherMakersNodes(false).map((node) => nodeFacts(node, owned))).values()];
    const ones = offers.filter(({ gpuCount }) => gpuCount === 1);
    expect(ones.map(({ pool, product, prices }) => [pool.name, product, prices.onDemand])).toEqual([
      ['amd', 'AMD_Instinct_MI300X_OAM', '2.29'],
      ['intel', 'Max_1550', '1.19'],
    ]);
  });
});
