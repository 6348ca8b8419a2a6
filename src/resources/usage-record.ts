import { z } from 'zod';
import type { KubeObject } from '../kube/types.ts';
import { gpuSecondsSchema, intervalsSchema } from './instances/interval.ts';
import {
  AGE_COLUMN,
  amountSchema,
  berthType,
  patterned,
  timeSchema,
  withRules,
  type CustomResource,
} from './schema.ts';

/** Label of a usage record: the month in which its last start ended, in UTC, such as 2026-11. Older records have none. */
export const ENDED_LABEL = 'berth.dev/ended';

export const usageRecordSpecSchema = withRules(
  z.object({
    instance: z.string().max(253).describe('metadata.name of the instance.'),
    displayName: z.string().max(128).optional().describe('Name of the instance for people, when this was written.'),
    instanceUid: z.string().max(64).describe('metadata.uid of the instance.'),
    product: z.string().max(128).describe('GPU product of the last of these starts.'),
    gpuCount: z.int().min(0).describe('GPUs of the last of these starts.'),
    gpuSeconds: gpuSecondsSchema.describe('GPU seconds of these starts. A slice counts as its part of a GPU.'),
    cost: amountSchema('Cost of the GPU seconds, as a decimal amount. adjustment.type says which way it counts.'),
    currency: patterned(z.string().max(3), /^([A-Z]{3})?$/, 'write an ISO 4217 code, for example USD').describe(
      'ISO 4217 code of cost. Empty: the instance had no start.',
    ),
    startedAt: timeSchema.optional().describe('When the container of the first of these starts ran.'),
    endedAt: timeSchema.describe('When the pod of the last of these starts was gone.'),
    intervals: intervalsSchema
      .optional()
      .describe('The starts that this record is for, oldest first. Records of earlier releases have none.'),
    adjustment: z
      .object({
        type: z.enum(['Credit', 'Charge']).describe('Credit: the cost is taken off the bill. Charge: it is added.'),
        reason: z.string().min(1).max(1024).describe('Why, for the tenant.'),
      })
      .optional()
      .describe(
        'Set by an operator who corrects a bill: records never change. It counts for the day of endedAt, and for no start.',
      ),
  }),
  { rule: 'self == oldSelf', message: 'a usage record cannot change: leave it as it is' },
  {
    rule: "!has(self.adjustment) || self.currency != ''",
    message: 'name the currency that is corrected, for example USD',
    fieldPath: '.currency',
  },
);

export type UsageRecordSpec = z.infer<typeof usageRecordSpecSchema>;
export interface UsageRecord extends KubeObject {
  spec: UsageRecordSpec;
}

export const USAGE_RECORDS = berthType<UsageRecord>('UsageRecord', 'usagerecords');

export const usageRecordResource: CustomResource = {
  ...USAGE_RECORDS,
  shortNames: ['usage'],
  description:
    'Use and cost of the starts of one instance: the last ones of an instance that is gone, or the earlier ones of one with many.',
  columns: [
    { name: 'Instance', type: 'string', jsonPath: '.spec.instance' },
    { name: 'GPU', type: 'string', jsonPath: '.spec.product' },
    { name: 'GPU-Seconds', type: 'number', jsonPath: '.spec.gpuSeconds' },
    { name: 'Cost', type: 'string', jsonPath: '.spec.cost' },
    { name: 'Currency', type: 'string', jsonPath: '.spec.currency' },
    { name: 'Ended', type: 'date', jsonPath: '.spec.endedAt' },
    { name: 'Adjustment', type: 'string', jsonPath: '.spec.adjustment.type' },
    AGE_COLUMN,
  ],
  spec: usageRecordSpecSchema,
};
