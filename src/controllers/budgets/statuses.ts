import { highestLine, isSpent, lineText, statusOfLines } from '../../budgets/accounts.ts';
import { TENANT } from '../../budgets/spending.ts';
import { spentWords, warningWords } from '../../budgets/words.ts';
import { NotFoundError } from '../../kube/errors.ts';
import type { EventFields, EventRecorder } from '../../kube/events.ts';
import { statusPatch } from '../../kube/status-patch.ts';
import { keyOf, type KubeObject, type ResourceType } from '../../kube/types.ts';
import type { ReadStore } from '../../kube/watch/store.ts';
import { sameJson } from '../../lib/json.ts';
import { API_KEYS, createdByKey } from '../../resources/api-key.ts';
import { parseBalance, parseMoney } from '../../resources/money.ts';
import { type BudgetStatus, WARNINGS } from '../../resources/tenants/budget.ts';
import { type KeyBudget, TENANT_LIMIT_NAME, TENANT_LIMITS } from '../../resources/tenants/tenant-limit.ts';
import type { Fence } from '../../runtime/fence.ts';
import type { CommonDeps } from '../common-deps.ts';
import type { CountedBudget } from './budgets.ts';

/** What calls have spent since the last status is written after a minute, or when it is this part of a budget. */
const AWAITED_MS = 60_000;
const AWAITED = 400n;

export interface StatusDeps extends Pick<CommonDeps, 'client' | 'stores' | 'clock'> {
  events: Pick<EventRecorder, 'record'>;
  fence: Fence;
}

interface Found {
  namespace: string;
  counted: readonly CountedBudget[];
  /** The budgets of keys that the TenantLimit is to remember. */
  keyBudgets: readonly Pick<KeyBudget, 'name' | 'budget'>[];
  signal: AbortSignal;
}

type Metered = KubeObject & { status?: { budget?: BudgetStatus | undefined } };

/** Writes what was spent to the TenantLimit and the APIKeys of a namespace, and takes it away where no budget is left. */
export async function keepStatuses(deps: StatusDeps, found: Found): Promise<void> {
  const { namespace, counted, signal } = found;
  const { tenantLimits, apiKeys } = deps.stores;
  const byOwner = new Map(counted.map((one) => [one.owner, one]));
  const limit = tenantLimits.get(keyOf({ namespace, name: TENANT_LIMIT_NAME }));
  const ofTenant = byOwner.get(TENANT);
  if (limit !== undefined)
    await keep(deps, { type: TENANT_LIMITS, store: tenantLimits, object: limit, signal }, ofTenant);
  await keepKeyBudgets(deps, found);
  for (const object of apiKeys.by('namespace', namespace)) {
    const ofKey = byOwner.get(createdByKey(object.metadata.name));
    await keep(deps, { type: API_KEYS, store: apiKeys, object, signal }, ofKey);
  }
}

/** Writes the budgets of keys where they outlive the keys. */
async function keepKeyBudgets(
  { client, clock, fence, stores: { tenantLimits } }: StatusDeps,
  { namespace, counted, keyBudgets, signal }: Found,
): Promise<void> {
  // Read after the write of the tenant's own budget, if there was one.
  const limit = tenantLimits.get(keyOf({ namespace, name: TENANT_LIMIT_NAME }));
  if (limit === undefined) return;
  const before = limit.status?.keyBudgets ?? [];
  const [earlier, deleted] = [new Map(before.map((one) => [one.name, one])), new Map<string, CountedBudget>()];
  for (const one of counted) if (one.deletedKey !== undefined) deleted.set(one.deletedKey, one);
  const after = keyBudgets.map(({ name, budget }) => {
    const found = deleted.get(name);
    if (found === undefined) return { name, budget };
    const used = statusOf(found, clock.now());
    const known = earlier.get(name)?.used;
    return { name, budget, used: known !== undefined && sameBudget(known, used) ? known : used };
  });
  if (sameJson(before, after)) return;
  const body = statusPatch(limit, { keyBudgets: after.length === 0 ? undefined : after });
  try {
    const options = { type: 'json', subresource: 'status', signal } as const;
    const ref = { namespace, name: TENANT_LIMIT_NAME };
    fence.wrote(namespace, tenantLimits, await client.patch(TENANT_LIMITS, ref, body, options));
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
  }
}

