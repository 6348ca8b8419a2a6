import { z } from 'zod';
import type { KubeObject } from '../../kube/types.ts';
import { budgetSchema, budgetStatusSchema } from './budget.ts';
import { type Ceilings, ceilingsSchema, MOST_ENTRIES } from './ceilings.ts';
import { MAX_IMAGE_LENGTH } from '../image.ts';
import { AGE_COLUMN, berthType, type CustomResource, timeSchema } from '../schema.ts';

/** The one name of a TenantLimit, and of the ResourceQuota beside it. */
export const TENANT_LIMIT_NAME = 'berth';

export const tenantLimitSpecSchema = ceilingsSchema.extend({
  policies: z
    .array(z.string().max(253).describe('Name of a TenantPolicy.'))
    .max(MOST_ENTRIES)
    .default([])
    .describe('TenantPolicies that these ceilings come from. Empty: the defaults.'),
});

/** Keys whose budgets are remembered in one namespace. */
export const MOST_KEY_BUDGETS = 1_000;

const keyBudgetSchema = z
  .object({
    name: z.string().max(253).describe('metadata.name of the APIKey.'),
    budget: budgetSchema.describe('Its budget.'),
    used: budgetStatusSchema.optional(),
  })
  .describe('The budget of one APIKey. `used` is there once the APIKey was deleted.');

/** Places, and requests taken back, that are remembered of one tenant. */
export const MOST_HELD = 32;

const heldSchema = z
  .object({
    places: z
      .array(
        z
          .object({
            start: z.string().max(64).describe('uid of the instance and number of the start.'),
            from: timeSchema.describe('When the place was granted.'),
            to: timeSchema.describe('When it was given back.'),
            gpus: z.int().min(0).describe('GPUs that nobody paid for.'),
            image: z.string().max(MAX_IMAGE_LENGTH).describe('Its image.'),
            isFaultOfCluster: z.boolean().describe('Whether the cluster may be to blame.'),
          })
          .describe('One of these places.'),
      )
      .max(MOST_HELD)
      .meta({ 'x-kubernetes-list-type': 'atomic' })
      .describe('Places that starts held whose containers never ran, of the last six hours.'),
    withdrawn: z
      .array(timeSchema.describe('When a request went, or its start ended before it ran.'))
      .max(MOST_HELD)
      .meta({ 'x-kubernetes-list-type': 'atomic' })
      .describe('Requests for which others had ended, and that were taken back or never ran, of the last six hours.'),
  })
  .describe(
    'The GPUs that the tenant held and ended for nothing, once that is much: a controller that starts continues from it.',
  );

const keptDisksSchema = z
  .object({
    count: z.int().min(0).describe('How many there are.'),
    gb: z.int().min(0).describe('Their size in GB together.'),
  })
  .describe('Disks that are kept although their instances are gone. Absent: none.');

export const tenantLimitStatusSchema = z.object({
  held: heldSchema.optional(),
  keptDisks: keptDisksSchema.optional(),
  budget: budgetStatusSchema.optional(),
  keyBudgets: z
    .array(keyBudgetSchema)
    .max(MOST_KEY_BUDGETS)
    .optional()
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .describe(
      'Budgets of APIKeys, also of deleted ones of which an instance is left: what a key created stays under its budget.',
    ),
});

/** What a tenant held and ended for nothing. */
export type Held = z.infer<typeof heldSchema>;

/** The budget of an APIKey, which outlives it. */
export type KeyBudget = z.infer<typeof keyBudgetSchema>;

/** How many disks are kept of deleted instances, and how large they are. */
export type KeptDisks = z.infer<typeof keptDisksSchema>;

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
    { name: 'Kept-Disks-GB', type: 'integer', jsonPath: '.status.keptDisks.gb' },
    { name: 'Budget-Percent', type: 'integer', jsonPath: '.status.budget.percent' },
    AGE_COLUMN,
  ],
  spec: tenantLimitSpecSchema,
  status: tenantLimitStatusSchema,
};
