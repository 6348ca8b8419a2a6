import { highestLine, isSpent, lineText, statusOfLines } from '../../budgets/accounts.ts';
import { TENANT } from '../../budgets/spending.ts';
import { spentWords, warningWords } from '../../budgets/words.ts';
import { isUidMismatch, NotFoundError } from '../../kube/errors.ts';
import type { EventFields, EventRecorder } from '../../kube/events.ts';
import { keyOf, type KubeObject, type ResourceType } from '../../kube/types.ts';
import type { ReadStore } from '../../kube/watch/store.ts';
import { sameJson } from '../../lib/json.ts';
import { API_KEYS, createdByKey } from '../../resources/api-key.ts';
import { type BudgetStatus, WARNINGS } from '../../resources/tenants/budget.ts';
import { TENANT_LIMIT_NAME, TENANT_LIMITS } from '../../resources/tenants/tenant-limit.ts';
import type { Fence } from '../../runtime/fence.ts';
import type { CommonDeps } from '../common-deps.ts';
import type { CountedBudget } from './budgets.ts';

export interface StatusDeps extends Pick<CommonDeps, 'client' | 'stores' | 'clock'> {
  events: Pick<EventRecorder, 'record'>;
  fence: Fence;
}

interface Found {
  namespace: string;
  counted: readonly CountedBudget[];
  signal: AbortSignal;
}

type Metered = KubeObject & { status?: { budget?: BudgetStatus | undefined } };

/** Writes what was spent to the TenantLimit and the APIKeys of a namespace, and takes it away where no budget is left. */
export async function keepStatuses(deps: StatusDeps, { namespace, counted, signal }: Found): Promise<void> {
  const { tenantLimits, apiKeys } = deps.stores;
  const byOwner = new Map(counted.map((one) => [one.owner, one]));
  const limit = tenantLimits.get(keyOf({ namespace, name: TENANT_LIMIT_NAME }));
  const ofTenant = byOwner.get(TENANT);
  if (limit !== undefined)
    await keep(deps, { type: TENANT_LIMITS, store: tenantLimits, object: limit, signal }, ofTenant);
  for (const object of apiKeys.by('namespace', namespace)) {
    const ofKey = byOwner.get(createdByKey(object.metadata.name));
    await keep(deps, { type: API_KEYS, store: apiKeys, object, signal }, ofKey);
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
  const after = counted && statusOfLines(counted.lines, counted.month, clock.now());
  if (sameBudget(before, after)) return;
  const { namespace = '', name, uid } = object.metadata;
  const body = { metadata: { uid }, status: { budget: after ?? null } };
  try {
    const options = { type: 'merge', subresource: 'status', signal } as const;
    fence.wrote(namespace, store, await client.patch(type, { namespace, name }, body, options));
  } catch (error) {
    if (error instanceof NotFoundError || isUidMismatch(error)) return;
    throw error;
  }
  const event = counted && warningOf(counted, before, after);
  if (event !== undefined) events.record(type, object, event);
}

/** Whether two statuses differ in nothing but the amounts of one per cent. */
function sameBudget(before: BudgetStatus | undefined, after: BudgetStatus | undefined): boolean {
  if (before === undefined || after === undefined) return before === after;
  const most = ({ lines }: BudgetStatus) => lines.map(({ unit, max }) => [unit, max]);
  return before.month === after.month && before.percent === after.percent && sameJson(most(before), most(after));
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
