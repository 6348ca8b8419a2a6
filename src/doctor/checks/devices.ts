import type { DeviceIndex } from '../../inventory/devices/device-index.ts';
import { GPU_DRIVERS } from '../../inventory/makers/device-class.ts';
import { nodeFacts } from '../../inventory/nodes/node-view.ts';
import { orderPools, type Pool } from '../../inventory/pools.ts';
import type { ResourceSlice } from '../../kube/devices.ts';
import { deviceClassNamesOf } from '../../resources/gpu-pool.ts';
import { deviceIndex } from '../cached.ts';
import { byFault, check, named, type Problem, quoted } from '../finding.ts';

/** Drivers of GPUs whose devices are on a node, by node. */
function gpuDrivers(slices: readonly ResourceSlice[]): Map<string, string> {
  const found = slices.flatMap(({ spec: { driver, nodeName, devices = [] } }) =>
    nodeName !== undefined && devices.length > 0 && driver in GPU_DRIVERS ? [[nodeName, driver] as const] : [],
  );
  return new Map(found);
}

function notSold(names: readonly string[], driver: string, pool: string | undefined): Problem {
  const patch = quoted(JSON.stringify({ spec: { devices: { deviceClassName: driver } } }));
  const many = names.length > 1;
  return {
    severity: 'warning',
    reason: 'NotSold',
    objects: names.map((name) => `node/${name}`),
    message: `${many ? 'Nodes' : 'Node'} ${named(names)}: driver ${driver} has GPUs in ResourceSlices, and no GPUPool sells them.`,
    why: 'Instances get them only from a GPUPool whose spec.devices names their DeviceClass. Its GPUs must be whole, shared in equal parts, or MIG slices of one profile, and all of one product on a node.',
    remedy:
      pool === undefined
        ? 'kubectl get gpupools -o custom-columns=NAME:.metadata.name,SELECTOR:.spec.nodeSelector,DEVICES:.spec.devices'
        : `kubectl patch gpupool ${pool} --type merge -p ${patch}   # if no node of the pool has a device plugin`,
  };
}

function twice(names: readonly string[], driver: string): Problem {
  return {
    severity: 'error',
    reason: 'CountedTwice',
    objects: names.map((name) => `node/${name}`),
    message: `${names.length > 1 ? 'Nodes' : 'Node'} ${named(names)}: a device plugin counts the GPUs, and driver ${driver} has GPUs in ResourceSlices too.`,
    why: 'Kubernetes does not know that they are the same, and may give one GPU to two pods.',
    remedy: `kubectl get daemonsets --all-namespaces   # run either the device plugin or the driver on a node`,
  };
}

function gaps(pools: readonly Pool[], index: DeviceIndex): Problem[] {
  return pools.flatMap(({ name, spec }): Problem[] => {
    const gapsOfPool = deviceClassNamesOf(spec.devices).flatMap((wanted) => index.gapOf(wanted) ?? []);
    return gapsOfPool.map((gap) => ({
      severity: 'error',
      reason: 'DeviceClassNotSold',
      objects: [`gpupool/${name}`],
      message: `GPUPool ${name} does not offer all that it names. ${gap}`,
      why: 'Instances ask for devices by the extended resource of their class, and Berth offers only what it can count.',
      remedy: `kubectl get deviceclasses -o custom-columns=NAME:.metadata.name,RESOURCE:.spec.extendedResourceName`,
    }));
  });
}

export const devices = check({
  name: 'devices',
  title: 'GPUs in ResourceSlices are for rent',
  needs: ['nodes', 'pools', 'resourceSlices', 'deviceClasses'],
  find({ nodes, pools, ...rest }) {
    const index = deviceIndex(rest);
    const ordered = orderPools(pools);
    const drivers = gpuDrivers(rest.resourceSlices);
    const found = nodes.flatMap((node) => {
      const { name } = node.metadata;
      const driver = drivers.get(name);
      if (driver === undefined) return [];
      const { pool, resources } = nodeFacts(node, ordered, index.of(name));
      const isCounted = resources.some(({ resourceName }) => Number(node.status?.allocatable?.[resourceName] ?? 0) > 0);
      if (resources.length > 0 && !isCounted) return [];
      const fault = { driver, isCounted, pool: pools.length === 0 ? undefined : pool?.name };
      return [[JSON.stringify(fault), { ...fault, name }] as const];
    });
    const ofNodes = [...byFault(found).values()].flatMap((group): Problem[] => {
      const [first] = group;
      if (first === undefined) return [];
      const names = group.map(({ name }) => name).toSorted();
      return [first.isCounted ? twice(names, first.driver) : notSold(names, first.driver, first.pool)];
    });
    return [...ofNodes, ...gaps(ordered, index)];
  },
});
