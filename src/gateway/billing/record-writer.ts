import type { Logger } from 'pino';
import type { KubeClient } from '../../kube/client/client.ts';
import { InvalidError } from '../../kube/errors.ts';
import type { Namespace } from '../../kube/types.ts';
import type { ReadStore } from '../../kube/watch/store.ts';
import type { Clock } from '../../lib/clock.ts';
import { TOKEN_RECORDS, type TokenRecord } from '../../resources/token-record.ts';
import type { TokenMeter } from './token-meter.ts';
import type { TokenPage } from './token-page.ts';

/** Milliseconds between two rounds: what a replica that dies loses, as long as one round writes everything. */
const EVERY_MS = 5000;
/** Records of one round: 20 a second. */
const MOST_WRITES = 100;
/** Milliseconds between two looks at the tenants of which a call waits to be counted. */
const HURRY_MS = 500;
/** Records of one such look: 20 a second. */
const MOST_HURRIED = 10;
const WRITES_AT_ONCE = 4;
/** After so many the API server is taken to be away until the next round. */
const MOST_FAILURES = 4;
/** Milliseconds at the end in which rounds of what is left begin: no other process has these counts. */
const LAST_MS = 5_000;
/** Milliseconds for one write, or for the look at a record. */
const ASK_MS = 10_000;

export interface RecordWriterDeps {
  client: Pick<KubeClient, 'apply' | 'list'>;
  meter: TokenMeter;
  namespaces: ReadStore<Namespace>;
  clock: Clock;
  log: Logger;
}

/** Writes what the meter counted to the records of tenants, in the background. */
export class RecordWriter {
  readonly #deps: RecordWriterDeps;
  /** Tenants of which a call waits until those before it are counted. */
  readonly #hurried = new Set<string>();

  constructor(deps: RecordWriterDeps) {
    this.#deps = deps;
  }

  /** Writes until the signal aborts, and then all that is left, again where a write fails. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, meter } = this.#deps;
    let due = clock.monotonic();
    while (!signal.aborted) {
      const isDue = clock.monotonic() >= due;
      const pages = isDue ? meter.unwritten : this.#hurriedPages();
      if (isDue) due = clock.monotonic() + EVERY_MS;
      this.#hurried.clear();
      await this.#round(pages.slice(0, isDue ? MOST_WRITES : MOST_HURRIED));
      await clock.sleep(HURRY_MS, signal);
    }
    const end = clock.monotonic() + LAST_MS;
    await this.#round(meter.unwritten);
    while (meter.unwritten.length > 0 && clock.monotonic() < end) {
      await clock.sleep(HURRY_MS);
      await this.#round(meter.unwritten);
    }
  }

  /** Writes what is counted of a tenant before its turn comes. */
  hurry(namespace: string): void {
    this.#hurried.add(namespace);
  }

  #hurriedPages(): TokenPage[] {
    if (this.#hurried.size === 0) return [];
    return this.#deps.meter.unwritten.filter(({ namespace }) => this.#hurried.has(namespace));
  }

  async #round(pages: TokenPage[]): Promise<void> {
    const { meter, log } = this.#deps;
    const errors: unknown[] = [];
    const work = async (): Promise<void> => {
      while (errors.length < MOST_FAILURES) {
        const page = pages.shift();
        if (page === undefined) return;
        await this.#writeOrMove(page).catch((error: unknown) => errors.push(error));
      }
    };
    await Promise.all(Array.from({ length: WRITES_AT_ONCE }, work));
    meter.sweep();
    if (errors.length > 0) log.warn({ err: errors[0], failed: errors.length }, 'Token records were not written');
  }

  async #writeOrMove(page: TokenPage): Promise<void> {
    if (this.#isOfAnother(page)) return this.#deps.meter.giveUp(page);
    try {
      await this.#write(page);
    } catch (error) {
      const stored = error instanceof InvalidError ? await this.#stored(page) : undefined;
      if (stored === undefined) {
        this.#noteFailed(page);
        throw error;
      }
      const { meter, log } = this.#deps;
      const { namespace, name } = page;
      log.error({ namespace, name }, 'Another account wrote to a token record, and a new one gets what it lacks');
      const rest = meter.moveOn(page, stored);
      if (rest !== undefined) await this.#writeOrMove(rest);
    }
  }

  /** Whether another tenant has the namespace by now. It must not be billed, and must not see what that tenant called. */
  #isOfAnother({ namespace, tenant }: TokenPage): boolean {
    const { uid = tenant } = this.#deps.namespaces.get(namespace)?.metadata ?? {};
    return tenant !== namespace && tenant !== uid;
  }

  /** The record as it is, where there is one: it refused what was counted, so somebody else made more of it. */
  async #stored({ namespace, name }: TokenPage): Promise<TokenRecord | undefined> {
    try {
      const { items } = await this.#soon((signal) =>
        this.#deps.client.list(TOKEN_RECORDS, { namespace, fieldSelector: `metadata.name=${name}`, signal }),
      );
      return items[0];
    } catch {
      return undefined;
    }
  }

  async #write(page: TokenPage): Promise<void> {
    const { client, meter, clock } = this.#deps;
    const { calls } = page;
    const at = clock.monotonic();
    const owed = page.takeOwed();
    try {
      const { metadata } = await this.#soon((signal) =>
        client.apply(TOKEN_RECORDS, page.record(), { fieldManager: 'berth-gateway', force: true, signal }),
      );
      for (const [bills, cost] of owed) bills.noteRecorded(cost, metadata.resourceVersion ?? '');
    } catch (error) {
      page.giveBack(owed);
      throw error;
    }
    meter.noteWritten(page, calls, at);
  }

  async #soon<T>(ask: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const over = new AbortController();
    const cancel = this.#deps.clock.setTimeout(() => over.abort(), ASK_MS);
    try {
      return await ask(over.signal);
    } finally {
      cancel();
    }
  }

  /** With its namespace the records of a tenant go, too. */
  #noteFailed(page: TokenPage): void {
    const { meter, namespaces } = this.#deps;
    const namespace = namespaces.get(page.namespace);
    if (namespace === undefined || namespace.metadata.deletionTimestamp !== undefined) meter.giveUp(page);
    else meter.noteFailed(page);
  }
}
