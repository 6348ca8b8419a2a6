import type { Dialect } from '../dialects/index.ts';

/** How a caller stands in one limit per minute. */
export interface Standing {
  limit: number;
  /** 0 or more. */
  remaining: number;
  /** Milliseconds until the minute ends. */
  resetMs: number;
}

type Kind = 'requests' | 'tokens';

/** Of each kind, the limit that leaves the caller the least: its key's or its tenant's. */
export class Standings {
  readonly #tightest = new Map<Kind, Standing>();

  /** @param total what the minute has counted, the call itself included */
  note(kind: Kind, { max, total, resetMs }: { max: number; total: number; resetMs: number }): void {
    const remaining = Math.max(0, max - total);
    const known = this.#tightest.get(kind);
    if (known === undefined || remaining < known.remaining)
      this.#tightest.set(kind, { limit: max, remaining, resetMs });
  }

  /**
   * The headers by which the vendors' clients slow down: OpenAI's, or Anthropic's for a client of messages.
   *
   * @param now milliseconds since the epoch
   */
  headers(dialect: Dialect, now: number): Record<string, string> {
    const headers: Record<string, string> = {};
    for (const [kind, { limit, remaining, resetMs }] of this.#tightest) {
      if (dialect === 'messages') {
        headers[`anthropic-ratelimit-${kind}-limit`] = String(limit);
        headers[`anthropic-ratelimit-${kind}-remaining`] = String(remaining);
        headers[`anthropic-ratelimit-${kind}-reset`] = wholeSeconds(now + resetMs);
      } else {
        headers[`x-ratelimit-limit-${kind}`] = String(limit);
        headers[`x-ratelimit-remaining-${kind}`] = String(remaining);
        headers[`x-ratelimit-reset-${kind}`] = `${Math.ceil(resetMs / 100) / 10}s`;
      }
    }
    return headers;
  }
}

/** RFC 3339 without fractions, as Anthropic writes it; rounded up, because the minute has not ended before. */
function wholeSeconds(time: number): string {
  return new Date(Math.ceil(time / 1000) * 1000).toISOString().replace('.000Z', 'Z');
}
