import { z } from 'zod';
import type { KubeObject } from '../kube/types.ts';
import { ISOLATIONS } from './instances/claim.ts';
import { namedImageSchema, poolPullSecretsSchema } from './instance-template.ts';
import { PRICE } from './money.ts';
import {
  AGE_COLUMN,
  berthType,
  conditionsSchema,
  listMap,
  objectNameSchema,
  patterned,
  runtimeClassNameSchema,
  withRules,
  type CustomResource,
} from './schema.ts';

const priceSchema = patterned(
  z.string().max(14),
  PRICE,
  'write an amount with a point and at most six decimals, for example 2.49',
).describe('Decimal amount, for example "2.49".');

/** Most classes of places that the status lists. */
export const MOST_CLASSES = 64;
/** Kubernetes closes nodes by such taints for as long as something is wrong with them. */
const CLOSING = 'node.kubernetes.io/';
const CLOSES = `taints of ${CLOSING} close a node for a while: leave them out`;
const tolerationSchema = z
  .object({
    key: withRules(
      z
        .string()
        .min(1)
        .max(317)
        .refine((key) => !key.startsWith(CLOSING), CLOSES),
      { rule: `!self.startsWith('${CLOSING}')`, message: CLOSES },
    ).describe('Key of the taint.'),
    operator: z
      .enum(['Exists', 'Equal'])
      .default('Exists')
      .describe('Exists, or absent: any value. Equal: this value.'),
    value: z.string().max(63).optional().describe('Value of the taint, with operator Equal.'),
    effect: z
      .enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute'])
      .optional()
      .describe('Effect of the taint. Absent: any.'),
  })
  .describe('A taint of nodes that instances tolerate.');

const labelNameSchema = (description: string) => z.string().min(1).max(317).optional().describe(description);

const devicesSchema = withRules(
  z.object({
    preset: z
      .enum(['NVIDIA', 'AMD', 'Intel'])
      .optional()
      .describe(
        "Resources and labels of a maker. NVIDIA: nvidia.com/gpu, its MIG slices and replicas, with GPU Feature Discovery. AMD: whole GPUs of ROCm's device plugin, amd.com/gpu or amd.com/spx_nps1, with its node labeller. Intel: gpu.intel.com/i915 and gpu.intel.com/xe, with the rules of its device plugins for Node Feature Discovery.",
      ),
    resourceName: patterned(
      z.string().max(317),
      /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?\/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/,
      'write the name of an extended resource, for example habana.ai/gaudi',
    )
      .optional()
      .describe(
        'Extended resource of other GPUs, instead of a preset. Each piece must be one whole GPU that no other pod gets: Berth cannot see whether a device plugin shares it.',
      ),
    productLabel: labelNameSchema(
      'Node label whose value is the product, instead of that of the preset. If there is neither preset nor label: the name of the resource after its slash. MIG slices keep their names.',
    ),
    memoryLabel: labelNameSchema(
      'Node label with the memory of one GPU as a whole number of memoryUnit, instead of that of the preset. If there is none, the memory of the GPUs is 0: unknown.',
    ),
    memoryUnit: z.enum(['Bytes', 'MiB', 'GiB']).optional().describe('Unit of memoryLabel. Absent: MiB.'),
    deviceClassName: objectNameSchema('write the name of a DeviceClass, for example gpu.nvidia.com')
      .optional()
      .describe(
        'DeviceClass of GPUs that Dynamic Resource Allocation gives out, instead of a preset. Berth reads ResourceSlices. Its devices must be whole GPUs, shared ones, or MIG slices of one profile.',
      ),
    partitionClassNames: z
      .array(objectNameSchema('write the name of a DeviceClass').describe('Name of a DeviceClass.'))
      .max(16)
      .optional()
      .meta({ 'x-kubernetes-list-type': 'set' })
      .describe(
        'DeviceClasses of MIG slices of the same GPUs, one for each profile, for rent as well: a GPU that is rented takes its slices out of the offers, and a slice its GPU.',
      ),
    productAttribute: labelNameSchema(
      'Attribute of the devices that names the product. Absent: productName, and model for the driver gpu.example.com. If the devices have none, the product is the name of the class.',
    ),
    memoryCapacity: labelNameSchema('Capacity of the devices that is their memory. Absent: memory.'),
  }),
  {
    rule: '[has(self.preset), has(self.resourceName), has(self.deviceClassName)].filter(named, named).size() == 1',
    message: 'name exactly one of preset, resourceName and deviceClassName',
  },
  {
    rule: '!has(self.deviceClassName) || !(has(self.productLabel) || has(self.memoryLabel))',
    message: 'devices of a deviceClassName have attributes: name no label',
  },
  {
    rule: 'has(self.deviceClassName) || !(has(self.productAttribute) || has(self.memoryCapacity))',
    message: 'only devices of a deviceClassName have attributes and capacities',
  },
  {
    rule: 'has(self.deviceClassName) || !has(self.partitionClassNames)',
    message: 'partitionClassNames are slices of the GPUs of a deviceClassName: name one',
  },
  {
    rule: '!has(self.memoryUnit) || has(self.memoryLabel)',
    message: 'memoryUnit is the unit of a memoryLabel: name one',
  },
);

