import { z } from 'zod';
import { named, timeSchema } from '../../interface/schema.ts';

export const createLinkSchema = named(
  'CreateLink',
  z
    .strictObject({
      port: z
        .int()
        .min(1)
        .max(65_535)
        .describe('A TCP port that the instance declares. Absent: the port of Jupyter, else the only declared port.')
        .nullish(),
      path: z
        .string()
        .max(512)
        .regex(/^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/)
        .describe('The first page, as a path on the port. Absent: /.')
        .nullish(),
    })
    .describe('Which port of the instance to open in a browser.'),
);

export const linkSchema = named(
  'Link',
  z
    .object({
      object: z.literal('link'),
      instance_id: z.string(),
      port: z.int(),
      url: z
        .string()
        .describe(
          'Opens the port in a browser. It works once; that browser then has access for twelve hours, or until the key or sign-in ends.',
        ),
      expires_at: timeSchema,
    })
    .describe('A link to a port of an instance, for a browser.'),
);