interface Target<T extends Metered> {
  type: ResourceType<T>;
  store: ReadStore<T>;
  object: T;
  signal: AbortSignal;
}

async function keep<T extends Metered>(
  { client, clock, fence, events }: StatusDeps,
  { type, store, object, signal }: Target<T>,
  counted: CountedBudget | undefined,
): Promise<void> {
  const before = object.status?.budget;
  const after = counted && statusOf(counted, clock.now());
  if (sameBudget(before, after)) return;
  const { namespace = '', name } = object.metadata;
  const body = statusPatch(object, { budget: after });
  try {
    const options = { type: 'json', subresource: 'status', signal } as const;
    fence.wrote(namespace, store, await client.patch(type, { namespace, name }, body, options));
  } catch (error) {
    if (error instanceof NotFoundError) return;
    throw error;
  }
  const event = counted && warningOf(counted, before, after);
  if (event !== undefined) events.record(type, object, event);
}

function statusOf({ lines, month, tokensVersion }: CountedBudget, now: number): BudgetStatus {
  return { ...statusOfLines(lines, month, now), ...(tokensVersion !== undefined && { tokensVersion }) };
}

/**
 * Whether two statuses differ in nothing but the amounts of one per cent, with what is set aside, and no replica waits for
 * those.
 */
function sameBudget(before: BudgetStatus | undefined, after: BudgetStatus | undefined): boolean {
  if (before === undefined || after === undefined) return before === after;
  const most = ({ lines }: BudgetStatus) => lines.map(({ unit, max }) => [unit, max]);
  const isSame = before.month === after.month && before.percent === after.percent;
  if (!isSame || !sameJson(most(before), most(after))) return false;
  return !isAwaited(before, after) && !isPromisedAnew(before, after);
}

/** Whether starts have set aside, or given back, another per cent: calls to models leave that alone. */
function isPromisedAnew(before: BudgetStatus, after: BudgetStatus): boolean {
  const promised = ({ spent, reserved = '0' }: BudgetStatus['lines'][number]): bigint =>
    parseBalance(spent) + parseMoney(reserved);
  return after.lines.some((line, index) => {
    const change = promised(line) - (before.lines[index] ? promised(before.lines[index]) : 0n);
    return change !== 0n && (change < 0n ? -change : change) * 100n >= parseMoney(line.max);
  });
}

/**
 * Whether replicas hold back what is counted by now: another quarter of a per cent, at which they let no call in before
 * they read of it, or anything for a minute.
 */
function isAwaited(before: BudgetStatus, after: BudgetStatus): boolean {
  if (before.tokensVersion === after.tokensVersion) return false;
  const isOld = Date.parse(after.at) - Date.parse(before.at) >= AWAITED_MS;
  return after.lines.some(({ max, spent }, index) => {
    const more = parseBalance(spent) - parseBalance(before.lines[index]?.spent ?? '0');
    return more !== 0n && (isOld || more * AWAITED >= parseMoney(max));
  });
}

/** The highest warning that so many per cent ask for; 0 for none. */
function levelOf(percent: number): number {
  return Math.max(0, ...WARNINGS.filter((level) => percent >= level));
}

/** The Event for a warning that was not given in this month yet. */
function warningOf(
  { lines, words }: CountedBudget,
  before: BudgetStatus | undefined,
  after: BudgetStatus | undefined,
): EventFields | undefined {
  const line = highestLine(lines);
  if (line === undefined || after === undefined) return undefined;
  const level = levelOf(after.percent);
  if (level <= levelOf(before?.month === after.month ? before.percent : 0)) return undefined;
  if (isSpent(line))
    return { type: 'Warning', reason: 'BudgetSpent', message: spentWords(lineText(line), after, words) };
  return { type: 'Warning', reason: 'BudgetNear', message: warningWords(after, words) };
}
