import { z } from 'zod';
import type { KubeObject } from '../../kube/types.ts';
import { claimSchema, ISOLATIONS } from './claim.ts';
import { gpuHealthShape, onGPUFailureSchema } from './gpu-health.ts';
import { heldDevicesSchema } from './held-devices.ts';
import { billShape } from './interval.ts';
import { lineShape } from './line.ts';
import { rentedSchema } from './rented.ts';
import { limitsSchema } from './limits.ts';
import {
  commandSchema,
  diskGbSchema,
  envSchema,
  imagePullSecretsSchema,
  imageSchema,
  onStartSchema,
  portsSchema,
  runtypeSchema,
  templateSnapshotSchema,
} from '../instance-template.ts';
import {
  AGE_COLUMN,
  berthType,
  conditionsSchema,
  durationSchema,
  formed,
  patterned,
  runtimeClassNameSchema,
  timeSchema,
  withRules,
  type CustomResource,
  type Rule,
} from '../schema.ts';

export type { Claim, Isolation } from './claim.ts';

/**
 * Annotation of an instance whose client has no answer yet: when the answer is due, RFC 3339. The API removes it just
 * before it answers 201. Some time later it deletes an instance that still has it, since no client knows of it.
 */
export const CONFIRM_BY = 'berth.dev/confirm-by';

/**
 * Annotation of an instance that a request with an Idempotency-Key made: its client was told 201 while it had no place
 * yet. From then on it is the answer of that request, whatever becomes of it. A history has it too, of every instance that
 * may be such an answer, and answers in its place.
 */
export const ANSWERED = 'berth.dev/answered';

/**
 * Annotation: who created the instance over HTTP, key/NAME or person/NAME. The claim keeps it. Admission lets the api role
 * alone write it, and {@link STARTED_BY}: budgets of keys go by them.
 */
export const CREATED_BY = 'berth.dev/created-by';

/**
 * Annotation: who asked over HTTP for a start. The text of spec.startRequest, a space, and key/NAME or person/NAME: a
 * request that somebody else writes later is not theirs.
 */
export const STARTED_BY = 'berth.dev/started-by';

/**
 * Annotation: the `traceparent` of the request that created the instance, for the trace of its start. Tenants may write
 * it: it is parsed, and decides about nothing but the trace.
 */
export const TRACEPARENT = 'berth.dev/traceparent';

/** Annotation: when a user last used the instance, RFC 3339. The gateways write it for instances with idleTimeout. */
export const LAST_ACTIVITY = 'berth.dev/last-activity';

export const INSTANCE_TYPES = ['OnDemand', 'Interruptible'] as const;

/** Longest free text: as long as a body of the HTTP interface. */
const MAX_FREE_TEXT = 1_048_576;

export const diskSchema = z.object({
  name: z.string().describe('Name of the PersistentVolumeClaim.'),
  uid: z.string().describe('uid of the PersistentVolumeClaim.'),
});

function setOnce(field: string): Rule {
  return {
    rule: `!has(oldSelf.${field}) || (has(self.${field}) && self.${field} == oldSelf.${field})`,
    message: `${field} cannot change once it is set: delete this instance and create another`,
    fieldPath: `.${field}`,
  };
}

