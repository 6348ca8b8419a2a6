import type { PrincipalRef } from '../../access/principal.ts';
import type { Clock } from '../../lib/clock.ts';
import { Lru } from '../../lib/lru.ts';
import { Paces } from '../../lib/paces.ts';
import type { NewResponse, Part, ResponseStore, StoredPart } from './response-store.ts';

/** Characters of stored answers that a tenant may read in a second. */
const PER_SECOND = 16 * 2 ** 20;
/** Tenants whose line is remembered. */
const MOST_TENANTS = 4096;

/**
 * A store of which each tenant has a share: it reads one answer at a time, and so many characters a second. A short
 * question may ask for a long answer, which costs Valkey, the network and this process its whole length.
 */
export class SharedStore implements ResponseStore {
  readonly #store: ResponseStore;
  readonly #paces: Paces;
  /** Ends when whoever came last has read. */
  readonly #lines = new Lru<string, Promise<void>>(MOST_TENANTS);

  constructor(store: ResponseStore, clock: Clock) {
    this.#store = store;
    this.#paces = new Paces(clock, PER_SECOND);
  }

  async get(owner: PrincipalRef, id: string, part: Part): Promise<StoredPart | undefined> {
    const { namespace } = owner;
    const before = this.#lines.get(namespace);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#lines.set(namespace, promise);
    try {
      await before;
      await this.#paces.ready(namespace);
      const found = await this.#store.get(owner, id, part);
      this.#paces.count(namespace, found?.text.length ?? 0);
      return found;
    } finally {
      resolve();
    }
  }

  put(owner: PrincipalRef, id: string, stored: NewResponse, most: number): Promise<void> {
    return this.#store.put(owner, id, stored, most);
  }

  delete(owner: PrincipalRef, id: string): Promise<boolean> {
    return this.#store.delete(owner, id);
  }

  findAnswers(owner: PrincipalRef, items: readonly string[]): Promise<ReadonlyMap<string, string>> {
    return this.#store.findAnswers(owner, items);
  }
}
