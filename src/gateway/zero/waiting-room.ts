import type { Clock } from '../../lib/clock.ts';
import type { Priority } from '../../resources/api-key.ts';
import type { Model } from '../balance/model.ts';
import { WaitingPlaces } from '../limits/waiting-places.ts';

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
  readonly priority: Priority;
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

const FULL_RETRY_MS = 5000;

/** Calls that wait for models to start. */
export class WaitingRoom {
  readonly #clock: Clock;
  readonly #bounds = new WaitingPlaces();
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
    const { tenant, priority, bytes } = waiter;
    const { promise, resolve, reject } = Promise.withResolvers<Model>();
    const own = { tenant, priority, bytes, displace: () => reject(displaced()) };
    const taken = this.#bounds.take(own);
    if (taken !== undefined) throw full(taken);
    const place = { waiter, resolve, reject };
    this.#places.add(place);
    const cancel = this.#clock.setTimeout(() => reject(timedOut()), mostMs);
    onLeave(reject);
    try {
      return await promise;
    } finally {
      cancel();
      this.#places.delete(place);
      this.#bounds.give(own);
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
}

function full(what: string): StartError {
  return new StartError(
    `The model is starting, and this replica lets at most ${what} wait for models that start, and keeps room for other namespaces. Try again in a moment.`,
    FULL_RETRY_MS,
  );
}

function displaced(): StartError {
  return new StartError(
    'The model is starting, and a call of higher priority of your namespace has the place of this one. Try again in a moment.',
    FULL_RETRY_MS,
  );
}
