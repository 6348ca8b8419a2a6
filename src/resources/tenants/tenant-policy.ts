import { z } from 'zod';
import type { KubeObject } from '../../kube/types.ts';
import { ceilingsSchema } from './ceilings.ts';
import { AGE_COLUMN, berthType, conditionsSchema, type CustomResource } from '../schema.ts';

/** On a namespace: it is a tenant. */
export const TENANT_LABEL = 'berth.dev/tenant';

export const tenantPolicySpecSchema = ceilingsSchema.extend({
  namespaceLabels: z
    .record(z.string().min(1).max(317), z.string().max(63).describe('Value of the label.'))
    .default({})
    .describe(
      'Labels that a namespace must have to be covered. Empty covers every tenant. The policy that asks for the most labels wins; of several that ask for as many, the strictest ceilings hold together.',
    ),
});

export const tenantPolicyStatusSchema = z.object({
  observedGeneration: z.int().optional().describe('metadata.generation that the status is for.'),
  conditions: conditionsSchema.optional(),
  tenants: z.int().optional().describe('Namespaces whose ceilings come from this policy.'),
});

export type TenantPolicySpec = z.infer<typeof tenantPolicySpecSchema>;
export type TenantPolicyStatus = z.infer<typeof tenantPolicyStatusSchema>;
export interface TenantPolicy extends KubeObject {
  spec: TenantPolicySpec;
  status?: TenantPolicyStatus;
}

export const TENANT_POLICIES = berthType<TenantPolicy>('TenantPolicy', 'tenantpolicies', false);

export const tenantPolicyResource: CustomResource = {
  ...TENANT_POLICIES,
  shortNames: ['tpol'],
  description: 'The ceilings that the operator sets for tenants.',
  columns: [
    { name: 'Tenants', type: 'integer', jsonPath: '.status.tenants' },
    { name: 'Instances', type: 'integer', jsonPath: '.spec.objects.instances' },
    { name: 'User-Namespaces', type: 'string', jsonPath: '.spec.userNamespaces', priority: 1 },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Reason', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
    AGE_COLUMN,
  ],
  spec: tenantPolicySpecSchema,
  status: tenantPolicyStatusSchema,
};
