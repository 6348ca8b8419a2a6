import type { Logger } from 'pino';
import type { KubeClient } from '../../kube/client/client.ts';
import type { Namespace } from '../../kube/types.ts';
import type { ReadStore } from '../../kube/watch/store.ts';
import type { Clock } from '../../lib/clock.ts';
import { TOKEN_RECORDS } from '../../resources/token-record.ts';
import type { TokenMeter } from './token-meter.ts';
import type { TokenPage } from './token-page.ts';

/** Milliseconds between two rounds: what a replica that dies loses, as long as one round writes everything. */
const EVERY_MS = 5000;
/** Records of one round: 20 a second. */
const MOST_WRITES = 100;
const WRITES_AT_ONCE = 4;
/** After so many the API server is taken to be away until the next round. */
const MOST_FAILURES = 4;
/** Milliseconds for one write. */
const WRITE_MS = 10_000;

export interface RecordWriterDeps {
  client: Pick<KubeClient, 'apply'>;
  meter: TokenMeter;
  namespaces: ReadStore<Namespace>;
  clock: Clock;
  log: Logger;
}

/** Writes what the meter counted to the records of tenants, in the background. */
export class RecordWriter {
  readonly #deps: RecordWriterDeps;

  constructor(deps: RecordWriterDeps) {
    this.#deps = deps;
  }

  /** Writes until the signal aborts, and then all that is left. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#round(MOST_WRITES);
      await this.#deps.clock.sleep(EVERY_MS, signal);
    }
    await this.#round(Infinity);
  }

  async #round(most: number): Promise<void> {
    const { meter, log } = this.#deps;
    const pages = meter.unwritten.slice(0, most);
    const errors: unknown[] = [];
    const work = async (): Promise<void> => {
      while (errors.length < MOST_FAILURES) {
        const page = pages.shift();
        if (page === undefined) return;
        await this.#write(page).catch((error: unknown) => {
          errors.push(error);
          this.#noteFailed(page);
        });
      }
    };
    await Promise.all(Array.from({ length: WRITES_AT_ONCE }, work));
    meter.sweep();
    if (errors.length > 0) log.warn({ err: errors[0], failed: errors.length }, 'Token records were not written');
  }

  async #write(page: TokenPage): Promise<void> {
    const { client, meter, clock } = this.#deps;
    const { calls } = page;
    const at = clock.monotonic();
    const over = new AbortController();
    const cancel = clock.setTimeout(() => over.abort(), WRITE_MS);
    try {
      await client.apply(TOKEN_RECORDS, page.record(), {
        fieldManager: 'berth-gateway',
        force: true,
        signal: over.signal,
      });
    } finally {
      cancel();
    }
    meter.noteWritten(page, calls, at);
  }

  /** With its namespace the records of a tenant go, too. */
  #noteFailed(page: TokenPage): void {
    const { meter, namespaces } = this.#deps;
    const namespace = namespaces.get(page.namespace);
    if (namespace === undefined || namespace.metadata.deletionTimestamp !== undefined) meter.giveUp(page);
    else meter.noteFailed(page);
  }
}
