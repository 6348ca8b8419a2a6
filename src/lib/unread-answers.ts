import type { ServerResponse } from 'node:http';
import type { Clock } from './clock.ts';
import { FairBytes, type Portion } from './shares.ts';

/** Bytes of answers that wait in a replica until their clients take them. A tenant alone gets half. */
const MOST = 128 * 1024 * 1024;
/** A shorter answer fits what the kernel holds of a connection. */
const COUNTED = 16 * 1024;
/** A client has this long to take an answer, and a second more for each of so many bytes. */
const TAKEN_MS = 30_000;
const BYTES_PER_SECOND = 32 * 1024;

interface Hold {
  portion: Portion;
  clock: Pick<Clock, 'setTimeout'>;
}

const holds = new WeakMap<ServerResponse, Hold>();

/** What clients of tenants have asked for and do not take. */
export class UnreadAnswers {
  readonly #bytes = new FairBytes(MOST);
  readonly #clock: Pick<Clock, 'setTimeout'>;

  constructor(clock: Pick<Clock, 'setTimeout'>) {
    this.#clock = clock;
  }

  /** Counts the answer to a request of the tenant. Returns false when others of it wait that are as much as its share. */
  begin(response: ServerResponse, tenant: string): boolean {
    const portion = this.#bytes.of(tenant);
    holds.set(response, { portion, clock: this.#clock });
    return portion.left() > 0;
  }
}

/** Whether as much waits for the clients of the tenant as its share is. */
export function isShareUnread(response: ServerResponse): boolean {
  const hold = holds.get(response);
  return hold !== undefined && hold.portion.left() <= 0;
}

/** Counts an answer until its client has taken it. Ends the connection of one that takes too long. */
export function countUnread(response: ServerResponse, bytes: number): void {
  const hold = holds.get(response);
  if (hold === undefined || bytes < COUNTED || response.destroyed) return;
  hold.portion.change(bytes);
  const cancel = hold.clock.setTimeout(
    () => response.destroy(),
    TAKEN_MS + Math.ceil((bytes * 1000) / BYTES_PER_SECOND),
  );
  let isOver = false;
  const end = (): void => {
    if (isOver) return;
    isOver = true;
    cancel();
    hold.portion.change(-bytes);
  };
  response.once('finish', end).once('close', end);
}
