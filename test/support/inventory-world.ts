import { Cache } from '../../src/kube/watch/cache.ts';
import type { DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice } from '../../src/kube/devices.ts';
import type { KubeObject, Node, Pod, StorageClass } from '../../src/kube/types.ts';
import type {
  Claim,
  GpuInstance,
  GpuInstanceSpec,
  GpuInstanceStatus,
} from '../../src/resources/instances/gpu-instance.ts';
import { gpuInstanceSpecSchema } from '../../src/resources/instances/gpu-instance.ts';
import { type GpuPool, gpuPoolSpecSchema } from '../../src/resources/gpu-pool.ts';
import { claimText } from '../../src/resources/pod/claim-on-pod.ts';
import { ownerOf } from '../../src/resources/pod/owner.ts';
import { Inventory } from '../../src/inventory/inventory.ts';
import { claimingCache } from './claiming-cache.ts';

export const A100 = 'NVIDIA-A100-SXM4-80GB';

interface NodeShape {
  labels?: Record<string, string>;
  allocatable?: Record<string, string>;
  ready?: boolean;
  cordoned?: boolean;
  taints?: { key: string; value?: string; effect: string }[];
  images?: string[];
  /** status.runtimeHandlers: whether each can run pods in user namespaces. The default handler has an empty name. */
  userNamespaces?: Record<string, boolean>;
}

/** A node with eight whole GPUs unless told otherwise. */
export function gpuNode(name: string, shape: NodeShape = {}): Node {
  return {
    metadata: {
      name,
      labels: {
        'nvidia.com/gpu.product': A100,
        'nvidia.com/gpu.memory': '81920',
        'nvidia.com/gpu.count': '8',
        ...shape.labels,
      },
    },
    spec: {
      ...(shape.cordoned === true && { unschedulable: true }),
      ...(shape.taints !== undefined && { taints: shape.taints }),
    },
    status: {
      allocatable: { cpu: '64', memory: '512Gi', pods: '110', 'nvidia.com/gpu': '8', ...shape.allocatable },
      conditions: [{ type: 'Ready', status: shape.ready === false ? 'False' : 'True' }],
      images: [{ names: shape.images ?? [], sizeBytes: 1 }],
      ...(shape.userNamespaces !== undefined && {
        runtimeHandlers: Object.entries(shape.userNamespaces).map(([name, userNamespaces]) => ({
          name,
          features: { userNamespaces },
        })),
      }),
    },
  };
}

/** A node with these labels and devices alone. `capacity`: where it is not what is allocatable. */
export function deviceNode(
  name: string,
  labels: Record<string, string>,
  devices: { allocatable: Record<string, string>; capacity?: Record<string, string>; taints?: NodeShape['taints'] },
): Node {
  const { allocatable, capacity = allocatable, taints = [] } = devices;
  const { status } = gpuNode(name);
  const sizes = { cpu: '64', memory: '512Gi', pods: '110' };
  return {
    metadata: { name, labels },
    spec: { taints },
    status: { ...status, allocatable: { ...sizes, ...allocatable }, capacity: { ...sizes, ...capacity } },
  };
}

interface PodShape {
  gpus?: number;
  resource?: string;
  phase?: string;
  instanceUid?: string;
  terminating?: boolean;
}

export function gpuPod(name: string, node: string | undefined, shape: PodShape = {}): Pod {
  const requests = { [shape.resource ?? 'nvidia.com/gpu']: String(shape.gpus ?? 1) };
  return {
    metadata: {
      name,
      namespace: 'default',
      ...(shape.instanceUid !== undefined && { annotations: { 'berth.dev/claim': claimText(shape.instanceUid) } }),
      ...(shape.terminating === true && { deletionTimestamp: '2026-01-01T00:00:00Z' }),
    },
    spec: { containers: [{ name: 'main', resources: { requests } }], ...(node !== undefined && { nodeName: node }) },
    status: { phase: shape.phase ?? 'Running' },
  };
}

