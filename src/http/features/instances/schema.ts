import { z } from 'zod';
import {
  hasPlainPath,
  PLAIN_PATH_HINT,
  REQUESTED_IMAGE_HINT,
  REQUESTED_IMAGE_PATTERN,
} from '../../../resources/image.ts';
import { gpuInstanceSpecSchema, STAGES } from '../../../resources/instances/gpu-instance.ts';
import { type InstanceState, READY_REASONS, type ReadyReason } from '../../../resources/instances/instance-state.ts';
import { formed } from '../../../resources/schema.ts';
import {
  anyIntegerSchema,
  deletedOf,
  isolationSchema,
  LIMITS,
  listOf,
  moneySchema,
  named,
  textSchema,
  timeSchema,
  wellFormed,
} from '../../interface/schema.ts';
import { checkProgram, runFields } from './run-schema.ts';

const spec = gpuInstanceSpecSchema.shape;

const STATES = [...new Set(Object.values(READY_REASONS).map(({ state }) => state))] as [
  InstanceState,
  ...InstanceState[],
];
const REASONS = Object.keys(READY_REASONS) as [ReadyReason, ...ReadyReason[]];

const POWER_STATES = ['running', 'stopped'] as const;
const EXPIRY = ['stop', 'delete'] as const;
const DISK_POLICIES = ['delete', 'retain'] as const;
const NO_CAPACITY = ['fail', 'queue'] as const;
const GPU_FAILURE = ['keep', 'restart'] as const;

const gpu = spec.gpu.unwrap().shape;

const wantedGpuSchema = z
  .strictObject(
    {
      name: wellFormed(gpu.product.unwrap()).describe('gpu_name of an offer.').nullish(),
      count: gpu.count.unwrap().describe('Number of GPUs, or of MIG slices: 1 (default) or more.').nullish(),
      memory_mb: gpu.memoryMb.unwrap().describe('Least memory of one GPU or MIG slice, in MiB.').nullish(),
      isolation: isolationSchema.nullish(),
      mig_profile: gpu.migProfile.unwrap().describe('MIG profile, for example 1g.10gb.').nullish(),
    },
    formed('an object such as {"name": "NVIDIA-L4", "count": 1}'),
  )
  .superRefine(({ isolation, mig_profile: profile }, context) => {
    if (!profile || !isolation || isolation === 'mig') return;
    const message = 'expected mig, or no isolation, with mig_profile';
    context.addIssue({ code: 'custom', path: ['isolation'], message });
  })
  .describe('Which GPUs to rent, in place of an ask_id: the cheapest free offer that fits.');

const maxDurationSchema = spec.maxDuration.unwrap();
const idleTimeoutSchema = spec.idleTimeout.unwrap();
const maxPriceSchema = spec.maxPricePerHour.unwrap();
const expirySchema = z
  .enum(EXPIRY)
  .describe('The action after max_duration or idle_timeout. stop (default) keeps a disk that survives a stop.');

const gpuFailureSchema = z
  .enum(GPU_FAILURE)
  .describe(
    'The action when a GPU stays unhealthy for a minute. keep (default): nothing, and the instance is still billed. restart: the start ends, and another begins on healthy GPUs; what is in memory is lost.',
  );

const sshKeyIdsSchema = z
  .array(z.int(formed('an id, which is an integer')), formed('an array of ids such as [1234567890]'))
  .max(LIMITS.sshKeyIds);

