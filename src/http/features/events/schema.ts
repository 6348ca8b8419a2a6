import { z } from 'zod';
import { listOf, named, timeSchema } from '../../interface/schema.ts';

const eventSchema = z
  .object({
    at: timeSchema.describe('When it happened, or happened first. RFC 3339, UTC.'),
    last_at: timeSchema.nullable().describe('When it happened last, where it happened more than once.'),
    type: z.enum(['normal', 'warning']).describe('warning: the instance could not continue.'),
    reason: z.string().describe('The kind of the event, in CamelCase.'),
    message: z.string().describe('Explanation, for people.'),
    count: z.int().min(1).describe('How often it happened.'),
    start: z.int().min(0).describe('Number of the start that it is about; 0 before the first.'),
  })
  .describe('Something that happened to an instance.');

export const eventListSchema = named(
  'EventList',
  listOf(eventSchema)
    .extend({
      instance_id: z.string(),
      ended_at: timeSchema.nullable().describe('When the instance was gone; null while it is there.'),
      dropped: z.int().min(0).describe('Older events that gave way to newer ones.'),
    })
    .describe('The history of an instance, oldest first.'),
);

export type EventListRecord = z.infer<typeof eventListSchema>;
