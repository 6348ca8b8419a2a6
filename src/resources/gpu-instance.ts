import { z } from 'zod';
import type { KubeObject, ResourceType } from '../kube/types.ts';
import {
  commandSchema,
  diskGbSchema,
  envSchema,
  imageSchema,
  onStartSchema,
  portsSchema,
  runtypeSchema,
} from './instance-template.ts';
import {
  AGE_COLUMN,
  conditionsSchema,
  durationSchema,
  patterned,
  GROUP,
  runtimeClassNameSchema,
  timeSchema,
  VERSION,
  withRules,
  type CustomResource,
  type Rule,
} from './schema.ts';

/**
 * On an instance whose client has no answer yet: until when the answer is due (RFC 3339). Removed just before the 201;
 * an instance that still has it some time later is removed, because nobody knows of it.
 */
export const CONFIRM_BY = 'berth.dev/confirm-by';

/** Annotation: when somebody last used the instance, RFC 3339. The gateways write it where there is an idleTimeout. */
export const LAST_ACTIVITY = 'berth.dev/last-activity';

export const INSTANCE_TYPES = ['OnDemand', 'Interruptible'] as const;
export const ISOLATIONS = ['whole', 'mig', 'time_sliced'] as const;
export type Isolation = (typeof ISOLATIONS)[number];

function setOnce(field: string): Rule {
  return {
    rule: `!has(oldSelf.${field}) || (has(self.${field}) && self.${field} == oldSelf.${field})`,
    message: `${field} cannot change once set: it would be another machine. Delete this instance and create another`,
    fieldPath: `.${field}`,
  };
}

export const gpuInstanceSpecSchema = withRules(
  z.object({
    type: z
      .enum(INSTANCE_TYPES)
      .default('OnDemand')
      .describe('OnDemand keeps its GPUs. Interruptible is cheaper; on-demand instances may take its GPUs away.'),
    offerId: z
      .int()
      .min(1)
      .max(2147483647)
      .optional()
      .describe('The offer to rent (ask_id of the HTTP interface). Absent: the cheapest free offer that fits gpu.'),
    gpu: z
      .object({
        product: z.string().max(128).optional().describe('Product as node label nvidia.com/gpu.product names it.'),
        count: z.int().min(1).max(64).default(1).describe('Number of GPUs, or of MIG slices.'),
        migProfile: patterned(
          z.string().max(32),
          /^[0-9]+g\.[0-9]+gb(\.me)?$/,
          'write the profile as NVIDIA names it, for example 1g.10gb',
        )
          .optional()
          .describe('MIG profile, for example 1g.10gb.'),
        isolation: z.enum(ISOLATIONS).optional().describe('whole, mig or time_sliced. Absent: any.'),
      })
      .optional()
      .describe('Which GPU to rent when no offerId is given. What is left out may be anything.'),
    displayName: z.string().max(128).optional().describe('Name shown to people.'),
    label: z.string().max(255).optional().describe('Free text of the owner.'),
    stats: z.string().max(4096).optional().describe('Free text kept with the instance, as the HTTP client sent it.'),
    templateId: z.int().optional().describe('Numeric id of the InstanceTemplate to start from.'),
    templateHashId: z.string().max(64).optional().describe('Content hash of the InstanceTemplate to start from.'),
    image: imageSchema.optional(),
    runtype: runtypeSchema.optional(),
    command: commandSchema.optional().describe('Replaces the entrypoint of the image (runtype args).'),
    args: commandSchema.optional().describe('Replaces the arguments of the image (runtype args).'),
    onStart: onStartSchema.optional(),
    env: envSchema.optional(),
    ports: portsSchema.optional(),
    diskGb: diskGbSchema.optional(),
    offerDiskSpace: z
      .number()
      .min(0)
      .max(1048576)
      .optional()
      .describe('Disk in GB that the client saw in the offer; a claim is refused when the offer now has less.'),
    installMonitoring: z.boolean().default(false).describe('Runs a GPU metrics exporter beside the instance.'),
    sshKeyIds: z
      .array(z.int().min(1).describe('Id of an SSHKey (its status.id).'))
      .max(64)
      .optional()
      .meta({ 'x-kubernetes-list-type': 'set' })
      .describe('Ids of the SSHKeys that open this instance. Absent or empty: all keys of the namespace.'),
    powerState: z
      .enum(['Running', 'Stopped'])
      .default('Running')
      .describe('Stopped frees the GPUs and keeps the disk; Running starts it again.'),
    onNoCapacity: z
      .enum(['Queue', 'Fail'])
      .default('Queue')
      .describe('What to do when no GPU is free: wait in line, or fail.'),
    maxDuration: durationSchema('Longest time the instance may run, for example 12h.').optional(),
    idleTimeout: durationSchema('Stops the instance after this long without a session, for example 30m.').optional(),
    onExpiry: z.enum(['Stop', 'Delete']).default('Stop').describe('What maxDuration and idleTimeout do.'),
    diskPolicy: z
      .enum(['Delete', 'Retain'])
      .default('Delete')
      .describe('What becomes of the disk when the instance is deleted.'),
    runtimeClassName: runtimeClassNameSchema('RuntimeClass of the pod, for example kata.').optional(),
    hostUsers: z.boolean().optional().describe('false runs the pod in a user namespace of its own.'),
  }),
  setOnce('offerId'),
  setOnce('gpu'),
  setOnce('diskGb'),
  {
    rule: 'self.type == oldSelf.type',
    message: 'type cannot change: delete this instance and create another',
    fieldPath: '.type',
  },
  {
    rule: '!has(self.gpu) || !has(self.gpu.migProfile) || !has(self.gpu.isolation) || self.gpu.isolation == "mig"',
    message: 'migProfile goes with isolation mig: leave isolation out or write mig',
    fieldPath: '.gpu',
  },
  {
    rule: '!(has(self.command) || has(self.args)) || !has(self.runtype) || self.runtype == "args"',
    message: 'command and args need runtype: args; with ssh and jupyter write onStart instead',
    fieldPath: '.runtype',
  },
);

