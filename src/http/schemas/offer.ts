import { z } from 'zod';
import { isolationSchema, listOf, moneySchema } from './common.ts';

export const offerSchema = z
  .object({
    id: z.int().min(1).max(2147483647).describe('Send it as ask_id. The same class of places always has the same id.'),
    object: z.literal('offer'),
    gpu_name: z.string().describe('GPU product, as named by GPU Feature Discovery.'),
    gpu_count: z.int().min(1).describe('GPUs, or MIG slices, of one instance.'),
    gpu_memory_mb: z.int().min(0).describe('Memory of one GPU or slice in MiB.'),
    isolation: isolationSchema,
    mig_profile: z.string().nullable().describe('MIG profile, for example 1g.10gb.'),
    available: z.int().min(0).describe('Free places: instances of this offer that could start now.'),
    simulated: z.boolean().describe('True on simulated nodes, which run no containers.'),
    price_per_hour: z.object({
      on_demand: moneySchema,
      interruptible: moneySchema,
      currency: z.string().describe('ISO 4217 code.'),
    }),
    cpu_cores: z.number().min(0).describe('CPU cores of the smallest node behind the offer.'),
    memory_mb: z.int().min(0).describe('Memory of the smallest node behind the offer, in MiB.'),
    disk_gb_max: z.int().min(0).describe('Largest disk_gb that fits.'),
    driver_version: z.string().nullable().describe('Version of the NVIDIA driver.'),
    cuda_version: z.string().nullable().describe('Newest CUDA runtime that the driver supports.'),
    image_cached: z.boolean().describe('Whether a node behind the offer has the default image.'),
    pool: z.string().describe('The pool that the offer belongs to.'),
  })
  .describe('A class of identical places for rent.');

export const offerListSchema = listOf(offerSchema);

export type OfferRecord = z.infer<typeof offerSchema>;
