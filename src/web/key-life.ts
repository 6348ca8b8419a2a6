import { validationFailed } from '../http/interface/errors/api-error.ts';

/** Days that API keys live, as the operator has it. */
export interface KeyDays {
  /** Of a key that is made without an end; 0: as many as `max`. */
  default: number;
  /** Most of any key; 0: no limit. */
  max: number;
}

const DAY_MS = 86_400_000;
/** So far ahead the clock of a browser may be. The admission policy `keys` of the chart allows as much. */
const CLOCKS_MS = 3_600_000;

/** Days that a key lives when nobody says when it ends; 0: it has no end. */
export function usualDays({ default: usual, max }: KeyDays): number {
  return usual === 0 ? max : usual;
}

/**
 * When a key that is made `now` expires, as APIKey.spec.expiresAt has it; undefined: never. `now`: milliseconds since the
 * epoch. Throws the 422 of a time that is later than the operator allows.
 */
export function expiryOf(asked: string | null | undefined, days: KeyDays, now: number): string | undefined {
  const usual = usualDays(days);
  if (asked == null && usual === 0) return undefined;
  const at = asked == null ? now + usual * DAY_MS : Date.parse(asked);
  if (days.max > 0 && at > now + days.max * DAY_MS + CLOCKS_MS) {
    const expected = `an API key lives ${days.max} days at most here (keys.maxDays): write an earlier time, or none`;
    throw validationFailed([{ path: 'expires_at', expected }]);
  }
  return `${new Date(at).toISOString().slice(0, 19)}Z`;
}