export const gpuInstanceSpecSchema = withRules(
  z.object({
    type: z
      .enum(INSTANCE_TYPES)
      .default('OnDemand')
      .describe('OnDemand keeps its GPUs. Interruptible is cheaper, but an on-demand instance may take its GPUs.'),
    offerId: z
      .int()
      .min(1)
      .max(2147483647)
      .optional()
      .describe(
        'The offer to rent (ask_id of the HTTP interface). Absent: the cheapest free offer that fits spec.gpu.',
      ),
    gpu: z
      .object({
        product: z.string().max(128).optional().describe('GPU product as the offers name it, for example NVIDIA-L40S.'),
        count: z.int().min(1).max(64).default(1).describe('Number of GPUs, or of MIG slices.'),
        migProfile: patterned(
          z.string().max(32),
          /^[0-9]+g\.[0-9]+gb([.-](me(\.all)?|gfx))?$/,
          'write the profile as the offers name it, for example 1g.10gb',
        )
          .optional()
          .describe('MIG profile, for example 1g.10gb.'),
        isolation: z.enum(ISOLATIONS).optional().describe('whole, mig or time_sliced. Absent: any.'),
        memoryMb: z.int().min(1).max(16777216).optional().describe('Least memory of one GPU or MIG slice, in MiB.'),
      })
      .optional()
      .describe('Which GPUs to rent without an offerId. A field that is absent may have any value.'),
    displayName: z.string().max(128).optional().describe('Name for people.'),
    label: z.string().max(255).optional().describe('Free text of the tenant.'),
    stats: z.string().max(MAX_FREE_TEXT).optional().describe('Free text of the HTTP client, kept as it was sent.'),
    templateId: z.int().optional().describe('Numeric id of the InstanceTemplate to start from.'),
    templateHashId: z.string().max(64).optional().describe('Content hash of the InstanceTemplate to start from.'),
    image: imageSchema.optional(),
    imagePullSecrets: imagePullSecretsSchema.optional(),
    runtype: runtypeSchema.optional(),
    requestedRuntype: z
      .string()
      .max(MAX_FREE_TEXT)
      .optional()
      .describe(
        'The runtype of the HTTP client where Berth knows none of this name. The instance runs as runtype says.',
      ),
    command: commandSchema.optional().describe('Replaces the entrypoint of the image (runtype args).'),
    args: commandSchema.optional().describe('Replaces the arguments of the image (runtype args).'),
    onStart: onStartSchema.optional(),
    env: envSchema.optional(),
    ports: portsSchema.optional(),
    runAsRoot: z
      .boolean()
      .optional()
      .describe(
        'True: programs and sessions are those of root, whatever user the image names. Root has what it has in an image without a user, and no more. sudo and su of the image still gain nothing. Refused in a namespace that enforces Pod Security restricted.',
      ),
    diskGb: diskGbSchema.optional(),
    offerDiskSpace: z
      .number()
      .min(0)
      .max(1048576)
      .optional()
      .describe(
        'Disk in GB that the client saw in the offer. When the offer has less by now, the instance fails with OfferChanged.',
      ),
    installMonitoring: z
      .boolean()
      .default(false)
      .describe('Measures the instance. A busy GPU then counts as a session.'),
    sshKeyIds: z
      .array(z.int().min(1).describe('Id of an SSHKey (its status.id).'))
      .max(64)
      .optional()
      .meta({ 'x-kubernetes-list-type': 'set' })
      .describe('Ids of the SSHKeys that open this instance. Absent or empty: every SSHKey of the namespace.'),
    powerState: z
      .enum(['Running', 'Stopped'])
      .default('Running')
      .describe(
        'Stopped frees the GPUs and keeps a disk that survives a stop. Running starts the instance again. Only clients write it: an instance that ended by itself keeps Running here, see startRequest.',
      ),
    startRequest: z
      .string()
      .max(64)
      .optional()
      .describe(
        'Asks for another start of an instance that ended by itself, as by maxDuration, idleTimeout or a failure: write a text that none of the last eight starts had, such as the time. The text means nothing.',
      ),
    onNoCapacity: z
      .enum(['Queue', 'Fail'])
      .default('Queue')
      .describe(
        'The action when no place is free for a start that was asked for: wait in line, or fail. A start that Berth owes, as after a preemption or the loss of a node, always waits.',
      ),
    maxPricePerHour: patterned(
      z.string(formed('a text such as "2.49"')).max(16),
      /^[0-9]{1,9}(\.[0-9]{1,6})?$/,
      'write an amount with a point and at most six decimals, for example 2.49',
    )
      .optional()
      .describe(
        'Most that a start may cost per hour, for example 2.49. Absent: the price that the owner saw, see status.rented. An instance that would cost more waits.',
      ),
    maxDuration: durationSchema('Longest time that the instance may run, for example 12h.').optional(),
    idleTimeout: durationSchema('Longest time without a session, for example 30m.').optional(),
    onExpiry: z
      .enum(['Stop', 'Delete'])
      .default('Stop')
      .describe(
        'The action of the controller after maxDuration or idleTimeout. Delete: it stops the instance, and deletes it a minute later unless the limit was lengthened or taken away, or a start asked for.',
      ),
    onGPUFailure: onGPUFailureSchema,
    diskPolicy: z
      .enum(['Delete', 'Retain'])
      .default('Delete')
      .describe('The action of the controller for the disk when the instance is deleted.'),
    runtimeClassName: runtimeClassNameSchema(
      'RuntimeClass of the pod, for example kata: one that the operator allows the tenant, or that of the GPUPool. Only pools fit that have this class or none.',
    ).optional(),
    hostUsers: z
      .boolean()
      .optional()
      .describe(
        'False asks for a node that can run the pod in a user namespace of its own. True asks for nothing: the GPUPool and the ceilings of the tenant decide.',
      ),
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

export const STAGES = ['accepted', 'claimed', 'scheduled', 'pulled', 'started', 'ready', 'stopped'] as const;

/** Starts of an instance within an hour, whatever asks for them. */
export const MOST_STARTS = 11;

/** Start requests that are remembered, so that an older one asks for nothing when it is put back. */
export const MOST_START_REQUESTS = 8;

export const gpuInstanceStatusSchema = z.object({
  observedGeneration: z.int().optional().describe('metadata.generation that the status is for.'),
  conditions: conditionsSchema.optional(),
  claim: claimSchema
    .optional()
    .describe('The place that the controller granted. Absent while the instance waits and while it is stopped.'),
  rented: rentedSchema
    .optional()
    .describe(
      'The GPUs that were rented at the first claim. They come back, whatever becomes of labels, pools and sizes.',
    ),
  uid: z
    .string()
    .max(36)
    .optional()
    .describe('uid of the instance that these starts are of. When it is another, a backup brought the status back.'),
  incarnation: z.int().min(0).optional().describe('Number of the current start. Each start has a pod of its own.'),
  podName: z.string().optional().describe('Name of the pod of the current start.'),
  podUid: z.string().optional().describe('uid of the pod of the current start, once the controller has seen it.'),
  podIP: z.string().optional().describe('Address of the pod.'),
  template: templateSnapshotSchema
    .optional()
    .describe(
      'The settings of the template when the instance was rented. Every start uses it, whatever becomes of the template.',
    ),
  image: z.string().optional().describe('Image in use: that of the instance, the template or the default.'),
  runtype: runtypeSchema.optional(),
  diskGb: z.int().optional().describe('Size of the disk in GB.'),
  diskPersistent: z.boolean().optional().describe('Whether the instance keeps its disk when it stops.'),
  disk: diskSchema
    .optional()
    .describe('The disk of the instance. It decides whose disk a PersistentVolumeClaim is, whatever its labels say.'),
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
    .partialRecord(z.enum(STAGES), timeSchema.describe('When the start reached the stage.'))
    .optional()
    .describe('When the current start reached each stage.'),
  firstReady: timeSchema.optional().describe('When the instance was ready for the first time.'),
  recentStarts: z
    .array(timeSchema.describe('When a start that has ended got its place.'))
    .max(MOST_STARTS)
    .optional()
    .describe('The last starts that have ended. An hour has room for eleven, whatever asks for them.'),
  startRequests: z
    .array(z.string().max(64).describe('A text that spec.startRequest had.'))
    .max(MOST_START_REQUESTS)
    .optional()
    .describe('The last start requests that were honoured. Each asks for a start once, also when it is put back.'),
  ...lineShape,
  ...billShape,
  limits: limitsSchema.optional(),
  ...gpuHealthShape,
  devices: heldDevicesSchema
    .optional()
    .describe(
      'The GPUs of the current start, where Dynamic Resource Allocation gave them out. By driver, pool and name.',
    ),
  ending: z
    .object({
      reason: z.string().describe('The reason why the start ended, in CamelCase.'),
      message: z.string().describe('Explanation, for people.'),
      at: timeSchema.describe('When the controller decided or saw it.'),
      finishedAt: timeSchema
        .optional()
        .describe(
          'When the container had ended, as the kubelet says: 30 seconds after `at` at the latest. The meter stops here and, where nothing is known of the container, at `at`.',
        ),
      by: z
        .string()
        .max(36)
        .optional()
        .describe('uid of the on-demand instance that took the GPUs. It says no more of another tenant.'),
      limit: z
        .string()
        .max(32)
        .optional()
        .describe(
          'The limit that was over, where onExpiry deletes the instance for it. Absent once something kept it.',
        ),
      generation: z.int().optional().describe('metadata.generation that the decision is for.'),
      startHash: z
        .string()
        .max(64)
        .optional()
        .describe('Hash of what the spec said about a start. Absent once the instance was switched off.'),
      startRequest: z.string().max(64).optional().describe('spec.startRequest at the decision.'),
    })
    .optional()
    .describe('Why the current start ends or, without a claim, why the last start ended.'),
  failures: z
    .object({
      count: z.int().describe('Failed starts in a row.'),
      lastTime: timeSchema.describe('When the last start failed.'),
      nodes: z
        .array(z.string().describe('Name of a node.'))
        .max(16)
        .optional()
        .describe('Nodes where a start failed. The controller avoids them for a while.'),
      avoided: z
        .array(z.string().describe('Name of a node.'))
        .max(16)
        .optional()
        .describe('Nodes whose place was refused. This instance avoids them for a while; nobody blames them.'),
    })
    .optional()
    .describe('Failed starts since the last good one. They set the wait before the next start.'),
});

export type GpuInstanceSpec = z.infer<typeof gpuInstanceSpecSchema>;
export type GpuInstanceStatus = z.infer<typeof gpuInstanceStatusSchema>;
export interface GpuInstance extends KubeObject {
  spec: GpuInstanceSpec;
  status?: GpuInstanceStatus;
}

export const GPU_INSTANCES = berthType<GpuInstance>('GPUInstance', 'gpuinstances');

export const gpuInstanceResource: CustomResource = {
  ...GPU_INSTANCES,
  shortNames: ['gpui'],
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
  selectable: ['.status.claim.node', '.status.claim.pool', '.spec.powerState', '.spec.type'],
  spec: gpuInstanceSpecSchema,
  status: gpuInstanceStatusSchema,
  rules: [
    {
      rule: 'size(self.metadata.name) <= 52',
      message:
        'metadata.name may have at most 52 characters, because the names of pods add a suffix: write a shorter name',
    },
  ],
};
