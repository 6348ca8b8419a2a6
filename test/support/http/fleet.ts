import type { KubeClient } from '../../../src/kube/client/client.ts';
import { NODES, type Node } from '../../../src/kube/types.ts';
import { GPU_POOLS, type GpuPoolSpec } from '../../../src/resources/gpu-pool.ts';

/** A simulated node that kwok keeps ready, with the labels GPU Feature Discovery writes. */
export function gpuNode(name: string, product: string, gpus: number): Node {
  const resources = {
    cpu: '96',
    memory: '1024Gi',
    'ephemeral-storage': '4Ti',
    pods: '110',
    'nvidia.com/gpu': String(gpus),
  };
  return {
    metadata: {
      name,
      annotations: { 'kwok.x-k8s.io/node': 'fake' },
      labels: {
        'kubernetes.io/hostname': name,
        'kubernetes.io/arch': 'amd64',
        'kubernetes.io/os': 'linux',
        'berth.dev/simulated': 'true',
        'nvidia.com/gpu.present': 'true',
        'nvidia.com/gpu.product': product,
        'nvidia.com/gpu.count': String(gpus),
        'nvidia.com/gpu.memory': '81559',
        'nvidia.com/cuda.driver-version.full': '550.54.15',
        'nvidia.com/cuda.runtime-version.full': '12.4',
      },
    },
    spec: { taints: [{ key: 'nvidia.com/gpu', value: 'present', effect: 'NoSchedule' }] },
    status: { allocatable: resources, capacity: resources },
  };
}

/** Adds the node; the returned function removes it. */
export async function addNode(client: KubeClient, node: Node): Promise<() => Promise<void>> {
  await client.create(NODES, node);
  await client.patch(
    NODES,
    { name: node.metadata.name },
    { status: node.status },
    { type: 'strategic', subresource: 'status' },
  );
  return () => client.delete(NODES, { name: node.metadata.name });
}

/** A label with which a test keeps a node of its own apart from those of others. */
interface Apart {
  label: string;
  value: string;
}

/** A simulated node of whose GPUs only ResourceSlices tell, for pods that tolerate the label as a taint. */
export function sliceNode(name: string, { label, value }: Apart): Node {
  const { metadata, status } = gpuNode(name, '', 0);
  const { 'nvidia.com/gpu': _none, ...sizes } = status?.allocatable ?? {};
  const labels = Object.entries(metadata.labels ?? {}).filter(([one]) => !one.startsWith('nvidia.com/'));
  return {
    metadata: { ...metadata, labels: { ...Object.fromEntries(labels), [label]: value } },
    spec: { taints: [{ key: label, value, effect: 'NoSchedule' }] },
    status: { allocatable: sizes, capacity: sizes },
  };
}

/** Sells the devices of a class on such nodes; the returned function ends it. */
export async function sellDevices(
  client: KubeClient,
  {
    name,
    deviceClassName,
    partitionClassNames,
    label,
    value,
  }: Apart & { name: string; deviceClassName: string; partitionClassNames?: string[] },
): Promise<() => Promise<unknown>> {
  const spec = {
    nodeSelector: { [label]: value },
    devices: { deviceClassName, ...(partitionClassNames && { partitionClassNames }) },
    tolerations: [{ key: label, operator: 'Exists' }],
    prices: [{ product: '*', onDemand: '36.00', interruptible: '18.00' }],
  };
  await client.create(GPU_POOLS, { metadata: { name }, spec: spec as unknown as GpuPoolSpec });
  return () => client.delete(GPU_POOLS, { name });
}
