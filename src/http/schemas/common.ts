import { z } from 'zod';

export const timeSchema = z.string().meta({ format: 'date-time', description: 'RFC 3339, UTC.' });

export const moneySchema = z
  .string()
  .regex(/^[0-9]+(\.[0-9]+)?$/)
  .describe('Decimal amount, for example "2.49".');

export const isolationSchema = z
  .enum(['whole', 'mig', 'time_sliced'])
  .describe('Whether GPUs are whole, MIG slices, or shared in time with others.');

/** The answer of every list endpoint. */
export function listOf<T extends z.ZodType>(item: T) {
  return z.object({ object: z.literal('list'), data: z.array(item) });
}

/** The answer of every DELETE. */
export function deletedOf<T extends z.ZodType>(id: T, object: string) {
  return z.object({ id, object: z.literal(object), deleted: z.literal(true) });
}
