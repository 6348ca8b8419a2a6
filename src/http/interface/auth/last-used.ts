import type { Logger } from 'pino';
import type { Principal } from '../../../access/principal.ts';
import type { KubeClient } from '../../../kube/client/client.ts';
import { ConflictError, NotFoundError } from '../../../kube/errors.ts';
import { statusPatch } from '../../../kube/status-patch.ts';
import type { ReadStore } from '../../../kube/watch/store.ts';
import type { Clock } from '../../../lib/clock.ts';
import { API_KEYS, type ApiKey } from '../../../resources/api-key.ts';

/** Precision of the last-used time. A key costs at most one write in this time, over all its calls and all replicas. */
const PRECISION_MS = 5 * 60_000;
const FLUSH_MS = 10_000;
const WRITES_PER_FLUSH = 50;

export interface LastUsedDeps {
  client: KubeClient;
  apiKeys: ReadStore<ApiKey>;
  clock: Clock;
  log: Logger;
}

interface Use {
  at: number;
  written: boolean;
}

/** Keeps status.lastUsedTime of the keys up to date without a write per call. */
export class LastUsed {
  readonly #deps: LastUsedDeps;
  /** Keys that were used in the last PRECISION_MS, with the time of their first use. */
  readonly #used = new Map<string, Use>();

  constructor(deps: LastUsedDeps) {
    this.#deps = deps;
  }

  touch({ keyId }: Principal): void {
    if (!this.#used.has(keyId)) this.#used.set(keyId, { at: this.#deps.clock.now(), written: false });
  }

  /** Writes every ten seconds until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#deps.clock.sleep(FLUSH_MS, signal);
      await this.#flush();
    }
  }

  async #flush(): Promise<void> {
    const due = [...this.#used].filter(([, use]) => !use.written).slice(0, WRITES_PER_FLUSH);
    for (const [keyId, use] of due) {
      use.written = true;
      await this.#write(keyId, use);
    }
    for (const [keyId, { at, written }] of this.#used) if (written && !this.#isRecent(at)) this.#used.delete(keyId);
  }

  async #write(keyId: string, use: Use): Promise<void> {
    const { client, apiKeys, log } = this.#deps;
    const [key] = apiKeys.by('uid', keyId);
    const before = key?.status?.lastUsedTime;
    if (key === undefined || (before !== undefined && this.#isRecent(Date.parse(before)))) return;
    const { namespace, name } = key.metadata;
    const lastUsedTime = `${new Date(use.at).toISOString().slice(0, 19)}Z`;
    const body = statusPatch(key, { lastUsedTime });
    try {
      await client.patch(API_KEYS, { namespace, name }, body, { type: 'json', subresource: 'status' });
    } catch (error) {
      // The key as it is now comes to the store soon.
      if (error instanceof ConflictError) use.written = false;
      else if (!(error instanceof NotFoundError))
        log.warn({ err: error, key: name }, 'Failed to write a last-used time');
    }
  }

  #isRecent(time: number): boolean {
    return this.#deps.clock.now() - time < PRECISION_MS;
  }
}
