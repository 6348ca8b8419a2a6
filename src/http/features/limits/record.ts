import { ofThisMonth } from '../../../budgets/counted.ts';
import type { GpuShare } from '../../../inventory/tenant-holdings.ts';
import { monthOf } from '../../../ledger/month.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { formatMoney, parseBalance, parseMoney } from '../../../resources/money.ts';
import { type Budget, type BudgetStatus, GPU_HOURS, isBudget } from '../../../resources/tenants/budget.ts';
import { type Ceilings, isForGpus } from '../../../resources/tenants/ceilings.ts';
import type { KeptDisks } from '../../../resources/tenants/tenant-limit.ts';
import type { BudgetRecord, LimitsRecord } from './schema.ts';

/** What a tenant has and holds. */
export interface Used {
  instances: number;
  sshKeys: number;
  templates: number;
  apiKeys: number;
  registries: number;
  webhooks: number;
  gpus: readonly GpuShare[];
  /** GB of the disks of instances that outlast a stop. */
  diskGb: number;
  keptDisks: KeptDisks;
}

/** GB of the disk of an instance that outlasts a stop; 0 while there is none. */
export function diskGbOf({ status }: Pick<GpuInstance, 'status'>): number {
  const isMade = status?.disk !== undefined || (status?.claim !== undefined && status.diskPersistent === true);
  return isMade ? (status.diskGb ?? 0) : 0;
}

function sum(shares: readonly GpuShare[]): number {
  return shares.reduce((total, { gpus }) => total + gpus, 0);
}

function named(name: string): string | null {
  return name === '*' ? null : name;
}

/** A budget, and what the controller counted of it in this month, if it has. */
export interface BudgetFacts {
  budget: Budget | undefined;
  status: BudgetStatus | undefined;
}

/** `now`: milliseconds since the epoch. */
export function toBudgetRecord({ budget, status }: BudgetFacts, now: number): BudgetRecord | null {
  if (!isBudget(budget)) return null;
  const { name, to } = monthOf(now);
  const counted = ofThisMonth(status, now);
  const hours = budget.gpuHours === undefined ? [] : [{ unit: GPU_HOURS, max: `${budget.gpuHours}.00` }];
  const bare = [...budget.costs.map(({ currency, max }) => ({ unit: currency, max })), ...hours];
  const lines = counted?.lines ?? bare.map((line) => ({ ...line, spent: '0.00' }));
  return {
    month: name,
    renews_at: new Date(to).toISOString(),
    at: counted?.at ?? null,
    percent: counted?.percent ?? 0,
    lines: lines.map(({ unit, max, spent }) => ({ unit, limit: max, spent, left: leftOf(max, spent) })),
  };
}

function leftOf(max: string, spent: string): string {
  const left = parseMoney(max) - parseBalance(spent);
  return formatMoney(left > 0n ? left : 0n);
}

/** The records of the budgets. */
export type Budgets = Pick<LimitsRecord, 'budget' | 'key_budget'>;

export function toLimitsRecord(
  ceilings: Ceilings,
  policies: readonly string[],
  used: Used,
  budgets: Budgets,
): Omit<LimitsRecord, 'namespace' | 'caller'> {
  const { objects, gpus, http, models } = ceilings;
  return {
    object: 'limits',
    policies: [...policies],
    instances: { used: used.instances, limit: objects.instances },
    ssh_keys: { used: used.sshKeys, limit: objects.sshKeys },
    templates: { used: used.templates, limit: objects.templates },
    api_keys: { used: used.apiKeys, limit: objects.apiKeys },
    registries: { used: used.registries, limit: objects.registries },
    webhooks: { used: used.webhooks, limit: objects.webhooks },
    gpus_used: sum(used.gpus),
    gpus: gpus.map((ceiling) => ({
      pool: named(ceiling.pool),
      gpu_name: named(ceiling.product),
      used: sum(used.gpus.filter((share) => isForGpus(ceiling, share))),
      limit: ceiling.max,
    })),
    disk_gb: { used: used.diskGb + used.keptDisks.gb, limit: ceilings.diskGb ?? null },
    kept_disks: used.keptDisks,
    images: ceilings.images,
    runtime_classes: ceilings.runtimeClassNames,
    user_namespaces: ceilings.userNamespaces === 'Required' ? 'required' : 'optional',
    requests_per_minute: http.requestsPerMinute,
    model_calls_per_minute: models.callsPerMinute ?? null,
    model_tokens_per_minute: models.tokensPerMinute ?? null,
    ...budgets,
  };
}
