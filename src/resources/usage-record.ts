import { z } from 'zod';
import type { KubeObject } from '../kube/types.ts';
import { AGE_COLUMN, berthType, timeSchema, withRules, type CustomResource } from './schema.ts';

export const usageRecordSpecSchema = withRules(
  z.object({
    instance: z.string().max(253).describe('metadata.name of the instance.'),
    instanceUid: z.string().max(64).describe('metadata.uid of the instance.'),
    product: z.string().max(128).describe('GPU product of the last start.'),
    gpuCount: z.int().min(0).describe('GPUs of the last start.'),
    gpuSeconds: z.number().min(0).describe('GPU seconds used over all starts.'),
    cost: z.string().max(32).describe('Cost of the GPU seconds, as a decimal amount.'),
    currency: z.string().max(3).describe('ISO 4217 code of cost.'),
    startedAt: timeSchema.optional().describe('When the instance was ready for the first time.'),
    endedAt: timeSchema.describe('When the instance ended.'),
  }),
  { rule: 'self == oldSelf', message: 'a usage record cannot change: leave it as it is' },
);

export type UsageRecordSpec = z.infer<typeof usageRecordSpecSchema>;
export interface UsageRecord extends KubeObject {
  spec: UsageRecordSpec;
}

export const USAGE_RECORDS = berthType<UsageRecord>('UsageRecord', 'usagerecords');

export const usageRecordResource: CustomResource = {
  ...USAGE_RECORDS,
  shortNames: ['usage'],
  description: 'What one ended instance used and cost.',
  columns: [
    { name: 'Instance', type: 'string', jsonPath: '.spec.instance' },
    { name: 'GPU', type: 'string', jsonPath: '.spec.product' },
    { name: 'GPU-Seconds', type: 'number', jsonPath: '.spec.gpuSeconds' },
    { name: 'Cost', type: 'string', jsonPath: '.spec.cost' },
    { name: 'Currency', type: 'string', jsonPath: '.spec.currency' },
    { name: 'Ended', type: 'date', jsonPath: '.spec.endedAt' },
    AGE_COLUMN,
  ],
  spec: usageRecordSpecSchema,
};
