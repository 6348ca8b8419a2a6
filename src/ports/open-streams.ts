import { PortError } from './errors.ts';

export interface User {
  /** metadata.uid of the API key. */
  keyId: string;
}

const MAX_PER_POD = 128;
const MAX_STREAMS = 4096;

/** The streams that are open now, limited for each pod and in all. */
export class OpenStreams {
  readonly #isAuthorized: (user: User) => boolean;
  readonly #streams = new Set<{ user: User; cut: AbortController }>();
  readonly #perPod = new Map<string, number>();

  constructor(isAuthorized: (user: User) => boolean) {
    this.#isAuthorized = isAuthorized;
  }

  /** Counts a stream to the pod. Its signal aborts when the user loses access. Throws {@link PortError}. */
  open(user: User, podUid: string): { signal: AbortSignal; close(): void } {
    const count = this.#perPod.get(podUid) ?? 0;
    if (count >= MAX_PER_POD) throw tooMany(`${MAX_PER_POD} connections to this instance`);
    if (this.#streams.size >= MAX_STREAMS) throw tooMany(`${MAX_STREAMS} connections to instances`);
    const stream = { user, cut: new AbortController() };
    this.#streams.add(stream);
    this.#perPod.set(podUid, count + 1);
    const close = (): void => {
      if (!this.#streams.delete(stream)) return;
      const left = (this.#perPod.get(podUid) ?? 1) - 1;
      if (left === 0) this.#perPod.delete(podUid);
      else this.#perPod.set(podUid, left);
    };
    return { signal: stream.cut.signal, close };
  }

  recheck(): void {
    for (const { user, cut } of this.#streams) if (!this.#isAuthorized(user)) cut.abort();
  }

  close(): void {
    for (const { cut } of this.#streams) cut.abort();
  }
}

function tooMany(what: string): PortError {
  return new PortError('too_many_streams', `${what} are open, and no more are allowed. Close one.`);
}
