import type { CeilingsOf } from '../../access/ceilings.ts';
import { asCreatedBy, type Principal } from '../../access/principal.ts';
import type { TenantId } from '../../access/tenants.ts';
import { periodOf } from '../../budgets/accounts.ts';
import type { BudgetOf, KeyBudgetOf } from '../../budgets/counted.ts';
import { type Purse, purseOf } from '../../budgets/purse.ts';
import { TENANT } from '../../budgets/spending.ts';
import { type BudgetWords, heldWords, keyBudget, spentWords, tenantBudget } from '../../budgets/words.ts';
import { type Month, monthOf } from '../../ledger/month.ts';
import type { Clock } from '../../lib/clock.ts';
import type { TokenPrices } from '../../resources/model-servers/prices.ts';
import { formatMoney, parseMoney } from '../../resources/money.ts';
import { type Budget, budgetSchema } from '../../resources/tenants/budget.ts';
import type { Holding, SharedHoldings } from '../../runtime/counter.ts';
import { BudgetAccount } from './budget-account.ts';
import { ReplicaHolds } from './replica-holds.ts';

/** Amounts of an account for a millionth of a currency. */
const SCALE = 1_000_000n;
/** What a replica may hold of a budget that no other sees, as a part of it: 1 per cent. */
const UNSEEN = 100n;
/** With more bills than this part of a budget uncounted, a replica waits for the count before it lets another call in. */
const UNCOUNTED = 400n;

/** What is held for a call until it has ended. */
export interface BudgetHold {
  /** Where its bill counts until the controller has it. */
  readonly accounts: readonly BudgetAccount[];
  release(): void;
}

/**
 * Why a call is not let in: a budget is spent, or has no room. `passing`: there may be room as soon as other calls have ended
 * or are counted.
 */
type Taken = { hold: BudgetHold } | { spent: string } | { full: string; passing: boolean };

export interface BudgetHoldsDeps {
  ceilings: CeilingsOf;
  budgets: BudgetOf;
  keyBudgets: KeyBudgetOf;
  tenantId: TenantId;
  /** Undefined where replicas share nothing. */
  holdings: SharedHoldings | undefined;
  clock: Pick<Clock, 'now' | 'setTimeout'>;
}

/** A budget that a call draws on, in the currency of its price. */
interface Drawn {
  account: BudgetAccount;
  purse: Purse;
  readPurse: () => Purse | undefined;
  currency: string;
  words: BudgetWords;
}

const NOTHING: BudgetHold = { accounts: [], release: () => undefined };

/**
 * Holds against budgets what this process knows and the controller has not counted: calls under way, at the most that they
 * may cost, and bills. Other replicas see it in Valkey only, so each may hold 1 per cent of a budget, or one call.
 */
export class BudgetHolds {
  readonly #deps: BudgetHoldsDeps;
  /** By tenant, owner and currency. */
  readonly #accounts = new Map<string, BudgetAccount>();
  readonly #replicas: ReplicaHolds;
  #month = '';

  constructor(deps: BudgetHoldsDeps) {
    this.#deps = deps;
    this.#replicas = new ReplicaHolds(deps);
  }

