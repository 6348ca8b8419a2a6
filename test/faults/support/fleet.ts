import type { KubeClient } from '../../../src/kube/client/client.ts';
import { NODES, PERSISTENT_VOLUMES, STORAGE_CLASSES } from '../../../src/kube/types.ts';
import { GPU_POOLS, gpuPoolSpecSchema } from '../../../src/resources/gpu-pool.ts';
import { waitFor } from '../../support/wait-for.ts';

const LABEL = 'berth.dev/test-fleet';

/** Simulated nodes of a test's own, with a pool and a product that no other node has. */
export interface Fleet extends AsyncDisposable {
  readonly pool: string;
  readonly product: string;
  readonly nodes: readonly string[];
  readonly gpusPerNode: number;
}

export interface FleetShape {
  nodes: number;
  gpusPerNode?: number | undefined;
  /** Nodes that look real, and a StorageClass: instances get PersistentVolumeClaims. There is one volume, for `one`. */
  disks?: boolean | undefined;
}

/** A StorageClass without a provisioner, and a volume for the disk of instance `one` in the namespace of that name. */
async function addStorage(client: KubeClient, name: string): Promise<AsyncDisposable> {
  const provisioner = 'kubernetes.io/no-provisioner';
  await client.create(STORAGE_CLASSES, { metadata: { name }, provisioner });
  await client.create(PERSISTENT_VOLUMES, {
    metadata: { name },
    spec: {
      storageClassName: name,
      capacity: { storage: '1Ti' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Retain',
      hostPath: { path: '/tmp' },
      claimRef: { namespace: name, name: 'one-disk' },
    },
  });
  return {
    async [Symbol.asyncDispose]() {
      await client.delete(PERSISTENT_VOLUMES, { name });
      await client.delete(STORAGE_CLASSES, { name });
    },
  };
}

/** Adds nodes that kwok plays, in a pool of their own, and waits until they are ready. */
export async function addFleet(client: KubeClient, name: string, shape: FleetShape): Promise<Fleet> {
  const { nodes: count, gpusPerNode = 8, disks = false } = shape;
  const storage = disks ? await addStorage(client, name) : undefined;
  const simulated: Record<string, string> = disks ? {} : { 'berth.dev/simulated': 'true' };
  const product = `TEST-${name}`;
  const nodes = Array.from({ length: count }, (_, index) => `${name}-${index}`);
  await client.create(GPU_POOLS, {
    metadata: { name },
    spec: gpuPoolSpecSchema.parse({
      nodeSelector: { [LABEL]: name, ...simulated },
      ...(disks && { disk: { storageClassName: name } }),
      prices: [{ product: '*', onDemand: '3600', interruptible: '1800' }],
    }),
  });
  const amounts = {
    cpu: '64',
    memory: '512Gi',
    pods: '110',
    'ephemeral-storage': '4Ti',
    'nvidia.com/gpu': String(gpusPerNode),
  };
  for (const node of nodes) {
    await client.create(NODES, {
      metadata: {
        name: node,
        annotations: { 'kwok.x-k8s.io/node': 'fake' },
        labels: {
          [LABEL]: name,
          ...simulated,
          'kubernetes.io/hostname': node,
          'nvidia.com/gpu.product': product,
          'nvidia.com/gpu.memory': '81920',
          'nvidia.com/gpu.count': String(gpusPerNode),
        },
      },
      status: { allocatable: amounts, capacity: amounts },
    });
  }
  await waitFor('the nodes of the fleet to be ready', async () => {
    const { items } = await client.list(NODES, { labelSelector: `${LABEL}=${name}` });
    const ready = items.filter(({ status, spec }) => {
      const isReady = status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True');
      // The node controller takes its not-ready taint away a moment after the node is ready.
      return isReady === true && (spec?.taints ?? []).length === 0;
    });
    return ready.length === count;
  });
  return {
    pool: name,
    product,
    nodes,
    gpusPerNode,
    async [Symbol.asyncDispose]() {
      for (const node of nodes) await client.delete(NODES, { name: node });
      await client.delete(GPU_POOLS, { name });
      await storage?.[Symbol.asyncDispose]();
    },
  };
}
