import type { CallOptions, KubeClient } from '../kube/client/client.ts';
import { NotSentError } from '../kube/errors.ts';
import type { Clock } from '../lib/clock.ts';
import type { ResourceType } from '../kube/types.ts';

export class NotLeaderError extends NotSentError {
  override name = 'NotLeaderError';

  constructor() {
    super('This process does not hold the lease, so it writes nothing.');
  }
}

/**
 * A client that refuses every write while `mayWrite` is false. A timer notices a lost lease, but a process that was
 * suspended handles its sockets before its timers: only a check at the write itself is in time, also when a write is
 * sent again after a refusal.
 *
 * @param onCut called when a write was cut off by its signal: the API server may still carry it out. The kind is that of
 * the object, and undefined for a raw call
 */
export function guardWrites(
  client: KubeClient,
  mayWrite: () => boolean,
  onCut: (type: ResourceType | undefined) => void,
): KubeClient {
  function check(): void {
    if (!mayWrite()) throw new NotLeaderError();
  }
  async function guarded<T>(
    type: ResourceType | undefined,
    options: CallOptions | undefined,
    write: (checked: { check: () => void }) => Promise<T>,
  ) {
    check();
    try {
      return await write({ ...options, check });
    } catch (error) {
      if (options?.signal?.aborted) onCut(type);
      throw error;
    }
  }
  return {
    ...client,
    create: (type, object, options) => guarded(type, options, (checked) => client.create(type, object, checked)),
    replace: (type, object, options) => guarded(type, options, (checked) => client.replace(type, object, checked)),
    apply: (type, object, options) =>
      guarded(type, options, (checked) => client.apply(type, object, { ...options, ...checked })),
    patch: (type, ref, body, options) =>
      guarded(type, options, (checked) => client.patch(type, ref, body, { ...options, ...checked })),
    delete: (type, ref, options) =>
      guarded(type, options, (checked) => client.delete(type, ref, { ...options, ...checked })),
    raw: (method, path, body, options) =>
      method === 'GET'
        ? client.raw(method, path, body, options)
        : guarded(undefined, options, (checked) => client.raw(method, path, body, checked)),
  };
}

/** Milliseconds for which an API server works on a request, unless it is told otherwise (its --request-timeout). */
const REQUEST_MS = 60_000;

/** Writes that were cut off, and may still be carried out. */
export class CutWrites {
  readonly #clock: Pick<Clock, 'monotonic'>;
  #lastAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Takes note that a write was cut off now. */
  note(): void {
    this.#lastAt = this.#clock.monotonic();
  }

  get mayArrive(): boolean {
    return this.#clock.monotonic() < this.#lastAt + REQUEST_MS;
  }
}
