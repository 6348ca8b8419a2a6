import { monthIn } from '../../ledger/month.ts';
import { costOfTokens, exactCostOfTokens } from '../../ledger/tokens.ts';
import { MOST_CREATED_BY } from '../../resources/instances/claim.ts';
import type { TokenPrices } from '../../resources/model-servers/prices.ts';
import { addMoney, formatMoney } from '../../resources/money.ts';
import { MOST_ENTRIES, MOST_MODEL, type TokenEntry, type TokenRecord } from '../../resources/token-record.ts';
import { ENDED_LABEL } from '../../resources/usage-record.ts';
import type { Usage } from '../dialects/index.ts';
import type { BudgetAccount, UncountedBills } from '../limits/budget-account.ts';

/** More than any call has: the sums of a day stay exact whatever an engine reports. */
const MOST_TOKENS = 1_000_000_000;

/** A call that costs something, as it was when the gateway let it in. */
export interface BilledCall {
  /** The tenant. */
  namespace: string;
  /** What stands for it: another tenant may have the namespace by now. */
  tenant: string;
  /** key/NAME or person/NAME. */
  by: string;
  model: string;
  prices: TokenPrices;
  /** The budgets that it draws on. */
  accounts?: readonly BudgetAccount[];
}

const COUNTS = ['calls', 'unreported', 'estimated', 'inputTokens', 'cachedInputTokens', 'outputTokens'] as const;
type Counts = Record<(typeof COUNTS)[number], number>;

interface PageParts {
  namespace: string;
  tenant: string;
  day: string;
  currency: string;
  /** Of its record. */
  name: string;
  replica: string;
}

/** Where the calls of one tenant on one day at prices in one currency are counted, until there are too many kinds of them: one record. */
export class TokenPage {
  readonly namespace: string;
  readonly tenant: string;
  readonly day: string;
  readonly currency: string;
  /** When the oldest count came that no record has, monotonic. Undefined when every count is written. */
  waitingSince: number | undefined;
  readonly #parts: PageParts;
  readonly #entries = new Map<string, { call: BilledCall; counts: Counts }>();
  #calls = 0;
  #written = 0;
  /** What calls cost that no record has, by the budgets that they draw on. */
  #owed = new Map<UncountedBills, bigint>();

  constructor(parts: PageParts) {
    this.namespace = parts.namespace;
    this.tenant = parts.tenant;
    this.day = parts.day;
    this.currency = parts.currency;
    this.#parts = parts;
  }

  /** Name of its record. */
  get name(): string {
    return this.#parts.name;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Calls that were counted here. */
  get calls(): number {
    return this.#calls;
  }

  /** Calls that no record has. */
  get unwritten(): number {
    return this.#calls - this.#written;
  }

  /** Whether a call like this one was counted here before. */
  has(call: BilledCall): boolean {
    return this.#entries.has(idOf(call));
  }

  get isFull(): boolean {
    return this.#entries.size >= MOST_ENTRIES;
  }

  /** @param usage undefined when the engine reported nothing */
  add(call: BilledCall, usage: Usage | undefined, isEstimate: boolean): void {
    const id = idOf(call);
    const entry = this.#entries.get(id) ?? { call, counts: { ...NO_COUNTS } };
    this.#entries.set(id, entry);
    const { counts } = entry;
    this.#calls += 1;
    counts.calls += 1;
    if (usage === undefined) counts.unreported += 1;
    else if (isEstimate) counts.estimated += 1;
    const input = bounded(usage?.inputTokens);
    const cached = Math.min(input, bounded(usage?.cachedTokens));
    const output = bounded(usage?.outputTokens);
    counts.inputTokens += input;
    counts.cachedInputTokens += cached;
    counts.outputTokens += output;
    const cost = exactCostOfTokens({ input, cached, output }, call.prices);
    for (const account of call.accounts ?? []) {
      const bills = account.billsOf(monthIn(this.day));
      bills.add(cost);
      this.#owe(bills, cost);
    }
  }

  /** Hands out what calls cost that no record has, for a write of `record`. */
  takeOwed(): Map<UncountedBills, bigint> {
    const owed = this.#owed;
    this.#owed = new Map();
    return owed;
  }

  /** Takes it back after a write that failed. */
  giveBack(owed: ReadonlyMap<UncountedBills, bigint>): void {
    for (const [bills, cost] of owed) this.#owe(bills, cost);
  }

  #owe(bills: UncountedBills, cost: bigint): void {
    this.#owed.set(bills, (this.#owed.get(bills) ?? 0n) + cost);
  }

  /** A page of another name with what `stored` has not of the counts here, which somebody changed. */
  beyond(stored: TokenRecord, name: string): TokenPage {
    const page = new TokenPage({ ...this.#parts, name });
    const known = new Map(stored.spec.entries.map((entry) => [nameOf(entry), entry]));
    for (const [id, { call, counts }] of this.#entries) {
      const before = known.get(nameOf(entryOf({ call, counts })));
      const rest = { ...counts };
      for (const count of COUNTS) rest[count] = Math.max(0, counts[count] - (before?.[count] ?? 0));
      if (COUNTS.some((count) => rest[count] > 0)) page.#entries.set(id, { call, counts: rest });
      page.#calls += rest.calls;
    }
    page.waitingSince = this.waitingSince;
    page.#owed = this.takeOwed();
    return page;
  }

  /** A record has so many of the calls. */
  noteWritten(calls: number): void {
    this.#written = Math.max(this.#written, calls);
  }

  /** All that was counted here. Written again, it changes nothing; written later, it only grows. */
  record(): TokenRecord {
    const entries = [...this.#entries.values()].map(entryOf);
    return {
      metadata: { name: this.name, namespace: this.namespace, labels: { [ENDED_LABEL]: monthIn(this.day) } },
      spec: {
        day: this.day,
        replica: this.#parts.replica,
        calls: this.#calls,
        cost: entries.map(({ cost }) => cost).reduce(addMoney, '0.00'),
        currency: this.currency,
        entries,
      },
    };
  }
}

const NO_COUNTS: Counts = {
  calls: 0,
  unreported: 0,
  estimated: 0,
  inputTokens: 0,
  cachedInputTokens: 0,
  outputTokens: 0,
};

function bounded(count = 0): number {
  return Math.min(count, MOST_TOKENS);
}

function idOf({ by, model, prices }: BilledCall): string {
  return [by, model, prices.input, prices.cachedInput, prices.output].join('\0');
}

/** What tells entries of a record apart. */
function nameOf({ by, model, inputPrice, cachedInputPrice, outputPrice }: TokenEntry): string {
  return [by, model, inputPrice, cachedInputPrice, outputPrice].join('\0');
}

function entryOf({ call: { by, model, prices }, counts }: { call: BilledCall; counts: Counts }): TokenEntry {
  const { estimated, ...others } = counts;
  const { inputTokens: input, cachedInputTokens: cached, outputTokens: output } = counts;
  return {
    by: by.slice(0, MOST_CREATED_BY),
    model: model.slice(0, MOST_MODEL),
    inputPrice: prices.input,
    cachedInputPrice: prices.cachedInput,
    outputPrice: prices.output,
    ...others,
    ...(estimated > 0 && { estimated }),
    cost: formatMoney(costOfTokens({ input, cached, output }, prices)),
  };
}
