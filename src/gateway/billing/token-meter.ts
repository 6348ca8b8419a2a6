import { randomBytes } from 'node:crypto';
import { Counter, Gauge, type Registry } from 'prom-client';
import type { Clock } from '../../lib/clock.ts';
import type { TokenRecord } from '../../resources/token-record.ts';
import type { Usage } from '../dialects/index.ts';
import { type BilledCall, TokenPage } from './token-page.ts';

/** Entries of all pages in memory, some 400 bytes each. */
const MOST_ENTRIES_HELD = 20_000;
/** Milliseconds that a page is kept which cannot be written. */
const KEPT_MS = 86_400_000;

export interface TokenMeterOptions {
  /** This replica, for people who read its records. */
  replica: string;
  clock: Clock;
}

/**
 * Why calls cost nothing: the engine reported no tokens; no record could be written, until there was no room; a record
 * was refused for a day, or its tenant is gone.
 */
export const UNBILLED_REASONS = ['unreported', 'full', 'refused'] as const;

/**
 * Counts what the calls of this process to priced models took, by tenant, day and currency. Each page becomes one record, whose
 * name no other process has: so replicas never write the same one, and the sum over all records is what all have
 * counted. Pages that are written and old go; what could not be written stays, within bounds.
 */
export class TokenMeter {
  readonly #options: TokenMeterOptions;
  #process = newProcess();
  /** The page of each tenant and currency that takes calls. */
  readonly #open = new Map<string, TokenPage>();
  /** Pages with counts that no record has. The writer tries them in this order. */
  readonly #unwritten = new Set<TokenPage>();
  /** Open pages whose counts are all written, in the order of the writes. */
  readonly #written = new Set<TokenPage>();
  #entries = 0;
  #pages = 0;
  /** Calls to priced models that cost nothing. */
  readonly unbilled: Record<(typeof UNBILLED_REASONS)[number], number> = { unreported: 0, full: 0, refused: 0 };

  constructor(options: TokenMeterOptions) {
    this.#options = options;
  }

  /**
   * Counts a call that was answered.
   * @param usage undefined when the engine reported nothing
   * @param isEstimate the client left before the engine had reported it
   */
  add(call: BilledCall, usage: Usage | undefined, isEstimate = false): void {
    const page = this.#pageFor(call);
    if (usage === undefined) this.unbilled.unreported += 1;
    if (page === undefined) {
      this.unbilled.full += 1;
      return;
    }
    this.#entries -= page.size;
    page.add(call, usage, isEstimate);
    this.#entries += page.size;
    page.waitingSince ??= this.#options.clock.monotonic();
    this.#written.delete(page);
    this.#unwritten.add(page);
  }