export const gpuPoolSpecSchema = z.object({
  nodeSelector: z
    .record(z.string().max(317), z.string().max(63).describe('Value of the label.'))
    .default({})
    .describe('Labels that a node must have to be in this pool. Empty selects every node with GPUs.'),
  devices: devicesSchema
    .optional()
    .describe(
      'Which resources of the nodes are the GPUs of this pool, and which labels tell what they are. Absent: those of NVIDIA. A node with GPUs of two makers is in one pool, and only the GPUs of that pool are for rent.',
    ),
  tolerations: z
    .array(tolerationSchema)
    .max(16)
    .optional()
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .describe(
      'Taints of the nodes of this pool that its instances tolerate, besides those with the name of its GPU resource, such as nvidia.com/gpu. A node with another taint has no free place.',
    ),
  sizes: z
    .array(z.int().min(1).max(64).describe('Number of GPUs.'))
    .min(1)
    .max(16)
    .default([1, 2, 4, 8])
    .meta({ 'x-kubernetes-list-type': 'set' })
    .describe('How many whole GPUs one instance may have.'),
  currency: patterned(z.string().max(3), /^[A-Z]{3}$/, 'write three capital letters, for example USD')
    .default('USD')
    .describe('ISO 4217 code of every price in this pool.'),
  prices: z
    .array(
      z
        .object({
          product: z
            .string()
            .max(128)
            .describe(
              'GPU product as the offers name it: the value of the node label nvidia.com/gpu.product, or of the label of spec.devices. * for every other product: the price of * is that of a whole GPU, of which a slice costs its part.',
            ),
          onDemand: priceSchema.describe('Price per GPU (or MIG slice) and hour of an OnDemand instance.'),
          interruptible: priceSchema.describe('Price per GPU (or MIG slice) and hour of an Interruptible instance.'),
        })
        .describe('Prices of one product.'),
    )
    .max(128)
    .default([])
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['product'] })
    .describe('Prices by product. A product without a price costs 0.'),
  disk: z
    .object({
      maxGb: z.int().min(1).max(16384).default(1024).describe('Largest disk of one instance, in GB.'),
      storageClassName: z
        .string()
        .max(253)
        .optional()
        .describe('StorageClass of the disks. Absent: the default class.'),
    })
    .default({ maxGb: 1024 })
    .describe('Disks of the instances in this pool.'),
  images: z
    .array(namedImageSchema)
    .max(32)
    .default([])
    .meta({ 'x-kubernetes-list-type': 'set' })
    .describe(
      'Images to keep on the nodes, so that instances start without waiting for them. The first is pulled first. Simulated nodes and nodes that take no instances now pull nothing.',
    ),
  imagePullSecrets: poolPullSecretsSchema.optional(),
  runtimeClassName: runtimeClassNameSchema(
    'RuntimeClass of the instances, for example nvidia or kata. No instance can leave it.',
  ).optional(),
  userNamespaces: z
    .enum(['Never', 'Preferred', 'Required'])
    .default('Never')
    .describe(
      'Whether pods run in a user namespace of their own. Preferred: where the node says that its container runtime can. Required: only such nodes are for rent. A tenant or an instance that requires one gets it whatever stands here. First try a pod with hostUsers: false and a GPU, because not every NVIDIA Container Toolkit starts one.',
    ),
});

