import { z } from 'zod';
import { contentHash } from '../../lib/content-hash.ts';
import { ofFrozen } from '../../lib/of-frozen.ts';
import { ISOLATIONS } from './claim.ts';

const rentedGpusSchema = z.object({
  product: z.string().max(128).describe('GPU product.'),
  gpuCount: z.int().min(1).describe('Number of GPUs or MIG slices.'),
  isolation: z.enum(ISOLATIONS).describe('whole, mig or time_sliced.'),
  migProfile: z.string().max(32).optional().describe('MIG profile.'),
  memoryMb: z
    .int()
    .min(0)
    .describe('Memory of one GPU or slice in MiB. Two in a hundred less will do: drivers report it differently.'),
  gpuShare: z
    .string()
    .max(16)
    .optional()
    .describe('The part of a whole GPU that each time-sliced one is, for example 1/4. Absent: any.'),
  simulated: z.boolean().default(false).describe('Whether they are on simulated nodes.'),
  pool: z.string().max(253).describe('GPUPool that they were of. It comes first when several have such GPUs.'),
  offerId: z.int().describe('Offer that they were. It comes first of those that are alike.'),
});

const seenPriceSchema = z.object({
  pricePerHour: z.string().max(32).describe('Price of the instance per hour.'),
  currency: z.string().max(3).describe('ISO 4217 code of pricePerHour.'),
  named: z
    .string()
    .max(16)
    .optional()
    .describe('spec.maxPricePerHour when this was written. Naming another one accepts the currency of the offers.'),
});

export const rentedSchema = z.object({
  wish: z.string().max(64).describe('Hash of spec.offerId and spec.gpu. When they change, all of this is forgotten.'),
  gpus: rentedGpusSchema
    .optional()
    .describe('The GPUs. Every later start asks for them, whatever their offer is called.'),
  price: seenPriceSchema
    .optional()
    .describe(
      'The price that the owner saw: of the first claim or, when it had to wait for that, of the cheapest offer that fitted. No start costs more, unless spec.maxPricePerHour allows it.',
    ),
});

export type Rented = z.infer<typeof rentedSchema>;
export type RentedGpus = z.infer<typeof rentedGpusSchema>;

/** What an instance may cost per hour; in any currency where none is named. */
export interface PriceLimit {
  perHour: string;
  currency: string | undefined;
}

interface Wish {
  offerId?: number | undefined;
  gpu?: object | undefined;
}

/** What stands for the GPUs that the spec asks for. Each look at an instance asks for it several times. */
export const wishOf = ofFrozen(({ offerId, gpu }: Wish): string => contentHash({ offerId, gpu }));

interface Renting {
  spec: Wish & { maxPricePerHour?: string | undefined };
  status?: { rented?: Rented | undefined } | undefined;
}

/** What was rented, as long as the spec asks for the same GPUs. */
export function rentedOf({ spec, status }: Renting): Rented | undefined {
  return status?.rented?.wish === wishOf(spec) ? status.rented : undefined;
}

/** Whether the owner has named a price since the last one was seen, and with it the currency of the offers. */
export function namesPrice({ spec: { maxPricePerHour: named } }: Renting, price: Rented['price']): boolean {
  return named !== undefined && named !== price?.named;
}

/** What a start may cost: what the owner names, else what the owner saw; undefined while neither is known. */
export function priceLimitOf(instance: Renting): PriceLimit | undefined {
  const price = rentedOf(instance)?.price;
  const perHour = instance.spec.maxPricePerHour ?? price?.pricePerHour;
  if (perHour === undefined) return undefined;
  return { perHour, currency: namesPrice(instance, price) ? undefined : price?.currency };
}