export const claimSchema = z.object({
  offerId: z.int().describe('The offer the place belongs to.'),
  pool: z.string().describe('The GPUPool the offer belongs to.'),
  node: z.string().describe('The node that was granted.'),
  resourceName: z.string().describe('Extended resource, for example nvidia.com/gpu.'),
  product: z.string().describe('GPU product.'),
  gpuCount: z.int().describe('Number of GPUs or MIG slices.'),
  memoryMb: z.int().describe('Memory of one GPU or slice in MiB.'),
  isolation: z.enum(ISOLATIONS).describe('whole, mig or time_sliced.'),
  migProfile: z.string().optional().describe('MIG profile.'),
  pricePerHour: z.string().describe('Price of the instance per hour, locked when granted.'),
  currency: z.string().describe('Currency of the price.'),
  simulated: z.boolean().default(false).describe('True on simulated nodes, where no container really runs.'),
  diskGbMax: z.int().optional().describe('Disk the offer had when granted, in GB.'),
  grantedAt: timeSchema.describe('When the place was granted.'),
});

export const STAGES = ['accepted', 'claimed', 'scheduled', 'pulled', 'started', 'ready', 'stopped'] as const;

export const gpuInstanceStatusSchema = z.object({
  observedGeneration: z.int().optional().describe('metadata.generation the status was written for.'),
  conditions: conditionsSchema.optional(),
  claim: claimSchema.optional().describe('The place that was granted. Absent while waiting and while stopped.'),
  incarnation: z.int().min(0).optional().describe('How many pods this instance has had.'),
  podName: z.string().optional().describe('Name of the pod of the current incarnation.'),
  podUid: z.string().optional().describe('uid of the pod of the current incarnation, once it was seen.'),
  podIP: z.string().optional().describe('Address of the pod.'),
  image: z.string().optional().describe('Image in use after template and defaults.'),
  runtype: runtypeSchema.optional(),
  diskGb: z.int().optional().describe('Size of the disk in GB.'),
  diskPersistent: z.boolean().optional().describe('Whether the disk survives a stop.'),
  ssh: z
    .object({
      host: z.string().describe('Host of the SSH gateway.'),
      port: z.int().describe('Port of the SSH gateway.'),
      user: z.string().describe('User name to log in with.'),
      knownHosts: z.string().optional().describe('Line for known_hosts.'),
    })
    .optional()
    .describe('How to log in.'),
  stages: z
    .partialRecord(z.enum(STAGES), timeSchema.describe('When the stage was reached.'))
    .optional()
    .describe('When each stage of the current start was reached.'),
  firstReady: timeSchema.optional().describe('When the instance was up for the first time.'),
  lastProduct: z
    .object({
      product: z.string().describe('GPU product.'),
      gpuCount: z.int().describe('Number of GPUs or MIG slices.'),
    })
    .optional()
    .describe('GPUs of the last start, kept when the claim is given back.'),
  usage: z
    .object({
      gpuSeconds: z.number().describe('GPU seconds of the starts that have ended.'),
      cost: z.string().describe('Cost of the starts that have ended.'),
      currency: z.string().describe('Currency of cost.'),
    })
    .optional()
    .describe('What the instance has used, the running start not counted.'),
  ending: z
    .object({
      reason: z.string().describe('CamelCase word for what ended it.'),
      message: z.string().describe('Explanation for people.'),
      at: timeSchema.describe('When it was decided or seen; the meter stops here.'),
      generation: z.int().optional().describe('metadata.generation it was decided for.'),
    })
    .optional()
    .describe('Why the current start is being given up or, without a claim, why the last one ended.'),
  failures: z
    .object({
      count: z.int().describe('Failed starts in a row.'),
      lastTime: timeSchema.describe('When the last start failed.'),
      nodes: z
        .array(z.string().describe('Name of a node.'))
        .max(16)
        .optional()
        .describe('Nodes avoided for a while because a start failed there.'),
    })
    .optional()
    .describe('Failed starts since the last good one; they set the waiting time before the next.'),
});

