import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { GPU_DRIVERS } from '../../../src/inventory/makers/device-class.ts';
import { makerOf, makerOn } from '../../../src/inventory/makers/makers.ts';
import { gpuPoolSpecSchema } from '../../../src/resources/gpu-pool.ts';
import { fleetNodes, otherMakersNodes } from '../../../tools/cluster/fleet/nodes.ts';
import { ROOT } from '../../../tools/lib/paths.ts';

// What the admission policies of the chart let the controller ask for, and what it asks for.

const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const { admissionPolicies } = parse(read('charts/berth/values.yaml')) as {
  admissionPolicies: { gpuResources: string[] };
};

function isListed(name: string): boolean {
  return admissionPolicies.gpuResources.some((one) =>
    one.endsWith('*') ? name.startsWith(one.slice(0, -1)) : name === one,
  );
}

describe('the resources that instances may ask for by default', () => {
  const presets = (['NVIDIA', 'AMD', 'Intel'] as const).flatMap((preset) => makerOf({ preset }).resourceNames);
  const drivers = Object.values(GPU_DRIVERS).flatMap(({ taints }) => taints);
  const nodes = [...fleetNodes(true), ...otherMakersNodes(true)];
  const offered = nodes.flatMap((node) => {
    const { labels = {} } = node.metadata;
    return Object.keys(node.status?.allocatable ?? {}).filter((name) => makerOn(node, undefined).owns(name, labels));
  });
  const documented = [...read('docs/run/install.md').matchAll(/resourceName: (\S+\/\S+)/g)].map(
    ([, name = '']) => name,
  );

  it.each([
    ['of every preset', presets],
    ['of the drivers of DRA', drivers],
    ['of nodes with slices and shares', offered],
    ['of the pool in the manual', documented],
  ])('are those %s', (_what, names) => {
    expect(names).not.toEqual([]);
    expect(names.filter((name) => !isListed(name))).toEqual([]);
  });

  it.each(['devices.kubevirt.io/kvm', 'nvidia.com/hostdev', 'rdma/hca', 'gpu.intel.com/monitoring'])(
    'have no %s',
    (name) => {
      expect(isListed(name)).toBe(false);
    },
  );
});

describe('a pool', () => {
  const pool = (key: string) => gpuPoolSpecSchema.safeParse({ tolerations: [{ key }] });

  it('tolerates the taints of its nodes', () => {
    expect(pool('node-role.kubernetes.io/control-plane').success).toBe(true);
  });

  it('tolerates no taint that closes a node for a while, which the policy of pods would refuse', () => {
    const { error } = pool('node.kubernetes.io/unschedulable');
    expect(error?.issues[0]?.message).toContain('close a node for a while');
  });
});
