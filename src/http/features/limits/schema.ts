import { z } from 'zod';
import { named, timeSchema } from '../../interface/schema.ts';

/** A ceiling, and how much of it is used. */
function usedOf(what: string) {
  return z
    .object({ used: z.int().min(0), limit: z.int().min(0) })
    .describe(`${what}: how many there are, and how many the tenant may have.`);
}

const countSchema = z.int().min(0);

const amountSchema = z.string().regex(/^-?[0-9]+(\.[0-9]+)?$/);

const budgetSchema = z
  .object({
    month: z.string().describe('The month in UTC, such as 2026-11.'),
    renews_at: timeSchema.describe('When the next month begins. RFC 3339, UTC.'),
    at: timeSchema
      .nullable()
      .describe('When this was counted: at the last whole per cent that was spent. null before the first count.'),
    percent: countSchema.describe('Per cent of the part that is used most, rounded down. It may be more than 100.'),
    lines: z
      .array(
        z.object({
          unit: z.string().describe('A currency as ISO 4217 code, or GPU-hours.'),
          limit: amountSchema,
          spent: amountSchema.describe('With starts that still run. Negative after a credit.'),
          left: amountSchema.describe('Never negative.'),
        }),
      )
      .describe('Each part of the budget. Every part holds.'),
  })
  .describe('The money that may be spent in a month, and the part that is left.');

export type BudgetRecord = z.infer<typeof budgetSchema>;

export const limitsSchema = named(
  'Limits',
  z
    .object({
      object: z.literal('limits'),
      namespace: z.string().describe('The tenant.'),
      caller: z
        .object({
          id: z.string().describe('key/NAME or person/NAME, as usage has it.'),
          name: z.string().nullable().describe('The name that people gave the key; null without one.'),
          scopes: z.array(z.string()),
        })
        .describe('The caller.'),
      policies: z
        .array(z.string())
        .describe(
          'TenantPolicies that the ceilings come from. The operator can change them. Empty: the defaults hold.',
        ),
      instances: usedOf('Instances, in whatever state'),
      ssh_keys: usedOf('SSH keys'),
      templates: usedOf('Templates'),
      api_keys: usedOf('API keys'),
      registries: usedOf('Credentials of registries'),
      webhooks: usedOf('Webhooks'),
      gpus_used: countSchema.describe('GPUs and MIG slices that the instances hold now.'),
      gpus: z
        .array(
          z.object({
            pool: z.string().nullable().describe('The pool that the ceiling is for; null for all together.'),
            gpu_name: z.string().nullable().describe('The GPU product that the ceiling is for; null for all together.'),
            used: countSchema,
            limit: countSchema,
          }),
        )
        .describe('GPUs at once. Every entry holds. Empty: no ceiling.'),
      disk_gb: z
        .object({ used: countSchema, limit: countSchema.nullable().describe('null for no ceiling.') })
        .describe('GB of disks that outlast a stop: those of instances, and those kept of deleted ones.'),
      kept_disks: z
        .object({ count: countSchema, gb: countSchema })
        .describe('Disks that are kept although their instances are gone. kubectl lists and deletes them.'),
      images: z
        .array(z.string())
        .describe('Images that instances may run, with the registry spelled out; * ends a start.'),
      runtime_classes: z.array(z.string()).describe('RuntimeClasses that an instance may name.'),
      user_namespaces: z.enum(['optional', 'required']),
      requests_per_minute: countSchema.describe('Calls of the compute endpoints per minute.'),
      model_calls_per_minute: countSchema.nullable().describe('Model calls per minute; null for no ceiling.'),
      model_tokens_per_minute: countSchema
        .nullable()
        .describe('Tokens of model calls per minute; null for no ceiling.'),
      budget: budgetSchema.nullable().describe('The budget of the tenant; null without one. The operator sets it.'),
      key_budget: budgetSchema
        .nullable()
        .describe('The budget of the API key that asks, for the instances that it created; null without one.'),
    })
    .describe('The ceilings of the tenant, and what is used of them.'),
);

export type LimitsRecord = z.infer<typeof limitsSchema>;
