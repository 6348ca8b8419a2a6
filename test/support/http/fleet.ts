import type { KubeClient } from '../../../src/kube/client/client.ts';
import { NODES, type Node } from '../../../src/kube/types.ts';

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