export const createInstanceSchema = named(
  'CreateInstance',
  z
    .strictObject({
      type: z
        .literal([0, 1])
        .meta({ type: 'integer' })
        .describe('0: on demand (default). 1: interruptible, cheaper.')
        .nullish(),
      ask_id: anyIntegerSchema.describe('Id of the offer to rent. Absent: the cheapest free one.').nullish(),
      name: textSchema().max(LIMITS.name).describe('Name for people.').nullish(),
      stats: textSchema().describe('Free text that is kept with the instance and returned unchanged.').nullish(),
      template_image: z
        .string()
        .max(LIMITS.templateImage, { abort: true })
        .regex(REQUESTED_IMAGE_PATTERN, REQUESTED_IMAGE_HINT)
        .refine(hasPlainPath, PLAIN_PATH_HINT)
        .describe('Container image. Empty: the image of the template, else the default image.')
        .nullish(),
      template_id: anyIntegerSchema.describe('Id of an InstanceTemplate.').nullish(),
      template_hash_id: z
        .string()
        .max(LIMITS.templateHashId)
        .describe('Content hash of an InstanceTemplate. Empty means none.')
        .nullish(),
      runtype: textSchema()
        .describe(
          'ssh (default), jupyter or args, or as Vast.ai clients spell them. Any other text is kept, runs as ssh, and stands in `warnings`.',
        )
        .nullish(),
      disk_gb: z
        .int()
        .min(LIMITS.diskGb.min)
        .max(LIMITS.diskGb.max)
        .describe('Size of the disk at /workspace in GB.')
        .nullish(),
      offer_disk_space: z
        .number()
        .min(LIMITS.offerDiskSpace.min)
        .max(LIMITS.offerDiskSpace.max)
        .describe('disk_gb_max of the offer as the client saw it. If it is less now, the answer is 409 offer_changed.')
        .nullish(),
      install_monitoring: z
        .boolean()
        .describe('Measure the instance from inside: GET /instances/{instanceId}/metrics.')
        .nullish(),
      ssh_key_ids: sshKeyIdsSchema
        .describe('SSH keys that open the instance. Absent or empty: all keys of the tenant.')
        .nullish(),
      gpu: wantedGpuSchema.nullish(),
      ...runFields,
      run_as_root: z
        .boolean()
        .describe(
          'Programs and sessions are those of root, whatever user the image names. When false, sudo does nothing in an image with a user of its own.',
        )
        .nullish(),
      max_duration: maxDurationSchema.nullish(),
      idle_timeout: idleTimeoutSchema.nullish(),
      on_expiry: expirySchema.nullish(),
      on_gpu_failure: gpuFailureSchema.nullish(),
      on_no_capacity: z
        .enum(NO_CAPACITY)
        .describe('The action when no place is free. fail (default): 409. queue: 201, and the instance waits in line.')
        .nullish(),
      max_price_per_hour: maxPriceSchema
        .describe(
          'Most that a start may cost per hour. Absent: the price that the answer shows. An instance that would cost more later waits.',
        )
        .nullish(),
      disk_policy: z
        .enum(DISK_POLICIES)
        .describe('The action for the disk when the instance is deleted: delete (default) or retain.')
        .nullish(),
    })
    .superRefine((body, context) => {
      checkProgram(body, context);
      if (!body.gpu || (body.ask_id ?? undefined) === undefined) return;
      const message = 'expected either ask_id or gpu: an offer has its GPUs';
      context.addIssue({ code: 'custom', path: ['gpu'], message });
    })
    .describe('The instance to rent. Every field, and the whole body, may be absent or null.'),
);

export const updateInstanceSchema = named(
  'UpdateInstance',
  z
    .strictObject({
      label: textSchema().max(LIMITS.label).describe('Free text; null clears it.').nullish(),
      name: textSchema().max(LIMITS.name).describe('Name for people; null clears it.').nullish(),
      state: z
        .enum(POWER_STATES)
        .describe('stopped frees the GPUs and keeps a disk that survives a stop; running starts the instance again.')
        .nullish(),
      max_duration: maxDurationSchema
        .describe('Longest time of each start, from when its container first ran; null: no end.')
        .nullish(),
      idle_timeout: idleTimeoutSchema.describe('Longest time without a session; null: no end.').nullish(),
      on_expiry: expirySchema.nullish(),
      on_gpu_failure: gpuFailureSchema.nullish(),
      max_price_per_hour: maxPriceSchema
        .describe('Most that a start may cost per hour, from the next one on; null: the price that was seen at first.')
        .nullish(),
      ssh_key_ids: sshKeyIdsSchema
        .describe('SSH keys that open the instance from now on. null or empty: all keys of the tenant.')
        .nullish(),
    })
    .describe('The fields to change. An absent field keeps its value.'),
);

const portSchema = z.object({
  container_port: z.int(),
  protocol: z.enum(['tcp', 'udp']),
  name: z.string().nullable(),
});