  /** That a budget is spent which a call at these prices would draw on; undefined while something is left. */
  spent(principal: Principal, prices: TokenPrices | undefined): string | undefined {
    if (prices === undefined) return undefined;
    return firstSpent(this.#drawnOn(principal, prices), monthOf(this.#deps.clock.now()));
  }

  /** Holds what a call may cost at most against every budget that it draws on, or against none of them. */
  async take(principal: Principal, prices: TokenPrices | undefined, cost: bigint): Promise<Taken> {
    if (prices === undefined) return { hold: NOTHING };
    const month = monthOf(this.#deps.clock.now());
    if (this.#month !== month.name) this.#beginMonth(month.name);
    const drawn = this.#drawnOn(principal, prices);
    const taken = this.#takeHere(drawn, month, cost);
    if (!('hold' in taken)) return taken;
    const more = roundedUp(cost);
    const refusals = await Promise.all(
      drawn.map(async (one) => {
        const isFirst = one.account.calls === 1;
        const others = await this.#replicas.refusal(nameIn(month, one), holdingOf(one, month), { more, isFirst });
        return others === undefined ? [] : [fullMessage(one, month, others)];
      }),
    );
    const [full] = refusals.flat();
    if (full === undefined) return taken;
    taken.hold.release();
    return { full, passing: true };
  }

  close(): void {
    this.#replicas.close();
  }

  /** As far as this process knows. */
  #takeHere(drawn: readonly Drawn[], month: Month, cost: bigint): Taken {
    const spent = firstSpent(drawn, month);
    if (spent !== undefined) return { spent };
    const full = drawn.find((one) => !hasRoom(one, month, cost));
    if (full !== undefined) return { full: fullMessage(full, month, 0n), passing: !isPromised(full, month) };
    if (drawn.length === 0) return { hold: NOTHING };
    for (const { account } of drawn) change(account, 1, cost);
    return {
      hold: {
        accounts: drawn.map(({ account }) => account),
        release: () => {
          for (const one of drawn) {
            change(one.account, -1, -cost);
            this.#replicas.changed(nameIn(month, one));
          }
        },
      },
    };
  }

  /** The budgets of the tenant and of the key that set a ceiling to money. A call that is free draws on none. */
  #drawnOn(principal: Principal, prices: TokenPrices | undefined): Drawn[] {
    if (prices === undefined || isFree(prices)) return [];
    const { ceilings, budgets, keyBudgets } = this.#deps;
    const { namespace, name } = principal;
    const { currency } = prices;
    const { budget, policies } = ceilings(namespace);
    const readTenant = () => purseOf(budget, budgets(namespace), currency);
    const readKey = () => purseOf(budgetOfKey(principal, currency), keyBudgets(principal), currency);
    const [ofTenant, ofKey] = [readTenant(), readKey()];
    const drawn: Drawn[] = [];
    if (ofTenant !== undefined)
      drawn.push({
        account: this.#account(namespace, TENANT, currency),
        purse: ofTenant,
        readPurse: readTenant,
        currency,
        words: tenantBudget(policies),
      });
    if (ofKey !== undefined)
      drawn.push({
        account: this.#account(namespace, asCreatedBy(principal), currency),
        purse: ofKey,
        readPurse: readKey,
        currency,
        words: keyBudget(name),
      });
    return drawn;
  }

  #account(namespace: string, owner: string, currency: string): BudgetAccount {
    const key = JSON.stringify([this.#deps.tenantId(namespace), owner, currency]);
    let account = this.#accounts.get(key);
    if (account === undefined) this.#accounts.set(key, (account = new BudgetAccount(key)));
    return account;
  }

  /** Bills of earlier months concern no budget of this one. */
  #beginMonth(month: string): void {
    this.#month = month;
    for (const [key, account] of this.#accounts) {
      account.keepMonth(month);
      if (account.isUnused) this.#accounts.delete(key);
    }
  }
}

function isFree({ input, cachedInput, output }: TokenPrices): boolean {
  return [input, cachedInput, output].every((price) => parseMoney(price) === 0n);
}

/** Of a budget that cannot be read nothing may be spent. */
function budgetOfKey({ limits }: Principal, currency: string): Budget | undefined {
  if (limits?.budget === undefined) return undefined;
  return budgetSchema.safeParse(limits.budget).data ?? { costs: [{ currency, max: '0' }] };
}

/** Bills of this process that the count of the controller lacks. */
function uncounted({ account, purse }: Drawn, month: Month): bigint {
  return account.billsOf(month.name).beyond(purse.tokensVersion);
}

/** That one of the budgets is spent. */
function firstSpent(all: readonly Drawn[], month: Month): string | undefined {
  for (const drawn of all) {
    const { purse, currency, words } = drawn;
    const used = purse.spent + uncounted(drawn, month) / SCALE;
    if (used < purse.max) continue;
    const line = { unit: currency, max: formatMoney(purse.max), spent: formatMoney(used) };
    return spentWords(line, periodOf(month), words);
  }
  return undefined;
}

/** @param others millionths that other replicas hold */
function fullMessage(drawn: Drawn, month: Month, others: bigint): string {
  const { account, purse, currency, words } = drawn;
  const line = { unit: currency, max: formatMoney(purse.max), spent: formatMoney(purse.spent) };
  const held = formatMoney(purse.reserved + others + (account.held + uncounted(drawn, month)) / SCALE);
  return heldWords(line, held, periodOf(month), words);
}

/** Whether starts have set aside all that is left. */
function isPromised(drawn: Drawn, month: Month): boolean {
  const { max, spent, reserved } = drawn.purse;
  return (spent + reserved) * SCALE + uncounted(drawn, month) >= max * SCALE;
}

/** Budgets of another month have other names, because what was counted of one says nothing of the next. */
function nameIn(month: Month, { account }: Drawn): string {
  return `${month.name}:${account.name}`;
}

/** Reads what this process holds of a budget, with the newest count. */
function holdingOf(drawn: Drawn, month: Month): () => Pick<Holding, 'held' | 'counted' | 'max'> | undefined {
  return () => {
    const purse = drawn.readPurse();
    if (purse === undefined) return undefined;
    const { max, spent, reserved } = purse;
    const held = roundedUp(drawn.account.held + uncounted({ ...drawn, purse }, month));
    return { held, counted: spent, max: max - reserved };
  };
}

function roundedUp(amount: bigint): bigint {
  return (amount + SCALE - 1n) / SCALE;
}

/** Whether a call may begin of which nothing but this process knows. The first one may, whatever it costs. */
function hasRoom(drawn: Drawn, month: Month, cost: bigint): boolean {
  const { account, purse } = drawn;
  const [max, bills] = [purse.max * SCALE, uncounted(drawn, month)];
  if (isPromised(drawn, month)) return false;
  if (account.calls === 0) return bills * UNCOUNTED <= max;
  const unseen = bills + account.held + cost;
  return unseen * UNSEEN <= max && (purse.spent + purse.reserved) * SCALE + unseen <= max;
}

function change(account: BudgetAccount, calls: number, cost: bigint): void {
  account.calls += calls;
  account.held += cost;
}
