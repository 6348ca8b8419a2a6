import { z } from 'zod';
import { timeSchema } from './common.ts';

export const createLinkSchema = z
  .strictObject({
    port: z
      .int()
      .min(1)
      .max(65_535)
      .describe('A TCP port that the instance declares. Absent: that of Jupyter, else the only one there is.')
      .nullish(),
    path: z
      .string()
      .max(512)
      .regex(/^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/)
      .describe('Where the browser goes first, from the root of the port. Absent: /.')
      .nullish(),
  })
  .describe('Which port of the instance to open in a browser.');

export const linkSchema = z
  .object({
    object: z.literal('link'),
    instance_id: z.string(),
    port: z.int(),
    url: z.string().describe('Opens the port in a browser, once, and lets that browser in for twelve hours.'),
    expires_at: timeSchema,
  })
  .describe('A link to a port of an instance, for a browser.');
