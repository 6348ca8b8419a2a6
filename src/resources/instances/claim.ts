import { z } from 'zod';
import { timeSchema } from '../schema.ts';

export const ISOLATIONS = ['whole', 'mig', 'time_sliced'] as const;
export type Isolation = (typeof ISOLATIONS)[number];

/** Longest name of who created an instance. Names of keys have 253 characters, those of people may have more. */
export const MOST_CREATED_BY = 320;

export const startedBySchema = z
  .string()
  .max(MOST_CREATED_BY)
  .optional()
  .describe('The caller who asked for this start where another created the instance. It draws on the budgets of both.');

export const claimSchema = z.object({
  offerId: z.int().describe('Offer of the place.'),
  pool: z.string().describe('GPUPool of the offer.'),
  node: z.string().describe('Node of the place.'),
  resourceName: z.string().describe('Extended resource that the pod requests, for example nvidia.com/gpu.'),
  product: z.string().describe('GPU product.'),
  gpuCount: z.int().describe('Number of GPUs or MIG slices.'),
  gpuShare: z
    .string()
    .max(16)
    .optional()
    .describe('The part of a whole GPU that each of them is, for example 1/7. Absent: all of it.'),
  memoryMb: z.int().describe('Memory of one GPU or slice in MiB.'),
  isolation: z.enum(ISOLATIONS).describe('whole, mig or time_sliced.'),
  migProfile: z.string().optional().describe('MIG profile.'),
  pricePerHour: z.string().describe('Price of the instance per hour, fixed when the place was granted.'),
  currency: z.string().describe('ISO 4217 code of pricePerHour.'),
  simulated: z.boolean().default(false).describe('True on simulated nodes, where no container runs.'),
  diskGbMax: z.int().optional().describe('Largest disk of the offer when the place was granted, in GB.'),
  createdBy: z
    .string()
    .max(MOST_CREATED_BY)
    .optional()
    .describe('The creator of the instance: key/NAME or person/NAME. Absent: a client of the Kubernetes API.'),
  startedBy: startedBySchema,
  byPreemption: z
    .boolean()
    .optional()
    .describe('True when interruptible instances ended for the place: then it is billed from its grant.'),
  grantedAt: timeSchema.describe('When the controller granted the place.'),
});

/** The place that the controller granted to an instance. */
export type Claim = z.infer<typeof claimSchema>;

/** Who pays for a start, beside the tenant: the creator of the instance, and the caller who asked for the start. */
export type Payers = Pick<Claim, 'createdBy' | 'startedBy'>;
