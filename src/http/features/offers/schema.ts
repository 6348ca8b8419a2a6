import { z } from 'zod';
import { hasPlainPath, IMAGE_HINT, IMAGE_PATTERN, PLAIN_PATH_HINT } from '../../../resources/image.ts';
import { isolationSchema, LIMITS, listOf, moneySchema, named, textSchema } from '../../interface/schema.ts';

export const offerSchema = named(
  'Offer',
  z
    .object({
      id: z
        .int()
        .min(1)
        .max(2147483647)
        .describe('Send it as ask_id. The same class of places always has the same id.'),
      object: z.literal('offer'),
      gpu_name: z.string().describe('GPU product, as named by GPU Feature Discovery.'),
      gpu_count: z.int().min(1).describe('GPUs, or MIG slices, of one instance.'),
      gpu_memory_mb: z.int().min(0).describe('Memory of one GPU or slice in MiB.'),
      isolation: isolationSchema,
      mig_profile: z.string().nullable().describe('MIG profile, for example 1g.10gb.'),
      available: z.int().min(0).describe('Free places: instances of this offer that could start now.'),
      available_by_preemption: z
        .int()
        .min(0)
        .describe(
          'On-demand instances that could start besides these: interruptible ones would end for them. An interruptible one gets free places only.',
        ),
      simulated: z.boolean().describe('True on simulated nodes, which run no containers.'),
      price_per_hour: z.object({
        on_demand: moneySchema,
        interruptible: moneySchema,
        currency: z.string().describe('ISO 4217 code.'),
      }),
      cpu_cores: z.number().min(0).describe('CPU cores of the smallest node behind the offer.'),
      memory_mb: z.int().min(0).describe('Memory of the smallest node behind the offer, in MiB.'),
      disk_gb_max: z.int().min(0).describe('Largest disk_gb that fits.'),
      driver_version: z.string().nullable().describe('Version of the driver of the GPUs. null: the node does not say.'),
      cuda_version: z.string().nullable().describe('Newest CUDA runtime that the driver supports.'),
      image_cached: z.boolean().describe('Whether a node behind the offer has the default image.'),
      pool: z.string().describe('The pool that the offer belongs to.'),
    })
    .describe('A class of identical places for rent.'),
);

export const offerListSchema = named('OfferList', listOf(offerSchema));

export const offerSearchSchema = named(
  'OfferSearch',
  z
    .strictObject({
      image: z
        .string()
        .max(LIMITS.templateImage, { abort: true })
        .regex(IMAGE_PATTERN, IMAGE_HINT)
        .refine(hasPlainPath, PLAIN_PATH_HINT)
        .describe('The image that the instance would have. Absent or empty: the default image.')
        .nullish(),
      type: z
        .literal([0, 1])
        .meta({ type: 'integer' })
        .describe('0: on demand (default). 1: interruptible. Says which price counts.')
        .nullish(),
      max_price_per_hour: moneySchema.max(32).describe('Largest price of the type that is asked for.').nullish(),
      currency: textSchema().max(3).describe('ISO 4217 code.').nullish(),
      gpu_name: textSchema().max(LIMITS.name).describe('GPU product, as offers name it.').nullish(),
      gpu_count: z.int().min(1).describe('GPUs, or MIG slices.').nullish(),
      min_gpu_memory_mb: z.int().min(0).describe('Memory of one GPU or slice in MiB, at least.').nullish(),
      isolation: isolationSchema.nullish(),
      mig_profile: textSchema().max(32).describe('MIG profile, for example 1g.10gb.').nullish(),
      simulated: z.boolean().describe('Whether the nodes are simulated.').nullish(),
      pool: textSchema().max(253).describe('The pool of the offer.').nullish(),
      min_available: z.int().min(0).describe('Free places, at least.').nullish(),
      min_cpu_cores: z.number().min(0).nullish(),
      min_memory_mb: z.int().min(0).describe('Memory of the node for the instance in MiB, at least.').nullish(),
      min_disk_gb: z.int().min(0).describe('Disk that the offer allows, at least.').nullish(),
    })
    .describe('The wanted offers. Every field, and the whole body, may be absent or null; then any value will do.'),
);

export const foundOfferSchema = named(
  'FoundOffer',
  offerSchema
    .extend({
      image_cached: z.boolean().describe('Whether a node with a free place has the image that was asked about.'),
      expected_start_seconds: z
        .number()
        .min(0)
        .optional()
        .describe(
          'Seconds from the grant to a login, as the latest starts of the pool took: those of the same image where there were any, with the image on the node or without it as image_cached says. Absent when this replica has seen no such start, or no place is free.',
        ),
    })
    .describe('An offer that fits, with what it means for the image.'),
);

export const foundOfferListSchema = named('FoundOfferList', listOf(foundOfferSchema));

export type OfferRecord = z.infer<typeof offerSchema>;
export type OfferSearch = z.infer<typeof offerSearchSchema>;
export type FoundOffer = z.infer<typeof foundOfferSchema>;
