import type { GpuShare } from '../../inventory/tenant-holdings.ts';
import { type Ceilings, isForGpus } from '../../resources/tenants/ceilings.ts';
import type { LimitsRecord } from '../schemas/limits.ts';

/** What a tenant has and holds. */
export interface Used {
  instances: number;
  sshKeys: number;
  templates: number;
  apiKeys: number;
  registries: number;
  gpus: readonly GpuShare[];
}

function sum(shares: readonly GpuShare[]): number {
  return shares.reduce((total, { gpus }) => total + gpus, 0);
}

function named(name: string): string | null {
  return name === '*' ? null : name;
}

export function toLimitsRecord(ceilings: Ceilings, policies: readonly string[], used: Used): LimitsRecord {
  const { objects, gpus, http, models } = ceilings;
  return {
    object: 'limits',
    policies: [...policies],
    instances: { used: used.instances, limit: objects.instances },
    ssh_keys: { used: used.sshKeys, limit: objects.sshKeys },
    templates: { used: used.templates, limit: objects.templates },
    api_keys: { used: used.apiKeys, limit: objects.apiKeys },
    registries: { used: used.registries, limit: objects.registries },
    gpus_used: sum(used.gpus),
    gpus: gpus.map((ceiling) => ({
      pool: named(ceiling.pool),
      gpu_name: named(ceiling.product),
      used: sum(used.gpus.filter((share) => isForGpus(ceiling, share))),
      limit: ceiling.max,
    })),
    images: ceilings.images,
    runtime_classes: ceilings.runtimeClassNames,
    user_namespaces: ceilings.userNamespaces === 'Required' ? 'required' : 'optional',
    requests_per_minute: http.requestsPerMinute,
    model_calls_per_minute: models.callsPerMinute ?? null,
    model_tokens_per_minute: models.tokensPerMinute ?? null,
  };
}
