import { FairShares, type Shares } from '../../lib/shares.ts';

/** A tenant may hold as many bytes as are left for others. */
const FACTOR = 1;
/** What one answer holds is counted in steps of so many bytes, the last one if it is full: what is little costs no time. */
const STEP = 16 * 1024;

/** Bounds the memory that the request bodies and the answers of all calls hold, and the share of it that each tenant holds. */
export class BodyShares {
  readonly #max: number;
  readonly #shares: FairShares;

  /** @param max bytes of all tenants together */
  constructor(max: number) {
    this.#max = max;
    this.#shares = new FairShares(max, FACTOR);
  }

  /** Little is held: even when parsed, which may take 30 times as much, it fits. */
  get isCalm(): boolean {
    return this.#shares.total <= this.#max / 64;
  }

  /** At most a quarter is held. */
  get hasRoom(): boolean {
    return this.#shares.total <= this.#max / 4;
  }

  /**
   * Begins to hold a body or an answer of the tenant.
   *
   * @param most bytes that the tenant may hold, in all its bodies and answers together
   */
  hold(tenant: string, most: number): BodyHold {
    return new BodyHold(this, this.#shares, { tenant, most });
  }
}

/** What one body or answer holds of the share of its tenant. */
export class BodyHold {
  readonly bodies: BodyShares;
  readonly #shares: FairShares;
  readonly #tenant: string;
  #held = 0;
  /** Bytes that the tenant may hold. */
  readonly most: number;

  constructor(bodies: BodyShares, shares: FairShares, { tenant, most }: { tenant: string; most: number }) {
    this.bodies = bodies;
    this.#shares = shares;
    this.#tenant = tenant;
    this.most = most;
  }

  get held(): number {
    return this.#held;
  }

  /** What is kept in case that it is needed leaves room for others, and for other calls of the tenant. */
  get hasRoom(): boolean {
    return this.bodies.hasRoom && this.#shares.heldBy(this.#tenant) <= this.most / 4;
  }

  take(bytes: number): ReturnType<Shares['take']> {
    const result = this.#shares.take(this.#tenant, bytes, this.most);
    if (result === 'taken') this.#held += bytes;
    return result;
  }

  /** Holds so many bytes of an answer from now on, in place of those before; as before when there is no room. */
  keep(bytes: number): ReturnType<Shares['take']> {
    const more = stepped(bytes) - this.#held;
    if (more > 0) return this.take(more);
    if (more < 0) this.give(-more);
    return 'taken';
  }

  /** The same of what is there already, whatever the bounds say. */
  keepAnyway(bytes: number): void {
    this.release();
    this.#held = stepped(bytes);
    this.#shares.add(this.#tenant, this.#held);
  }

  give(bytes: number): void {
    this.#held -= bytes;
    this.#shares.give(this.#tenant, bytes);
  }

  /** Gives everything back. Does nothing the second time. */
  release(): void {
    this.give(this.#held);
  }
}

function stepped(bytes: number): number {
  return Math.floor(bytes / STEP) * STEP;
}
