import { z } from 'zod';
import { GROUPINGS } from '../../../ledger/report.ts';
import { named, timeSchema } from '../../interface/schema.ts';

export const usageQuerySchema = z.strictObject({
  from: z.iso.date().optional().describe('First day, in UTC. By default the first of the month of `to`.'),
  to: z.iso
    .date()
    .optional()
    .describe('Last day, in UTC; it counts too. By default today. Before `from` there is no day, and no usage.'),
  group: z
    .enum(GROUPINGS)
    .default('day')
    .describe(
      'The subject of an item: a day, an instance or model, the key or person that created instances and called models, the one that asked for the starts and called models, or a model.',
    ),
  format: z.enum(['json', 'csv']).optional().describe('csv: the items as CSV, as with Accept: text/csv.'),
});

const amountShape = {
  gpu_seconds: z
    .number()
    .describe('Seconds times GPUs, to the millisecond. A slice counts as its part of a GPU, such as 1/7.'),
  cost: z
    .string()
    .regex(/^-?[0-9]+(\.[0-9]+)?$/)
    .describe('Decimal amount with at most six decimals. Exact: the items add up to the total. A credit is negative.'),
  currency: z.string().describe('ISO 4217 code of cost.'),
  open: z.boolean().describe('Whether a start counts here that still runs: the amount grows.'),
  calls: z.int().describe('Answered calls to models with a price.'),
  input_tokens: z.int().describe('Input tokens of these calls as engines reported them, cached ones included.'),
  cached_input_tokens: z.int().describe('Those of them that engines had in their caches.'),
  output_tokens: z.int().describe('Output tokens of these calls as engines reported them.'),
};

const usageItemSchema = z
  .object({
    group: z
      .string()
      .describe(
        'The day as 2026-11-23; the id of the instance; model/NAME for calls to a model, and with models instances for all else; or key/NAME, person/NAME, kubernetes for what the Kubernetes API created, or adjustment for corrections by the operator.',
      ),
    name: z
      .string()
      .nullable()
      .describe(
        'The name that people gave the instance or the key. Null for what has none, and for keys that are gone.',
      ),
    product: z.string().nullable().describe('The GPU product; null where there was more than one, and without GPUs.'),
    ...amountShape,
  })
  .describe('The use of one group. With several currencies a group has an item for each.');

export const usageSchema = named(
  'Usage',
  z
    .object({
      object: z.literal('usage'),
      from: z.string().describe('First day, in UTC.'),
      to: z.string().describe('Last day, in UTC. It counts too.'),
      at: timeSchema.describe('Until when starts count that still run. RFC 3339, UTC.'),
      group: z.enum(GROUPINGS),
      currency: z.string().nullable().describe('The one currency of the answer; null without any, and with several.'),
      items: z.array(usageItemSchema).describe('By group, in alphabetical order. Groups without usage are left out.'),
      totals: z.array(z.object(amountShape)).describe('The sum of the items, one for each currency.'),
      unreadable: z
        .array(z.string())
        .optional()
        .describe(
          'Records with an amount or a time that cannot be read, as UsageRecord/NAME: nothing of them counts here. The operator must delete each and write it anew. Absent: every record was read.',
        ),
    })
    .describe('Use and cost of the tenant: GPUs, starts that still run included, and tokens of models with a price.'),
);

export type UsageAnswer = z.infer<typeof usageSchema>;
export type UsageQuery = z.infer<typeof usageQuerySchema>;
