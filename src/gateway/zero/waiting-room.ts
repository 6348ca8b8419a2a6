import type { Clock } from '../../lib/clock.ts';
import { FairShares } from '../../lib/shares.ts';
import type { Model } from '../balance/model.ts';

/** No server of the model is ready, and this call waits for none any more. The message is for the caller. */
export class StartError extends Error {
  override readonly name = 'StartError';
  /** Milliseconds after which another call may do better. */
  readonly retryAfterMs: number;

  constructor(message: string, retryAfterMs: number) {
    super(message);
    this.retryAfterMs = retryAfterMs;
  }
}

/** A call that waits for the first server of its model. */
export interface Waiter {
  readonly tenant: string;
  /** Name of the model, as the call has it. */
  readonly name: string;
  /** Every tenant may call the model. */
  readonly isShared: boolean;
  /** UID of the Service whose workload was asked to start. */
  readonly uid: string;
  /** Bytes of its body, and of what it continues. */
  readonly bytes: number;
}

export interface WaitOptions {
  /** Milliseconds. */
  mostMs: number;
  /** What to tell the caller when that time is over. */
  timedOut: () => Error;
  /** Hands the function that ends the wait at once. The place is free then. */
  onLeave: (leave: (error: Error) => void) => void;
}

interface Place {
  waiter: Waiter;
  resolve: (model: Model) => void;
  reject: (error: Error) => void;
}

/** A start takes minutes, so a whole team of agents may come meanwhile. Alone a tenant gets a quarter. */
const CALLS_OF_TENANT = 256;
const CALLS = 1024;
const CALLS_FACTOR = 1 / 3;
const MIB = 2 ** 20;
/** A quarter of what all request bodies may hold: models that are ready have the rest. Alone a tenant gets half. */
const BYTES = 128 * MIB;
const BYTES_OF_TENANT = 64 * MIB;
const BYTES_FACTOR = 1;
const FULL_RETRY_MS = 5000;

/** Calls that wait for models to start: so many of one tenant and of all, and so many bytes. A newcomer finds room. */
export class WaitingRoom {
  readonly #clock: Clock;
  readonly #calls = new FairShares(CALLS, CALLS_FACTOR);
  readonly #bytes = new FairShares(BYTES, BYTES_FACTOR);
  readonly #places = new Set<Place>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The servers that calls wait for. */
  get uids(): ReadonlySet<string> {
    return new Set([...this.#places].map(({ waiter }) => waiter.uid));
  }

  /** The model of each call that waits. */
  get models(): Pick<Waiter, 'name' | 'isShared'>[] {
    return [...this.#places].map(({ waiter }) => waiter);
  }

  /** Waits until `admit` or `dismiss` ends it, its time is over, or it leaves. Rejects with StartError when full. */
  async wait(waiter: Waiter, { mostMs, timedOut, onLeave }: WaitOptions): Promise<Model> {
    this.#take(waiter);
    const { promise, resolve, reject } = Promise.withResolvers<Model>();
    const place = { waiter, resolve, reject };
    this.#places.add(place);
    const cancel = this.#clock.setTimeout(() => reject(timedOut()), mostMs);
    onLeave(reject);
    try {
      return await promise;
    } finally {
      cancel();
      this.#places.delete(place);
      this.#calls.give(waiter.tenant, 1);
      this.#bytes.give(waiter.tenant, waiter.bytes);
    }
  }

  /** Ends the wait of each call for which there is a model. */
  admit(ready: (waiter: Waiter) => Model | undefined): void {
    for (const { waiter, resolve } of this.#places) {
      const model = ready(waiter);
      if (model !== undefined) resolve(model);
    }
  }

  /** Ends the wait of each call for which there is an error. */
  dismiss(reason: (waiter: Waiter) => Error | undefined): void {
    for (const { waiter, reject } of this.#places) {
      const error = reason(waiter);
      if (error !== undefined) reject(error);
    }
  }

  #take({ tenant, bytes }: Waiter): void {
    const calls = this.#calls.take(tenant, 1, CALLS_OF_TENANT);
    if (calls !== 'taken')
      throw full(calls === 'owner-full' ? `${CALLS_OF_TENANT} calls of your namespace` : `${CALLS} calls`);
    const held = this.#bytes.take(tenant, bytes, BYTES_OF_TENANT);
    if (held === 'taken') return;
    this.#calls.give(tenant, 1);
    throw full(
      held === 'owner-full' ? `${BYTES_OF_TENANT / MIB} MiB of your namespace` : `${BYTES / MIB} MiB of calls`,
    );
  }
}

function full(what: string): StartError {
  return new StartError(
    `The model is starting, and this replica lets at most ${what} wait for models that start, and keeps room for other namespaces. Try again in a moment.`,
    FULL_RETRY_MS,
  );
}
