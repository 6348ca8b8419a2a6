import type { Duplex } from 'node:stream';
import type { PrincipalRef } from '../access/principal.ts';
import type { Clock } from '../lib/clock.ts';

/** Milliseconds that a connection waits for another request. Few servers close one sooner: Node's and uvicorn's after 5 s. */
const IDLE_MS = 4_000;
/** Connections of one user to one port: what a browser opens. */
const MOST_EACH = 6;
const MOST = 512;

interface Idle {
  user: PrincipalRef;
  stream: Duplex;
  /** Ends the wait. */
  leave: () => void;
}

/**
 * Connections to ports of pods that have answered a request and could answer another one of the same user. Nobody else
 * gets them: what a user leaves behind on a connection concerns that user alone.
 */
export class IdleForwards {
  readonly #clock: Pick<Clock, 'setTimeout'>;
  readonly #idle = new Map<string, Idle[]>();
  #count = 0;

  constructor(clock: Pick<Clock, 'setTimeout'>) {
    this.#clock = clock;
  }

  /** The connection that was used last; undefined when none waits. */
  take(place: string): Duplex | undefined {
    const idle = this.#idle.get(place)?.at(-1);
    idle?.leave();
    return idle?.stream;
  }

  /** Keeps a connection for the next request, or ends it where too many wait. One that says anything meanwhile is ended. */
  keep(place: string, user: PrincipalRef, stream: Duplex): void {
    const here = this.#idle.get(place) ?? [];
    if (stream.destroyed || here.length >= MOST_EACH || this.#count >= MOST) {
      stream.destroy();
      return;
    }
    const end = (): void => {
      idle.leave();
      stream.destroy();
    };
    const cancel = this.#clock.setTimeout(end, IDLE_MS);
    const leave = (): void => {
      cancel();
      for (const event of ['data', 'end', 'close'] as const) stream.off(event, end);
      this.#remove(place, idle);
    };
    const idle: Idle = { user, stream, leave };
    this.#idle.set(place, [...here, idle]);
    this.#count += 1;
    for (const event of ['data', 'end', 'close'] as const) stream.once(event, end);
    stream.resume();
  }

  /** Ends the connections of users who have lost access. */
  recheck(isAuthorized: (user: PrincipalRef) => boolean): void {
    for (const { user, stream } of [...this.#idle.values()].flat()) if (!isAuthorized(user)) stream.destroy();
  }

  close(): void {
    for (const { stream } of [...this.#idle.values()].flat()) stream.destroy();
  }

  #remove(place: string, idle: Idle): void {
    const left = (this.#idle.get(place) ?? []).filter((one) => one !== idle);
    if (left.length === (this.#idle.get(place)?.length ?? 0)) return;
    this.#count -= 1;
    if (left.length > 0) this.#idle.set(place, left);
    else this.#idle.delete(place);
  }
}
