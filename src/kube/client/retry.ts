import type { Clock } from '../../lib/clock.ts';
import { KubeError, QuotaContendedError, QuotaUncountedError, UnauthorizedError, wasNeverSent } from '../errors.ts';

export interface RetryOptions {
  clock: Clock;
  random: () => number;
  signal: AbortSignal | undefined;
  /** Sending the call twice does no harm: the client also retries it when its outcome is unknown. */
  safe: boolean;
}

const MAX_ATTEMPTS = 5;
const FIRST_WAIT_MS = 100;
const MAX_WAIT_MS = 30_000;
/** No retry starts later than this after the first attempt. */
const MAX_TOTAL_MS = 60_000;
/**
 * With 503 an API server that starts asks for five seconds, and is ready sooner: the call is tried again after one, for
 * as long as five attempts of five seconds would take.
 */
const STARTING = { waitMs: 1_000, totalMs: 25_000 } as const;

// After 429, and 5xx with Retry-After, the server has done nothing and says when to come back: any call is tried again
// (client-go's rest/with_retry.go). So it is for a quota that is about to be counted, or that others take of at once. After other 5xx, the client's time limit and a broken connection the outcome is
// unknown: only safe calls are tried again.
function isRetriable(error: unknown, safe: boolean): error is KubeError {
  if (!(error instanceof KubeError)) return false;
  if (error.status === 429 || error instanceof QuotaUncountedError || error instanceof QuotaContendedError) return true;
  if (error.status >= 500) return safe || error.retryAfterMs !== undefined;
  if (error.status !== 0 || error.reason === 'TooLarge') return false;
  return safe || wasNeverSent(error);
}

/** Runs `attempt` up to five times within a minute. Throws the last error, or the signal's reason. */
export async function withRetry<T>(attempt: (refresh: boolean) => Promise<T>, options: RetryOptions): Promise<T> {
  const { clock, signal } = options;
  const start = clock.monotonic();
  let isUnknown = false;
  for (let attempts = 1; ; attempts += 1) {
    try {
      return await withFreshToken(attempt);
    } catch (error) {
      if (error instanceof KubeError) error.isAfterUnknown = isUnknown;
      if (!isRetriable(error, options.safe)) throw error;
      // A proxy may have passed the call on before it asked to come again.
      isUnknown ||= error.status >= 500 || (error.status === 0 && !wasNeverSent(error));
      const { status, retryAfterMs } = error;
      const isStarting = status === 503 && retryAfterMs !== undefined && retryAfterMs > STARTING.waitMs;
      if (attempts >= MAX_ATTEMPTS && !isStarting) throw error;
      const asked = isStarting ? STARTING.waitMs : retryAfterMs;
      const wait = asked ?? FIRST_WAIT_MS * 2 ** (attempts - 1) * (1 + options.random());
      const limit = isStarting ? STARTING.totalMs : MAX_TOTAL_MS;
      if (wait > MAX_WAIT_MS || clock.monotonic() + wait - start > limit) throw error;
      await clock.sleep(wait, signal);
      signal?.throwIfAborted();
    }
  }
}

/** Runs `attempt`, and after a 401 once more with credentials that are read again. */
export async function withFreshToken<T>(attempt: (refresh: boolean) => Promise<T>): Promise<T> {
  try {
    return await attempt(false);
  } catch (error) {
    if (error instanceof UnauthorizedError) return attempt(true);
    throw error;
  }
}
