import type { Principal } from '../../access/principal.ts';
import { exactCostOfTokens } from '../../ledger/tokens.ts';
import type { TokenPrices } from '../../resources/model-servers/prices.ts';
import { compareMoney } from '../../resources/money.ts';
import type { Model } from '../balance/model.ts';
import type { ModelRouterDeps } from '../deps.ts';
import { type Dialect, DialectError, INSUFFICIENT_QUOTA } from '../dialects/index.ts';
import { findModel } from '../find-model.ts';
import type { BudgetHold } from '../limits/budget-holds.ts';
import { LimitError } from '../limits/limiter.ts';
import type { Call } from './call.ts';
import type { ClientWriter } from './client-writer.ts';
import { mostInput, mostTokens } from './most-tokens.ts';

/** Milliseconds that a call waits for room in a budget, and between two looks at it. */
const WAIT_MS = 60_000;
const LOOK_MS = 250;
const FULL_RETRY_MS = 5000;
/** The same where starts have set aside what is left, for an hour at most. */
const PROMISED_RETRY_MS = 60_000;

/** @throws DialectError 403 */
export function requireScope({ scopes }: Principal): void {
  if (scopes.includes('models')) return;
  throw new DialectError({
    status: 403,
    message: "This API key lacks the scope 'models'. Create a key with that scope on the dashboard.",
    code: 'insufficient_scope',
  });
}

/**
 * Refuses a call when a budget of its tenant or its key is spent that it would draw on, in the words of the dialect for an
 * account without credit: OpenAI's `insufficient_quota`, Anthropic's `billing_error`. The header keeps the clients of both
 * from trying again.
 * @throws DialectError 402, 429
 */
export function requireBudget(
  { holds }: Pick<ModelRouterDeps, 'holds'>,
  client: ClientWriter,
  { principal, dialect, prices }: { principal: Principal; dialect: Dialect; prices: TokenPrices | undefined },
): void {
  const message = holds.spent(principal, prices);
  if (message !== undefined) throw spentError(client, dialect, message);
}

function spentError(client: ClientWriter, dialect: Dialect, message: string): DialectError {
  client.add({ 'x-should-retry': 'false' });
  return new DialectError({ status: dialect === 'messages' ? 402 : 429, message, code: INSUFFICIENT_QUOTA });
}

/**
 * Lets a call in at the price that its model has now, and holds what it may cost against its budgets. Waits while these
 * have no room beside calls that are under way or not counted yet.
 * @throws DialectError, LimitError, ClientGoneError
 */
export async function letIn(
  deps: Pick<ModelRouterDeps, 'catalog' | 'caller' | 'holds' | 'hurry' | 'clock'>,
  call: Call,
  model: Model,
  client: ClientWriter,
): Promise<BudgetHold> {
  const { holds, hurry, clock } = deps;
  const until = clock.monotonic() + WAIT_MS;
  let prompt: number | undefined;
  for (;;) {
    // The price may have changed while the call waited.
    const { prices } = model;
    call.prices = prices;
    if (prices !== undefined) prompt ??= mostInput(call);
    const cost = prices === undefined ? 0n : mostCost(call, model, prices, prompt);
    const taken = await holds.take(call.principal, prices, cost);
    if ('hold' in taken) return taken.hold;
    if ('spent' in taken) throw spentError(client, call.dialect, taken.spent);
    const { full: message, passing } = taken;
    if (!passing) throw new LimitError({ limit: 'budget', message, retryAfterMs: PROMISED_RETRY_MS });
    if (clock.monotonic() >= until) throw new LimitError({ limit: 'budget', message, retryAfterMs: FULL_RETRY_MS });
    if (call.inspection.stream) client.keepAlive();
    hurry(call.principal.namespace);
    await clock.sleep(LOOK_MS);
    if (client.over !== undefined) throw client.over;
    askAgain(deps, call);
  }
}

/** What a call may cost at most, in millionths of a millionth of the currency. */
function mostCost(call: Call, model: Model, prices: TokenPrices, prompt: number | undefined): bigint {
  const cached = compareMoney(prices.cachedInput, prices.input) > 0 ? prices.cachedInput : prices.input;
  return exactCostOfTokens({ ...mostTokens(call, model, prompt), cached: 0 }, { ...prices, input: cached });
}

/**
 * Asks a call that waited for its key, scope and model again: all of them may have been taken away meanwhile.
 * @throws DialectError 401, 403, 404
 */
export function askAgain(deps: Pick<ModelRouterDeps, 'catalog' | 'caller'>, call: Call): void {
  const principal = callerNow(deps, call.principal);
  findModel(deps, principal, call.inspection.model);
  call.principal = principal;
}

/**
 * The caller of what waited, as it is now.
 * @throws DialectError 401, 403
 */
export function callerNow({ caller }: Pick<ModelRouterDeps, 'caller'>, before: Principal): Principal {
  const principal = caller(before);
  if (principal === undefined)
    throw new DialectError({
      status: 401,
      message:
        'The API key was revoked or deleted, or has expired, while the call waited. Use another key, or sign in again.',
    });
  requireScope(principal);
  return principal;
}
