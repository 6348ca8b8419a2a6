import type { Clock } from '../lib/clock.ts';
import { etagOf } from '../lib/etag.ts';
import { InTurn } from '../lib/in-turn.ts';
import { Lru } from '../lib/lru.ts';
import { Paces } from '../lib/paces.ts';

/** A shorter list is written anew for each caller: it takes a millisecond. */
export const LONG_LIST = 256;
const FRESH_MS = 1000;
/** Each may have some megabytes. */
const MOST_KEPT = 16;
/** Models in lists of one tenant. To write so many takes a twentieth of a second. */
const MODELS_PER_SECOND = 16_384;

/** An answer, and its version. */
export interface Versioned {
  bytes: Buffer;
  etag: string;
}

export function versioned(bytes: Buffer): Versioned {
  return { bytes, etag: etagOf(bytes) };
}

/** What a long list of models is of. */
interface Asked {
  tenant: string;
  /** Tells the lists of one tenant apart. */
  variant: string;
  /** Until it is another, the list has the same models. */
  of: object;
  models: number;
}

/**
 * Long lists of models, as they were written within the last second. A tenant may have thousands of names, which are
 * megabytes for a call of some bytes: each list is written once a second at most, and all of one tenant in turn and at
 * its own pace.
 */
export class LongLists {
  readonly #clock: Clock;
  readonly #paces: Paces;
  readonly #kept = new Lru<string, { of: object; until: number; body: Versioned }>(MOST_KEPT);
  /** Those that are about to be written. */
  readonly #awaited = new Map<string, Promise<Versioned>>();
  readonly #turns = new InTurn();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#paces = new Paces(clock, MODELS_PER_SECOND);
  }

  async body({ tenant, variant, of, models }: Asked, write: () => Buffer): Promise<Versioned> {
    const key = JSON.stringify([tenant, variant]);
    const kept = this.#kept.get(key);
    if (kept !== undefined && kept.of === of && this.#clock.monotonic() < kept.until) return kept.body;
    const awaited = this.#awaited.get(key);
    if (awaited !== undefined) return awaited;
    const written = this.#turns
      .run(tenant, async () => {
        await this.#paces.ready(tenant);
        this.#paces.count(tenant, models);
        const body = versioned(write());
        this.#kept.set(key, { of, until: this.#clock.monotonic() + FRESH_MS, body });
        return body;
      })
      .finally(() => this.#awaited.delete(key));
    this.#awaited.set(key, written);
    return written;
  }
}
