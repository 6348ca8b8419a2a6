import { z } from 'zod';
import { timeSchema } from '../schema.ts';

const reservedSchema = z.object({
  pool: z.string().describe('GPUPool of the place.'),
  node: z.string().describe('Node of the place.'),
  product: z.string().describe('GPU product.'),
  resourceName: z.string().describe('Extended resource that the pod will request.'),
  gpuCount: z.int().describe('Number of GPUs or MIG slices.'),
});

/** A place on a node that others leave for a waiting instance. */
export type Reserved = z.infer<typeof reservedSchema>;

/** What the status of an instance says of its place in the waiting line. */
export const lineShape = {
  waitingSince: timeSchema
    .optional()
    .describe(
      'Since when the instance has had its place in the waiting line, to the millisecond. It keeps that place when it is preempted, drained or loses its node. A start that a person or a key asks for and a higher price begin anew.',
    ),
  reserved: reservedSchema
    .optional()
    .describe(
      'The place that others leave for the instance. No offer counts it as free, and the ceilings of the tenant count it as held.',
    ),
  othersEnded: z
    .boolean()
    .optional()
    .describe(
      'True once others were told to end for this start. It then waits for a place, whatever spec.onNoCapacity says, until it has one or is switched off.',
    ),
  preemptions: z
    .object({
      count: z.int().describe('Preemptions in a row, each within a minute of its start.'),
      lastTime: timeSchema.describe('When the last one had given its GPUs back.'),
    })
    .optional()
    .describe('The last preemptions. They set the wait before the instance asks for another place.'),
};
