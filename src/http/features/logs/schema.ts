import { z } from 'zod';
import { durationSchema } from '../../../resources/schema.ts';
import { listOf, named } from '../../interface/schema.ts';

export const LOG_LIMITS = {
  /** Lines of an answer. */
  tail: { usual: 1000, max: 10_000 },
  /** Bytes of text in an answer. */
  bytes: 1024 * 1024,
} as const;

/** The query of GET /instances/{instanceId}/logs. */
export const logQuerySchema = z.strictObject({
  source: z
    .enum(['container', 'on_start'])
    .default('container')
    .describe(
      'container: all that the container writes. on_start: the same without the lines of Jupyter, which begin with ' +
        '[jupyter]; what the start script writes goes to the log of the container.',
    ),
  tail: z.int().min(0).max(LOG_LIMITS.tail.max).default(LOG_LIMITS.tail.usual).describe('How many of the last lines.'),
  since: z
    .union([z.iso.datetime({ offset: true }), durationSchema('A duration.')])
    .optional()
    .describe('Only lines since this time (RFC 3339), or of the last 90s, 10m or 1h30m.'),
  previous: z
    .boolean()
    .default(false)
    .describe('The log of the container before its last restart. With follow it continues with the log after it.'),
  start: z
    .int()
    .min(1)
    .max(999_999_999)
    .optional()
    .describe(
      'The log of this start, as the events of the instance number them. By default that of the container, and without one that of the last start.',
    ),
  follow: z.boolean().default(false).describe('Answers with an event stream, as Accept: text/event-stream does.'),
});

export type LogQuery = z.infer<typeof logQuerySchema>;

const lineSchema = z
  .object({
    id: z.string().describe('Send it as Last-Event-ID to follow from here.'),
    at: z.string().meta({ format: 'date-time', description: 'When the line was written. RFC 3339, UTC, nanoseconds.' }),
    text: z
      .string()
      .describe('The line, without line break. Bytes that are no UTF-8 are U+FFFD; a line is cut after 64 KiB.'),
  })
  .describe('One line of a log.');

export const logSchema = named(
  'Log',
  listOf(lineSchema)
    .extend({
      instance_id: z.string(),
      source: z.enum(['container', 'on_start']),
      start: z.int().min(0).describe('Number of the start whose log it is.'),
      kept: z
        .boolean()
        .describe('Whether the start is over, and these are of the last 64 KiB that were kept of its log.'),
      truncated: z
        .boolean()
        .describe(
          'Whether older lines that were asked for are left out: an answer has 1 MiB of text, and a kept log 64 KiB.',
        ),
    })
    .describe('The last lines of a log, oldest first.'),
);
