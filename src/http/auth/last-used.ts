import type { Logger } from 'pino';
import type { KubeClient } from '../../kube/client/client.ts';
import type { Clock } from '../../lib/clock.ts';
import { NotFoundError } from '../../kube/errors.ts';
import type { ReadStore } from '../../kube/watch/store.ts';
import { API_KEYS, type ApiKey } from '../../resources/api-key.ts';
import type { Principal } from '../../access/principal.ts';

/** How exact the last-used time is: a key costs at most one write in this time, however many calls and replicas. */
const EXACTNESS_MS = 5 * 60_000;
const FLUSH_MS = 10_000;
const WRITES_PER_FLUSH = 50;

export interface LastUsed {
  touch(principal: Principal): void;
  /** Writes from time to time until the signal aborts. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
}

export interface LastUsedDeps {
  client: KubeClient;
  apiKeys: ReadStore<ApiKey>;
  clock: Clock;
  log: Logger;
}

/** Keeps status.lastUsedTime of the keys, without a write per call. */
export function createLastUsed(deps: LastUsedDeps): LastUsed {
  const { client, apiKeys, clock, log } = deps;
  /** Keys seen in the last EXACTNESS_MS, with the time of the first use: one entry per key that exists. */
  const seen = new Map<string, { at: number; written: boolean }>();

  function isRecent(principal: Pick<Principal, 'keyId'>): boolean {
    const time = apiKeys.by('uid', principal.keyId)[0]?.status?.lastUsedTime;
    return time !== undefined && clock.now() - Date.parse(time) < EXACTNESS_MS;
  }

  async function write(keyId: string, at: number): Promise<void> {
    const [key] = apiKeys.by('uid', keyId);
    if (key === undefined || isRecent({ keyId })) return;
    const { namespace, name, uid } = key.metadata;
    const lastUsedTime = `${new Date(at).toISOString().slice(0, 19)}Z`;
    const body = { metadata: { uid }, status: { lastUsedTime } };
    try {
      await client.patch(API_KEYS, { namespace, name }, body, { type: 'merge', subresource: 'status' });
    } catch (error) {
      if (!(error instanceof NotFoundError)) log.warn({ err: error, key: name }, 'A last-used time was not written');
    }
  }

  async function flush(): Promise<void> {
    const due = [...seen].filter(([, mark]) => !mark.written).slice(0, WRITES_PER_FLUSH);
    for (const [keyId, mark] of due) {
      mark.written = true;
      await write(keyId, mark.at);
    }
    for (const [keyId, mark] of seen) if (clock.now() - mark.at >= EXACTNESS_MS && mark.written) seen.delete(keyId);
  }

  return {
    touch(principal) {
      if (!seen.has(principal.keyId)) seen.set(principal.keyId, { at: clock.now(), written: false });
    },
    async run(signal) {
      while (!signal.aborted) {
        await clock.sleep(FLUSH_MS, signal);
        await flush();
      }
    },
  };
}
