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

/** A Kubernetes time as RFC 3339 in UTC; the empty epoch for an object that never was on a server. */
export function timeText(time: string | Date | undefined): string {
  return typeof time === 'string' ? time : new Date(time ?? 0).toISOString();
}

/** Bounds of the HTTP interface; its specification leaves them open, so they are decided and documented here. */
export const LIMITS = {
  name: 128,
  label: 255,
  templateHashId: 64,
  templateImage: 512,
  runtype: 255,
  stats: 4096,
  publicKey: 16_384,
  sshKeyIds: 64,
  diskGb: { min: 1, max: 16_384 },
  offerDiskSpace: { min: 0, max: 1_048_576 },
  idempotencyKey: 255,
  /** Bytes of a JSON body on the compute endpoints. */
  body: 1024 * 1024,
} as const;
