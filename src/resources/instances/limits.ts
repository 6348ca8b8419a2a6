import { z } from 'zod';
import { timeSchema } from '../schema.ts';

/** The fields of a spec that end an instance which did not ask for it then. */
export const LIMITS = ['maxDuration', 'idleTimeout'] as const;
export type LimitName = (typeof LIMITS)[number];

const knownLimitSchema = z
  .object({
    value: z.string().max(32).describe('The value in the spec.'),
    since: timeSchema.describe('Since when it says so, as far as the controller knows.'),
  })
  .describe('A limit. One that was set a moment ago ends nothing at once.');

export const limitsSchema = z
  .object({ maxDuration: knownLimitSchema.optional(), idleTimeout: knownLimitSchema.optional() })
  .describe('Since when the limits of the instance are what they are.');
