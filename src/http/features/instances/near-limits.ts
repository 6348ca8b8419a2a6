import type { CeilingsOf } from '../../../access/ceilings.ts';
import type { BudgetOf, DeletedKeyBudgetOf, KeyBudgetOf } from '../../../budgets/counted.ts';
import { type BudgetWords, deletedKeyBudget, keyBudget, tenantBudget, warningWords } from '../../../budgets/words.ts';
import type { Inventory } from '../../../inventory/inventory.ts';
import type { GpuShare } from '../../../inventory/tenant-holdings.ts';
import { keyOf } from '../../../kube/types.ts';
import type { ReadStore } from '../../../kube/watch/store.ts';
import { Lru } from '../../../lib/lru.ts';
import { type ApiKey, creatingKey } from '../../../resources/api-key.ts';
import { CREATED_BY, type GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { type BudgetStatus, WARNINGS } from '../../../resources/tenants/budget.ts';
import { type Ceilings, isForGpus } from '../../../resources/tenants/ceilings.ts';
import { TENANT_LIMIT_NAME, type TenantLimit } from '../../../resources/tenants/tenant-limit.ts';
import { whoCanChange } from '../../../resources/tenants/who-can-change.ts';

/** Share of a ceiling from which on it is near. */
const NEAR = 0.9;

interface Held {
  ceilings: Pick<Ceilings, 'gpus' | 'objects'>;
  /** The TenantPolicies that the ceilings come from. */
  policies: readonly string[];
  instances: number;
  gpus: readonly GpuShare[];
  /** What was spent of the budget in this month; undefined without one. */
  budget: BudgetStatus | undefined;
}

/** The ceilings of a tenant that little is left of, in words. */
export function nearLimits({ ceilings, policies, instances, gpus, budget }: Held): string[] {
  const most = ceilings.objects.instances;
  const ofObjects =
    instances < most * NEAR
      ? []
      : [`You have ${instances} of ${most} instances. ${whoCanChange('objects.instances', policies)}`];
  const ofGpus = ceilings.gpus.flatMap((ceiling) => {
    const held = gpus.filter((share) => isForGpus(ceiling, share)).reduce((sum, share) => sum + share.gpus, 0);
    if (held === 0 || held < ceiling.max * NEAR) return [];
    const product = ceiling.product === '*' ? 'GPUs' : `GPUs ${ceiling.product}`;
    const pool = ceiling.pool === '*' ? '' : ` of pool ${ceiling.pool}`;
    return [`You hold ${held} of ${ceiling.max} ${product}${pool}. ${whoCanChange('gpus', policies)}`];
  });
  return [...ofObjects, ...ofGpus, ...nearBudget(budget, tenantBudget(policies))];
}

function nearBudget(budget: BudgetStatus | undefined, words: BudgetWords): string[] {
  return budget === undefined || budget.percent < WARNINGS[0] ? [] : [warningWords(budget, words)];
}

interface Known {
  /** Versions of the caches when the words were made. */
  instances: string;
  offers: number;
  limit: TenantLimit | undefined;
  /** Of the month that it was. */
  budget: BudgetStatus | undefined;
  words: readonly string[];
}

/** What was said last of the ceilings of a tenant and of the budget of a key. */
interface KnownOfKey {
  /** What says it: the key, or the TenantLimit when the key was deleted. */
  source: ApiKey | TenantLimit;
  /** Of the month that it was. */
  budget: BudgetStatus | undefined;
  ofTenant: readonly string[];
  words: readonly string[];
}

/** Tenants whose words are kept, and as many keys. */
const MOST_KNOWN = 1_000;

export interface NearLimitsDeps {
  stores: { instances: ReadStore<GpuInstance>; tenantLimits: ReadStore<TenantLimit>; apiKeys: ReadStore<ApiKey> };
  offers: Pick<Inventory, 'heldBy' | 'version'>;
  ceilings: CeilingsOf;
  budgets: BudgetOf;
  keyBudgets: KeyBudgetOf;
  deletedKeyBudgets: DeletedKeyBudgetOf;
}

/** The new words, or the old array where they are the same. */
function keptWords(before: readonly string[] | undefined, found: readonly string[]): readonly string[] {
  return before?.length === found.length && before.every((words, index) => words === found[index]) ? before : found;
}

/** Says what is near of the ceilings and the budget of a tenant. Looks once for all records of a list. */
function tenantReader({ stores, offers, ceilings, budgets }: NearLimitsDeps): (tenant: string) => readonly string[] {
  const known = new Lru<string, Known>(MOST_KNOWN);
  return (tenant) => {
    const limit = stores.tenantLimits.get(keyOf({ namespace: tenant, name: TENANT_LIMIT_NAME }));
    const versions = { instances: stores.instances.resourceVersion, offers: offers.version };
    const budget = budgets(tenant);
    const before = known.get(tenant);
    const isSame = before?.instances === versions.instances && before.offers === versions.offers;
    if (isSame && before.limit === limit && before.budget === budget) return before.words;
    const found = nearLimits({
      ceilings: ceilings(tenant),
      policies: limit?.spec.policies ?? [],
      instances: stores.instances.by('namespace', tenant).length,
      gpus: offers.heldBy(tenant),
      budget,
    });
    const words = keptWords(before?.words, found);
    known.set(tenant, { ...versions, limit, budget, words });
    return words;
  };
}

/** Whose budget an instance draws on: that of its claim, or of the claim that it will get. */
function payerOf({ metadata, status }: GpuInstance): string | undefined {
  return status?.claim === undefined ? metadata.annotations?.[CREATED_BY] : status.claim.createdBy;
}

/**
 * Says of an instance which ceilings of its tenant are near, and how much is spent of the budgets of the tenant and of the
 * key that created it: the same array until that changes.
 */
export function nearLimitsReader(deps: NearLimitsDeps): (instance: GpuInstance) => readonly string[] {
  const { stores, keyBudgets, deletedKeyBudgets } = deps;
  const ofTenants = tenantReader(deps);
  const known = new Lru<string, KnownOfKey>(MOST_KNOWN);
  return (instance) => {
    const { namespace = '' } = instance.metadata;
    const ofTenant = ofTenants(namespace);
    const name = creatingKey(payerOf(instance));
    if (name === undefined) return ofTenant;
    const key = stores.apiKeys.get(keyOf({ namespace, name }));
    if (key !== undefined && key.spec.limits?.budget === undefined) return ofTenant;
    const source = key ?? stores.tenantLimits.get(keyOf({ namespace, name: TENANT_LIMIT_NAME }));
    if (source === undefined) return ofTenant;
    const budget =
      key === undefined ? deletedKeyBudgets(namespace, name) : keyBudgets({ namespace, name, limits: key.spec.limits });
    const before = known.get(keyOf({ namespace, name }));
    if (before?.source === source && before.ofTenant === ofTenant && before.budget === budget) return before.words;
    const ofKey = nearBudget(budget, key === undefined ? deletedKeyBudget(name) : keyBudget(name));
    const words = keptWords(before?.words, [...ofTenant, ...ofKey]);
    known.set(keyOf({ namespace, name }), { source, budget, ofTenant, words });
    return words;
  };
}