export function gpuInstance(
  name: string,
  spec: Partial<GpuInstanceSpec> = {},
  status?: GpuInstanceStatus,
): GpuInstance {
  return {
    metadata: {
      name,
      namespace: 'default',
      uid: `uid-${name}`,
      generation: 1,
      resourceVersion: '1',
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
    spec: gpuInstanceSpecSchema.parse(spec),
    ...(status && { status }),
  };
}

export function claimOn(node: string, over: Partial<Claim> = {}): Claim {
  return {
    offerId: 1,
    pool: 'default',
    node,
    resourceName: 'nvidia.com/gpu',
    product: A100,
    gpuCount: 1,
    memoryMb: 81920,
    isolation: 'whole',
    pricePerHour: '1.00',
    currency: 'USD',
    simulated: false,
    grantedAt: '2026-01-01T00:00:00Z',
    ...over,
  };
}

export function gpuPool(name: string, spec: Partial<GpuPool['spec']> = {}): GpuPool {
  return { metadata: { name }, spec: gpuPoolSpecSchema.parse(spec) };
}

/** The pod of an instance's first start, as the controller makes it with the claim. */
export function claimedPod(instance: GpuInstance, claim: Claim, version = '1'): Pod {
  const text = claimText(undefined, { claim, image: 'debian:12', runtype: 'ssh', diskGb: 10, diskPersistent: false });
  const values = [claim.node];
  const requests = { [claim.resourceName]: String(claim.gpuCount) };
  return {
    metadata: {
      name: `${instance.metadata.name}-1`,
      namespace: instance.metadata.namespace ?? '',
      uid: `uid-${instance.metadata.name}-1`,
      resourceVersion: version,
      labels: { 'berth.dev/instance-uid': instance.metadata.uid ?? '', 'berth.dev/instance': instance.metadata.name },
      ownerReferences: [ownerOf(instance)],
      annotations: { 'berth.dev/claim': text },
    },
    spec: {
      containers: [{ name: 'main', image: 'debian:12', resources: { requests } }],
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values }] }],
          },
        },
      },
    },
    status: { phase: 'Pending' },
  };
}

interface World {
  nodes?: Node[];
  pods?: Pod[];
  pools?: GpuPool[];
  instances?: GpuInstance[];
  storageClasses?: StorageClass[];
  resourceSlices?: ResourceSlice[];
  deviceClasses?: DeviceClass[];
  resourceClaims?: ResourceClaim[];
  deviceTaintRules?: DeviceTaintRule[];
  claimOnPod?: boolean;
  architectures?: ReadonlySet<string>;
}

function cacheOf<T extends KubeObject>(objects: T[] = []) {
  const cache = new Cache<T>({
    onListenerError: (error) => {
      throw error;
    },
  });
  cache.replace(objects, '100');
  return cache;
}

/** An inventory over caches that the test changes. */
export function inventoryOf(world: World, now = Date.UTC(2026, 0, 1)) {
  const pods = cacheOf(world.pods);
  const caches = {
    nodes: cacheOf(world.nodes),
    pods,
    pools: cacheOf(world.pools ?? [gpuPool('default')]),
    instances: world.claimOnPod ? claimingCache(pods, world.instances) : cacheOf(world.instances),
    storageClasses: cacheOf(world.storageClasses),
    resourceSlices: cacheOf(world.resourceSlices),
    deviceClasses: cacheOf(world.deviceClasses),
    resourceClaims: cacheOf(world.resourceClaims),
    deviceTaintRules: cacheOf(world.deviceTaintRules),
  };
  const clock = { at: now, now: () => clock.at, monotonic: () => clock.at };
  const inventory = new Inventory(
    {
      nodes: caches.nodes.store,
      pods: caches.pods.store,
      pools: caches.pools.store,
      instances: caches.instances.store,
      storageClasses: caches.storageClasses.store,
      devices: {
        resourceSlices: caches.resourceSlices.store,
        deviceClasses: caches.deviceClasses.store,
        resourceClaims: caches.resourceClaims.store,
        deviceTaintRules: caches.deviceTaintRules.store,
      },
    },
    clock,
    { architectures: world.architectures },
  );
  return { inventory, caches, clock };
}

/** A request for one on-demand GPU unless told otherwise. */
export function placeRequest(over: Partial<Parameters<Inventory['grant']>[0]> = {}): Parameters<Inventory['grant']>[0] {
  return {
    offerId: undefined,
    gpu: undefined,
    type: 'OnDemand',
    diskGb: 10,
    offerDiskSpace: undefined,
    image: '',
    avoid: new Set(),
    only: undefined,
    ...over,
  };
}