export type GpuInstanceSpec = z.infer<typeof gpuInstanceSpecSchema>;
export type Claim = z.infer<typeof claimSchema>;
export type GpuInstanceStatus = z.infer<typeof gpuInstanceStatusSchema>;
export interface GpuInstance extends KubeObject {
  spec: GpuInstanceSpec;
  status?: GpuInstanceStatus;
}

export const GPU_INSTANCES: ResourceType<GpuInstance> = {
  group: GROUP,
  version: VERSION,
  kind: 'GPUInstance',
  plural: 'gpuinstances',
  namespaced: true,
};

export const gpuInstanceResource: CustomResource = {
  kind: 'GPUInstance',
  plural: 'gpuinstances',
  singular: 'gpuinstance',
  shortNames: ['gpui'],
  scope: 'Namespaced',
  description: 'One rented GPU instance.',
  columns: [
    { name: 'State', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
    { name: 'GPU', type: 'string', jsonPath: '.status.claim.product' },
    { name: 'Count', type: 'integer', jsonPath: '.status.claim.gpuCount' },
    { name: 'Node', type: 'string', jsonPath: '.status.claim.node' },
    { name: 'Type', type: 'string', jsonPath: '.spec.type' },
    { name: 'Price', type: 'string', jsonPath: '.status.claim.pricePerHour' },
    { name: 'Image', type: 'string', jsonPath: '.status.image', priority: 1 },
    { name: 'Pod', type: 'string', jsonPath: '.status.podName', priority: 1 },
    { name: 'Message', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].message', priority: 1 },
    AGE_COLUMN,
  ],
  spec: gpuInstanceSpecSchema,
  status: gpuInstanceStatusSchema,
  rules: [
    {
      rule: 'size(self.metadata.name) <= 52',
      message: 'metadata.name may have 52 characters: pods add a suffix to it',
    },
  ],
};