  /** Pages with counts that no record has, those that waited longest first. */
  get unwritten(): TokenPage[] {
    return [...this.#unwritten];
  }

  /** Seconds since the oldest count came that no record has. */
  get lagSeconds(): number {
    const since = [...this.#unwritten].map(({ waitingSince = Infinity }) => waitingSince);
    return since.length === 0 ? 0 : (this.#options.clock.monotonic() - since.reduce((a, b) => Math.min(a, b))) / 1000;
  }

  /** A record has the first `calls` of the page, read at `at`, monotonic. Those after them wait for the next turn. */
  noteWritten(page: TokenPage, calls: number, at: number): void {
    page.noteWritten(calls);
    this.#unwritten.delete(page);
    page.waitingSince = page.unwritten > 0 ? at : undefined;
    if (page.unwritten > 0) this.#unwritten.add(page);
    else if (this.#open.get(placeOf(page)) === page) this.#written.add(page);
    else this.#entries -= page.size;
  }

  /** The page could not be written, and others go before it. After a day it is given up. */
  noteFailed(page: TokenPage): void {
    this.#unwritten.delete(page);
    this.#unwritten.add(page);
    const waited = this.#options.clock.monotonic() - (page.waitingSince ?? 0);
    if (waited >= KEPT_MS) this.giveUp(page);
  }

  /**
   * Somebody else wrote to the record of the page, and it takes these counts no more. What it lacks goes to a page whose
   * record nobody has, with a name that nobody can guess. A write that is under way yet had less than these counts, so the
   * record refuses it too. Returns undefined when the record has them all.
   */
  moveOn(page: TokenPage, stored: TokenRecord): TokenPage | undefined {
    this.#process = newProcess();
    const rest = page.beyond(stored, this.#nextName(page.day));
    const isOpen = this.#open.get(placeOf(page)) === page;
    this.#unwritten.delete(page);
    this.#forget(page);
    if (rest.size === 0) {
      for (const [bills, cost] of rest.takeOwed()) bills.noteRecorded(cost, stored.metadata.resourceVersion ?? '');
      return undefined;
    }
    this.#entries += rest.size;
    this.#unwritten.add(rest);
    if (isOpen) this.#open.set(placeOf(rest), rest);
    return rest;
  }

  /** No record will have the rest of the page. */
  giveUp(page: TokenPage): void {
    this.unbilled.refused += page.unwritten;
    for (const [bills, cost] of page.takeOwed()) bills.drop(cost);
    this.#unwritten.delete(page);
    this.#forget(page);
  }

  /** Lets go of what is written of earlier days. */
  sweep(): void {
    const today = this.#today();
    for (const page of this.#written) if (page.day !== today) this.#forget(page);
  }

  #pageFor(call: BilledCall): TokenPage | undefined {
    const day = this.#today();
    const { namespace, tenant, prices } = call;
    const { currency } = prices;
    const last = this.#open.get(placeOf({ tenant, currency }));
    const open = last?.day === day ? last : undefined;
    if (open?.has(call)) return open;
    if (this.#entries >= MOST_ENTRIES_HELD && !this.#makeRoom(open)) return undefined;
    if (open !== undefined && !open.isFull) return open;
    if (last !== undefined && this.#written.has(last)) this.#forget(last);
    const name = this.#nextName(day);
    const page = new TokenPage({ namespace, tenant, day, currency, name, replica: this.#options.replica });
    this.#open.set(placeOf(page), page);
    return page;
  }

  /** A tenant whose page goes gets another at its next call. */
  #makeRoom(kept: TokenPage | undefined): boolean {
    for (const page of this.#written) {
      if (page === kept) continue;
      this.#forget(page);
      return true;
    }
    return false;
  }

  #forget(page: TokenPage): void {
    this.#entries -= page.size;
    this.#written.delete(page);
    if (this.#open.get(placeOf(page)) === page) this.#open.delete(placeOf(page));
  }

  #nextName(day: string): string {
    this.#pages += 1;
    return `tokens-${day}-${this.#process}-${this.#pages}`;
  }

  #today(): string {
    return new Date(this.#options.clock.now()).toISOString().slice(0, 10);
  }
}

function newProcess(): string {
  return randomBytes(8).toString('hex');
}

function placeOf({ tenant, currency }: Pick<TokenPage, 'tenant' | 'currency'>): string {
  return `${tenant}/${currency}`;
}

/** What an operator must know of the bills for tokens, read at each scrape. */
export function watchBilling(registry: Registry, meter: TokenMeter): void {
  const registers = [registry];
  const lag = new Gauge({
    name: 'berth_gateway_ledger_lag_seconds',
    help: 'Age of the oldest call to a priced model that is in no token record yet.',
    registers,
    collect() {
      lag.set(meter.lagSeconds);
    },
  });
  const unbilled = new Counter({
    name: 'berth_gateway_unbilled_calls_total',
    help: 'Calls to priced models that cost nothing, by reason (unreported, full, refused).',
    labelNames: ['reason'],
    registers,
    collect() {
      unbilled.reset();
      for (const reason of UNBILLED_REASONS) unbilled.inc({ reason }, meter.unbilled[reason]);
    },
  });
}