export const gpuPoolStatusSchema = z.object({
  observedGeneration: z.int().optional().describe('metadata.generation that the status is for.'),
  conditions: conditionsSchema.optional(),
  nodes: z.int().optional().describe('Nodes in the pool.'),
  gpus: z.int().optional().describe('GPUs and MIG slices of the pool, free or not.'),
  free: z.int().optional().describe('GPUs and MIG slices that are free now.'),
  offers: z.int().optional().describe('Offers of the pool.'),
  images: listMap(
    z.array(
      z
        .object({
          image: z.string().describe('Image of spec.images.'),
          nodes: z.int().describe('Nodes that should have it: those that take instances now, simulated ones aside.'),
          present: z.int().describe('How many of these have it.'),
          failing: z.int().describe('How many of these could not pull it. The controller tries again.'),
          message: z.string().optional().describe('The message of the kubelet when the last pull failed.'),
        })
        .describe('One image.'),
    ),
    'image',
  )
    .optional()
    .describe('Where the images of spec.images are.'),
  classes: z
    .array(
      z
        .object({
          offerId: z.int().describe('Id of the offer: spec.offerId of an instance.'),
          product: z.string().describe('GPU product.'),
          gpuCount: z.int().describe('GPUs or MIG slices of one instance.'),
          memoryMb: z.int().describe('Memory of one GPU or slice in MiB.'),
          isolation: z.enum(ISOLATIONS).describe('whole, mig or time_sliced.'),
          migProfile: z.string().optional().describe('MIG profile.'),
          simulated: z.boolean().describe('True on simulated nodes, where no container runs.'),
          free: z.int().describe('Instances that could start now.'),
          onDemand: z.string().describe('Price of an OnDemand instance per hour.'),
          interruptible: z.string().describe('Price of an Interruptible instance per hour.'),
        })
        .describe('One class of identical places.'),
    )
    .max(MOST_CLASSES)
    .optional()
    .describe(`The GPUs that the pool rents out, by product and size: the first ${MOST_CLASSES} of its offers.`),
  summary: z.string().optional().describe('The first classes in words, for kubectl get.'),
});

export type PoolDevices = z.infer<typeof devicesSchema>;

/** The DeviceClasses that a pool sells. */
export function deviceClassNamesOf(devices: PoolDevices | undefined): readonly string[] {
  const { deviceClassName, partitionClassNames = [] } = devices ?? {};
  return deviceClassName === undefined ? [] : [...new Set([deviceClassName, ...partitionClassNames])];
}
export type Toleration = z.infer<typeof tolerationSchema>;
export type GpuPoolSpec = z.infer<typeof gpuPoolSpecSchema>;
export type GpuPoolStatus = z.infer<typeof gpuPoolStatusSchema>;
export interface GpuPool extends KubeObject {
  spec: GpuPoolSpec;
  status?: GpuPoolStatus;
}

export const GPU_POOLS = berthType<GpuPool>('GPUPool', 'gpupools', false);

/** Annotation of the leader's Lease: there was a GPUPool once, so none is made any more. */
export const HAD_POOL = 'berth.dev/had-pool';

/** Another text after each change of the spec. Unlike its resource version, it stays when the status changes. */
export const specVersion = ({ metadata: { uid, generation } }: GpuPool): string => `${uid}/${generation}`;

export const gpuPoolResource: CustomResource = {
  ...GPU_POOLS,
  shortNames: ['gpool'],
  description: 'Nodes for rent, in which sizes and at which prices.',
  columns: [
    { name: 'Nodes', type: 'integer', jsonPath: '.status.nodes' },
    { name: 'GPUs', type: 'integer', jsonPath: '.status.gpus' },
    { name: 'Free', type: 'integer', jsonPath: '.status.free' },
    { name: 'Offers', type: 'integer', jsonPath: '.status.offers' },
    { name: 'Currency', type: 'string', jsonPath: '.spec.currency' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Isolated', type: 'string', jsonPath: '.status.conditions[?(@.type=="Isolated")].status' },
    { name: 'Classes', type: 'string', jsonPath: '.status.summary' },
    AGE_COLUMN,
  ],
  spec: gpuPoolSpecSchema,
  status: gpuPoolStatusSchema,
};
