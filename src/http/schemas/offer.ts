import { z } from 'zod';
import { isolationSchema, listOf, moneySchema } from './common.ts';

export const offerSchema = z
  .object({
    id: z.int().min(1).max(2147483647).describe('Send it as ask_id. The same place has the same id for good.'),
    object: z.literal('offer'),
    gpu_name: z.string().describe('GPU product, as GPU Feature Discovery names it.'),
    gpu_count: z.int().min(1).describe('GPUs, or MIG slices, of one instance.'),
    gpu_memory_mb: z.int().min(0).describe('Memory of one GPU or slice in MiB.'),
    isolation: isolationSchema,
    mig_profile: z.string().nullable().describe('MIG profile, for example 1g.10gb.'),
    available: z.int().min(0).describe('How many instances of this offer could start now.'),
    simulated: z.boolean().describe('True on simulated nodes, where no container really runs.'),
    price_per_hour: z.object({
      on_demand: moneySchema,
      interruptible: moneySchema,
      currency: z.string().describe('ISO 4217 code.'),
    }),
    cpu_cores: z.number().min(0).describe('CPU cores of the smallest node behind the offer.'),
    memory_mb: z.int().min(0).describe('Memory of the smallest node behind the offer, in MiB.'),
    disk_gb_max: z.int().min(0).describe('Largest disk_gb.'),
    driver_version: z.string().nullable().describe('NVIDIA driver.'),
    cuda_version: z.string().nullable().describe('Newest CUDA runtime the driver supports.'),
    image_cached: z.boolean().describe('Whether a node behind the offer has the default image already.'),
    pool: z.string().describe('The pool the offer belongs to.'),
  })
  .describe('A class of identical places for rent.');

export const offerListSchema = listOf(offerSchema);

export type OfferRecord = z.infer<typeof offerSchema>;
