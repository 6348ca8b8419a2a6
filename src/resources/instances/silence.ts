import { z } from 'zod';
import { timeSchema } from '../schema.ts';

/** A start keeps so many silences of its node apart. When there are more, the two nearest become one of their length. */
export const MOST_SILENCES = 16;

const silenceSchema = z
  .object({
    from: timeSchema.describe('When Kubernetes noticed that the node did not answer.'),
    to: timeSchema.optional().describe('When it answered again. Absent: it does not answer yet.'),
  })
  .describe('A time in which the node did not answer.');

export const silencesSchema = z.array(silenceSchema).max(MOST_SILENCES).meta({ 'x-kubernetes-list-type': 'atomic' });

/** A time in which the node of a start did not answer, and which is not billed. */
export type Silence = z.infer<typeof silenceSchema>;