export const instanceSchema = named(
  'Instance',
  z
    .object({
      id: z.string(),
      object: z.literal('instance'),
      name: z.string().nullable(),
      label: z.string().nullable(),
      type: z.literal([0, 1]).meta({ type: 'integer' }).describe('0: on demand, 1: interruptible.'),
      state: z.enum(STATES).describe('The state of the instance now.'),
      desired_state: z.enum(POWER_STATES).describe('The state that the instance is meant to reach; PATCH changes it.'),
      reason: z.enum(REASONS).describe('For programs: why it is in this state.'),
      message: z.string().describe('For people: why it is in this state, as the scheduler or the kubelet reports it.'),
      stages: z.partialRecord(z.enum(STAGES), timeSchema).describe('When this start reached each stage.'),
      offer_id: z.int().nullable(),
      gpu_name: z.string().nullable(),
      gpu_count: z.int(),
      gpu_memory_mb: z.int().nullable(),
      isolation: isolationSchema.nullable(),
      mig_profile: z.string().nullable(),
      node: z.string().nullable(),
      simulated: z.boolean(),
      driver_version: z.string().nullable(),
      cuda_version: z.string().nullable(),
      template_image: z.string().describe('The image in use.'),
      template_id: z.int().nullable(),
      template_hash_id: z.string().nullable(),
      template_changed: z
        .boolean()
        .nullable()
        .describe(
          'Whether the template was edited, deleted or withdrawn since the instance was rented. The instance keeps what it was rented with. null without a template.',
        ),
      runtype: z
        .string()
        .describe('ssh, jupyter or args; a text that is none of these as it was sent, see `warnings`.'),
      disk_gb: z.int().nullable(),
      disk_persistent: z.boolean().nullable().describe('Whether the disk survives a stop.'),
      offer_disk_space: z.number().nullable(),
      install_monitoring: z.boolean(),
      run_as_root: z.boolean(),
      stats: z.string().nullable(),
      ssh_key_ids: z.array(z.int()),
      price_per_hour: moneySchema
        .nullable()
        .describe('Fixed when the place was granted. While it has no place (node is null): what it was rented for.'),
      currency: z.string().nullable(),
      max_price_per_hour: moneySchema
        .nullable()
        .describe('Most that a start may cost per hour: as it was sent, else the price that was seen at first.'),
      usage: z
        .object({ gpu_seconds: z.number(), cost: z.string(), currency: z.string() })
        .nullable()
        .describe('Use and cost of the starts that have ended.'),
      ssh: z
        .object({
          host: z.string(),
          port: z.int(),
          user: z.string(),
          command: z.string().describe('The command to connect.'),
          known_hosts: z.string().nullable().describe('Line for known_hosts. With it, ssh can check the host key.'),
        })
        .nullable(),
      ports: z.array(portSchema),
      env_names: z
        .array(z.string())
        .describe(
          'Names of the variables that the instance was given besides those of its template. No record has a value.',
        ),
      command: z.array(z.string()).nullable().describe('As it was sent. null: as the template or the image has it.'),
      args: z.array(z.string()).nullable().describe('As it was sent. null: as the template or the image has it.'),
      has_on_start: z.boolean().describe('Whether the instance has a start script of its own, which no record shows.'),
      registry: z.string().nullable().describe('Registry credentials that the instance names itself.'),
      max_duration: z.string().nullable(),
      idle_timeout: z.string().nullable(),
      expires_at: timeSchema.nullable().describe('When max_duration ends this start; null before its container runs.'),
      on_expiry: z.enum(EXPIRY),
      on_gpu_failure: z.enum(GPU_FAILURE),
      on_no_capacity: z
        .enum(NO_CAPACITY)
        .describe(
          'The action when no place is free for a start that is asked for. After a preemption or the loss of a node the instance waits.',
        ),
      disk_policy: z.enum(DISK_POLICIES),
      place_in_line: z
        .int()
        .nullable()
        .describe(
          'While the instance waits for a place: 1, and one more for each instance of any tenant that comes first and waits for GPUs of a kind that would do for this one. On demand comes before interruptible, then the older. One that comes later may be served earlier, where the place does not fit those before it. Up to a second old; no event is sent when only this changes.',
        ),
      created_at: timeSchema,
      started_at: timeSchema.nullable(),
      billed_since: timeSchema.nullable().describe('Since when the current start is billed; null while it is not.'),
      silences: z
        .array(z.object({ from: timeSchema, to: timeSchema.nullable() }))
        .describe(
          'When the node of the current start did not answer, which is not billed. to: null while it does not.',
        ),
      warnings: z
        .array(z.string())
        .describe(
          'For people: what was asked for and is done in another way, which GPU is unhealthy, and what will soon be in the way.',
        ),
    })
    .describe('A rented instance.'),
);

export const instanceListSchema = named('InstanceList', listOf(instanceSchema));
export const deletedInstanceSchema = named('DeletedInstance', deletedOf(z.string(), 'instance'));

export type CreateInstance = z.infer<typeof createInstanceSchema>;
export type UpdateInstance = z.infer<typeof updateInstanceSchema>;
export type InstanceRecord = z.infer<typeof instanceSchema>;
