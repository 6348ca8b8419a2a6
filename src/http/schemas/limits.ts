import { z } from 'zod';

/** A ceiling, and how much of it is used. */
function usedOf(what: string) {
  return z
    .object({ used: z.int().min(0), limit: z.int().min(0) })
    .describe(`${what}: how many there are, and how many the tenant may have.`);
}

const countSchema = z.int().min(0);

export const limitsSchema = z
  .object({
    object: z.literal('limits'),
    policies: z
      .array(z.string())
      .describe('TenantPolicies that the ceilings come from. The operator can change them. Empty: the defaults hold.'),
    instances: usedOf('Instances, in whatever state'),
    ssh_keys: usedOf('SSH keys'),
    templates: usedOf('Templates'),
    api_keys: usedOf('API keys'),
    registries: usedOf('Credentials of registries'),
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
    images: z
      .array(z.string())
      .describe('Images that instances may run, with the registry spelled out; * ends a start.'),
    runtime_classes: z.array(z.string()).describe('RuntimeClasses that an instance may name.'),
    user_namespaces: z.enum(['optional', 'required']),
    requests_per_minute: countSchema.describe('Calls of the compute endpoints per minute.'),
    model_calls_per_minute: countSchema.nullable().describe('Model calls per minute; null for no ceiling.'),
    model_tokens_per_minute: countSchema.nullable().describe('Tokens of model calls per minute; null for no ceiling.'),
  })
  .describe('The ceilings of the tenant, and what is used of them.');

export type LimitsRecord = z.infer<typeof limitsSchema>;
