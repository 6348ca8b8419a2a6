import { z } from 'zod';
import type { KubeObject } from '../../kube/types.ts';
import { budgetStatusSchema } from './budget.ts';
import { type Ceilings, ceilingsSchema, MOST_ENTRIES } from './ceilings.ts';
import { AGE_COLUMN, berthType, type CustomResource } from '../schema.ts';

/** The one name of a TenantLimit, and of the ResourceQuota beside it. */
export const TENANT_LIMIT_NAME = 'berth';

export const tenantLimitSpecSchema = ceilingsSchema.extend({
  policies: z
    .array(z.string().max(253).describe('Name of a TenantPolicy.'))
    .max(MOST_ENTRIES)
    .default([])
    .describe('TenantPolicies that these ceilings come from. Empty: the defaults.'),
});

export const tenantLimitStatusSchema = z.object({
  budget: budgetStatusSchema.optional(),
});

export type TenantLimitSpec = z.infer<typeof tenantLimitSpecSchema>;

/** The ceilings of a tenant, and the TenantPolicies that they come from where these are known. */
export type TenantCeilings = Ceilings & Partial<Pick<TenantLimitSpec, 'policies'>>;
export type TenantLimitStatus = z.infer<typeof tenantLimitStatusSchema>;
export interface TenantLimit extends KubeObject {
  spec: TenantLimitSpec;
  status?: TenantLimitStatus;
}

export const TENANT_LIMITS = berthType<TenantLimit>('TenantLimit', 'tenantlimits');

export const tenantLimitResource: CustomResource = {
  ...TENANT_LIMITS,
  shortNames: ['tlimit'],
  description: 'The ceilings of the tenant in this namespace, which the controller writes from the TenantPolicies.',
  columns: [
    { name: 'Policies', type: 'string', jsonPath: '.spec.policies' },
    { name: 'Instances', type: 'integer', jsonPath: '.spec.objects.instances' },
    { name: 'SSH-Keys', type: 'integer', jsonPath: '.spec.objects.sshKeys' },
    { name: 'Images', type: 'string', jsonPath: '.spec.images', priority: 1 },
    { name: 'Budget-Percent', type: 'integer', jsonPath: '.status.budget.percent' },
    AGE_COLUMN,
  ],
  spec: tenantLimitSpecSchema,
  status: tenantLimitStatusSchema,
};
