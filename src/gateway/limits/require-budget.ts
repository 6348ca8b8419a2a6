import type { Principal } from '../../access/principal.ts';
import { spentMessage } from '../../budgets/counted.ts';
import { keyBudget, tenantBudget } from '../../budgets/words.ts';
import type { ClientWriter } from '../calls/client-writer.ts';
import type { ModelRouterDeps } from '../deps.ts';
import { DialectError, type Dialect, INSUFFICIENT_QUOTA } from '../dialects/index.ts';

/**
 * Refuses a call when the budget of its tenant or its key is spent, in the words of the dialect for an account without credit: OpenAI's
 * `insufficient_quota`, Anthropic's `billing_error`. The header keeps the clients of both from trying again.
 * @throws DialectError 402, 429
 */
export function requireBudget(
  { budgets, keyBudgets, ceilings }: Pick<ModelRouterDeps, 'budgets' | 'keyBudgets' | 'ceilings'>,
  client: ClientWriter,
  { principal, dialect }: { principal: Principal; dialect: Dialect },
): void {
  const { namespace, name } = principal;
  const [budget, own] = [budgets(namespace), keyBudgets(principal)];
  const message =
    (budget && spentMessage(budget, tenantBudget(ceilings(namespace).policies))) ??
    (own && spentMessage(own, keyBudget(name)));
  if (message === undefined) return;
  client.add({ 'x-should-retry': 'false' });
  throw new DialectError({ status: dialect === 'messages' ? 402 : 429, message, code: INSUFFICIENT_QUOTA });
}
