import { z } from 'zod';
import { amountSchema, timeSchema } from '../schema.ts';
import { ISOLATIONS, MOST_CREATED_BY, startedBySchema } from './claim.ts';
import { heldDevicesSchema } from './held-devices.ts';
import { silencesSchema } from './silence.ts';

/** With as many ended starts in its status an instance gets a usage record for them before it starts again. */
export const MOST_INTERVALS = 8;

/** The fields of a claim that a bill depends on. */
export const BILLED = [
  'pool',
  'resourceName',
  'product',
  'gpuCount',
  'gpuShare',
  'isolation',
  'migProfile',
  'pricePerHour',
  'currency',
  'createdBy',
  'startedBy',
  'byPreemption',
] as const;

/** Some thirty thousand years: beyond it a sum is no number to count with. */
const MOST_GPU_SECONDS = 1_000_000_000_000;

export const gpuSecondsSchema = z.number().min(0).max(MOST_GPU_SECONDS);

const intervalSchema = z
  .object({
    start: z.int().min(0).describe('Number of the start. 0: several, from before Berth kept them apart.'),
    from: timeSchema.describe(
      'When its container ran for the first time, or its place was granted that others ended for; never before the start before it ended.',
    ),
    to: timeSchema.describe('When its container had ended.'),
    pool: z.string().max(253).optional().describe('GPUPool of the place.'),
    resourceName: z.string().max(317).optional().describe('Extended resource that the pod requested.'),
    product: z.string().max(128).describe('GPU product.'),
    gpuCount: z.int().min(0).describe('Number of GPUs or MIG slices.'),
    gpuShare: z
      .string()
      .max(16)
      .optional()
      .describe('The part of a whole GPU that each of them is, for example 1/7. Absent: all of it.'),
    isolation: z.enum(ISOLATIONS).optional().describe('whole, mig or time_sliced.'),
    migProfile: z.string().max(32).optional().describe('MIG profile.'),
    pricePerHour: amountSchema('Price of the instance per hour, fixed at the claim.').optional(),
    currency: z.string().max(3).describe('ISO 4217 code of cost.'),
    createdBy: z
      .string()
      .max(MOST_CREATED_BY)
      .optional()
      .describe('The creator of the instance: key/NAME or person/NAME. Absent: a client of the Kubernetes API.'),
    startedBy: startedBySchema,
    byPreemption: z.boolean().optional().describe('True when interruptible instances ended for its place.'),
    diskGb: z.int().optional().describe('Size of the disk in GB. It costs nothing.'),
    devices: heldDevicesSchema.optional().describe('Its GPUs, where Dynamic Resource Allocation gave them out.'),
    silences: silencesSchema
      .optional()
      .describe('When the node did not answer between from and to. These times are not in gpuSeconds and cost.'),
    gpuSeconds: gpuSecondsSchema.describe('Seconds times GPUs. A slice counts as its part of a GPU.'),
    cost: amountSchema('The cost: the time at pricePerHour, rounded half up to the sixth decimal.'),
  })
  .describe('One start that has ended.');

export const intervalsSchema = z
  .array(intervalSchema)
  // A controller of an earlier release may have started it once more, without a record.
  .max(2 * MOST_INTERVALS)
  .meta({ 'x-kubernetes-list-type': 'atomic' });

/** One start that has ended, with its bill. */
export type Interval = z.infer<typeof intervalSchema>;

/** What the status of an instance says of its bill. The running start is in `claim` and `stages.started`. */
export const billShape = {
  lastProduct: z
    .object({
      product: z.string().describe('GPU product.'),
      gpuCount: z.int().describe('Number of GPUs or MIG slices.'),
    })
    .optional()
    .describe('GPUs of the last start. They stay when the claim is given back.'),
  usage: z
    .object({
      gpuSeconds: z
        .number()
        .describe('GPU seconds of the starts that have ended. A slice counts as its part of a GPU.'),
      cost: z.string().describe('Cost of the starts that have ended. Only those in this currency count.'),
      currency: z.string().describe('ISO 4217 code of cost: that of the last start.'),
      until: timeSchema.optional().describe('When the last of them ended. No start is billed for time before.'),
    })
    .optional()
    .describe('The use of the instance, without the current start.'),
  intervals: intervalsSchema
    .optional()
    .describe('The last starts that have ended, each with its bill. Earlier ones are in usage records.'),
  silences: silencesSchema
    .optional()
    .describe('When the node of the current start did not answer. These times are not billed, and extend its limits.'),
  records: z.int().min(0).optional().describe('Usage records that were written for starts that have ended.'),
};
