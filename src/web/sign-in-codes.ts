import { hash, randomBytes } from 'node:crypto';
import type { Request } from 'express';
import type { Clock } from '../lib/clock.ts';

export const CODE_MS = 60_000;
const CODE_BYTES = 32;
/** That wait to be used. More take the place of the oldest. */
const MOST_CODES = 20;

interface Waiting {
  token: string;
  /** Monotonic milliseconds. */
  until: number;
}

/**
 * Codes that sign in once, within a minute, in place of the token that each stands for. They are in the memory of one
 * process, by their hashes: where the dashboard has replicas, another one would not know them.
 */
export class SignInCodes {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** By the SHA-256 of the code: how long a look-up takes says nothing about a code. */
  readonly #waiting = new Map<string, Waiting>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  add(token: string): string {
    this.#forgetOld();
    const [oldest] = this.#waiting.keys();
    if (oldest !== undefined && this.#waiting.size >= MOST_CODES) this.#waiting.delete(oldest);
    const code = randomBytes(CODE_BYTES).toString('base64url');
    this.#waiting.set(hash('sha256', code), { token, until: this.#clock.monotonic() + CODE_MS });
    return code;
  }

  /** The token of a code, which is used up by this. */
  take(code: string): string | undefined {
    this.#forgetOld();
    const id = hash('sha256', code);
    const found = this.#waiting.get(id);
    this.#waiting.delete(id);
    return found?.token;
  }

  #forgetOld(): void {
    const now = this.#clock.monotonic();
    for (const [id, { until }] of this.#waiting) if (until <= now) this.#waiting.delete(id);
  }
}

const LOOPBACK = /^(?:127(?:\.\d{1,3}){3}|::1|::ffff:127(?:\.\d{1,3}){3})$/;
/** A name that a page on the internet may have by DNS is none of these. */
const OWN_HOST = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/;

/** Whether a program or browser of this machine asks, by a name of this machine, and through no proxy. */
export function isFromThisMachine({ socket, headers }: Pick<Request, 'socket' | 'headers'>): boolean {
  const isProxied = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'via'].some(
    (name) => headers[name] !== undefined,
  );
  return !isProxied && LOOPBACK.test(socket.remoteAddress ?? '') && OWN_HOST.test(headers.host ?? '');
}
