import { z } from 'zod';
import { isolationSchema, moneySchema, named, timeSchema } from '../../interface/schema.ts';

const countSchema = z.int().min(0);

const holderSchema = z
  .object({
    id: z.string(),
    namespace: z.string().describe('The tenant.'),
    state: z.string().describe('As in the record of the instance.'),
    type: z.union([z.literal(0), z.literal(1)]).describe('0: on demand. 1: interruptible.'),
    gpu_count: countSchema,
    unhealthy_gpus: z
      .array(z.string())
      .describe(
        'Ids of those of its GPUs that the kubelet reports as unhealthy, or that have a taint in ResourceSlices. Before Kubernetes 1.36 the kubelet reports none.',
      ),
    devices: z
      .array(z.object({ driver: z.string(), pool: z.string(), device: z.string(), uuid: z.string().nullable() }))
      .describe('Its GPUs, where Dynamic Resource Allocation gave them out; otherwise empty.'),
  })
  .describe('An instance that has GPUs of the node.');

const gpusSchema = z
  .object({
    gpu_name: z.string(),
    resource: z.string().describe('Extended resource, for example nvidia.com/gpu.'),
    isolation: isolationSchema,
    memory_mb: countSchema,
    total: countSchema.describe('GPUs or slices, healthy or not.'),
    unhealthy: countSchema.describe('Those that the device plugin has taken out of service.'),
    others: countSchema.describe('Those that pods without an instance have.'),
    free: countSchema.describe('Those that nothing has. They are for rent when the state of the node is ready.'),
    instances: z.array(holderSchema),
  })
  .describe('The GPUs of one kind on one node.');

const nodeSchema = z
  .object({
    name: z.string(),
    pool: z.string().nullable().describe('null: not for rent.'),
    state: z
      .enum(['ready', 'not_ready', 'cordoned', 'closed', 'quarantined', 'not_for_rent'])
      .describe('Why nothing new is placed here, or ready.'),
    message: z.string().describe('The same in words; empty for ready.'),
    simulated: z.boolean(),
    created_at: timeSchema.describe('When the node joined the cluster.'),
    driver_version: z.string().nullable(),
    cuda_version: z.string().nullable(),
    gpus: z.array(gpusSchema),
  })
  .describe('A node with GPUs.');

const poolSchema = z
  .object({
    name: z.string(),
    version: z
      .string()
      .nullable()
      .describe('Another one after each change of the spec; null when the GPUPool is gone.'),
    currency: z.string(),
    sizes: z.array(countSchema).describe('How many whole GPUs one instance may have.'),
    nodes: countSchema,
    gpus: countSchema,
    free: countSchema.describe('GPUs and slices that could be rented now.'),
    prices: z.array(
      z.object({
        gpu_name: z.string().describe('* for every other.'),
        on_demand: moneySchema,
        interruptible: moneySchema,
      }),
    ),
  })
  .describe('A GPUPool. When there is none, all GPU nodes are in the pool default, at no price.');

const ceilingSchema = z
  .object({
    pool: z.string().describe('* for all together.'),
    gpu_name: z.string().describe('* for all together.'),
    max: countSchema,
  })
  .describe('How many GPUs of one product in one pool a tenant may hold at once.');

const tenantSchema = z
  .object({
    namespace: z.string(),
    policies: z.array(z.string()).describe('TenantPolicies that its ceilings come from. Empty: the defaults.'),
    gpu_ceilings: z.array(ceilingSchema).describe('From its TenantLimit. Empty: none.'),
    instances_max: countSchema.nullable().describe('From its TenantLimit. null: it has none yet.'),
    instances: countSchema,
    gpus: countSchema.describe('GPUs and slices that its instances have.'),
    waiting: countSchema.describe('Instances that wait for a place.'),
  })
  .describe('A tenant.');

const waitingSchema = z
  .object({
    id: z.string(),
    namespace: z.string(),
    type: z.union([z.literal(0), z.literal(1)]),
    gpu_name: z.string().nullable(),
    gpu_count: countSchema,
    state: z.string(),
    message: z.string().describe('Why it waits, in words.'),
    created_at: timeSchema,
  })
  .describe('An instance that waits for a place.');

const displacedSchema = z
  .object({
    id: z.string(),
    namespace: z.string(),
    gpu_name: z.string().nullable(),
    gpu_count: countSchema,
    by: z
      .object({ id: z.string(), namespace: z.string() })
      .nullable()
      .describe('The on-demand instance that took the GPUs. null: it is gone, or the scheduler took them.'),
    at: timeSchema,
  })
  .describe('An interruptible instance that lost its GPUs, and has no others yet.');

export const fleetSchema = named(
  'Fleet',
  z
    .object({
      object: z.literal('fleet'),
      nodes: z.array(nodeSchema).describe('By name.'),
      pools: z.array(poolSchema).describe('By name.'),
      tenants: z.array(tenantSchema).describe('The one with the most GPUs first.'),
      waiting: z.array(waitingSchema).describe('In the order in which they are served; the first 200.'),
      waiting_total: countSchema,
      displaced: z.array(displacedSchema).describe('The last one first; at most 200.'),
    })
    .describe('All nodes with GPUs, who has them, and who waits for some.'),
);

export type FleetRecord = z.infer<typeof fleetSchema>;
export type FleetNode = FleetRecord['nodes'][number];
export type FleetGpus = FleetNode['gpus'][number];
