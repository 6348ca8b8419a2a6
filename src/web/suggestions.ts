import type { KubeClient } from '../kube/client/client.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import type { Clock } from '../lib/clock.ts';
import { contentHash } from '../lib/content-hash.ts';
import { Lru } from '../lib/lru.ts';
import type { ApiKey } from '../resources/api-key.ts';
import { mayAccess, type User } from './reviews.ts';

/** Namespaces that are checked for one person: each costs the API server up to two reviews. */
const MOST_SUGGESTIONS = 20;
/** As long as the API server itself remembers what a person may do. */
const KNOWN_MS = 10_000;
const MOST_KNOWN = 1000;
export const SERVICE_ACCOUNT = /^system:serviceaccount:([^:]+):([^:]+)$/;

export interface SuggestionsDeps {
  client: KubeClient;
  stores: { apiKeys: ReadStore<ApiKey> };
  clock: Pick<Clock, 'monotonic'>;
}

/** Which namespaces the page suggests to a person, remembered for ten seconds. */
export class Suggestions {
  readonly #deps: SuggestionsDeps;
  /** By the hash of the user with all its groups. `until`: monotonic milliseconds. */
  readonly #known = new Lru<string, { until: number; names: Promise<string[]> }>(MOST_KNOWN);

  constructor(deps: SuggestionsDeps) {
    this.#deps = deps;
  }

  /** Namespaces in which the user may see instances or keys: its own or `default` first, then those that have keys. */
  of(user: User): Promise<string[]> {
    const id = contentHash(user);
    const now = this.#deps.clock.monotonic();
    const known = this.#known.get(id);
    if (known !== undefined && known.until > now) return known.names;
    const names = this.#ask(user);
    const asked = { until: now + KNOWN_MS, names };
    this.#known.set(id, asked);
    // What failed is asked again by the next call.
    names.catch(() => (asked.until = now));
    return names;
  }

  async #ask(user: User): Promise<string[]> {
    const { client, stores } = this.#deps;
    const own = SERVICE_ACCOUNT.exec(user.username)?.[1];
    const known = new Set([...stores.apiKeys.values()].map(({ metadata }) => metadata.namespace ?? ''));
    const all = new Set([own ?? 'default', ...[...known].toSorted((a, b) => a.localeCompare(b))]);
    const checked = [...all].slice(0, MOST_SUGGESTIONS);
    const allowed = await Promise.all(
      checked.map(
        async (namespace) =>
          (await mayAccess(client, user, { resource: 'gpuinstances', namespace, verb: 'list' })) ||
          (await mayAccess(client, user, { resource: 'apikeys', namespace, verb: 'list' })),
      ),
    );
    return checked.filter((_, index) => allowed[index]);
  }
}
