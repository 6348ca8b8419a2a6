import type { Clock } from '../../lib/clock.ts';

/** At most `width` pass at a time; the others wait in line. */
export interface ClaimGate {
  /** Resolves with the function that leaves again, or with undefined when the wait was too long or the client left. */
  enter(options: { timeoutMs: number; signal: AbortSignal }): Promise<(() => void) | undefined>;
}

/**
 * A crowd that wants the last places would cost the API server some writes per head, all for nothing. So only some decide
 * at a time, and whoever comes after them sees what they left.
 */
export function createClaimGate(width: number, clock: Clock): ClaimGate {
  let inside = 0;
  const line = new Set<() => void>();

  function leave(): void {
    inside -= 1;
    const [next] = line;
    next?.();
  }

  return {
    enter({ timeoutMs, signal }) {
      if (signal.aborted) return Promise.resolve(undefined);
      if (inside < width) {
        inside += 1;
        return Promise.resolve(leave);
      }
      return new Promise((resolve) => {
        const finish = (entered: boolean): void => {
          line.delete(admit);
          cancel();
          signal.removeEventListener('abort', giveUp);
          if (entered) inside += 1;
          resolve(entered ? leave : undefined);
        };
        const admit = (): void => finish(true);
        const giveUp = (): void => finish(false);
        const cancel = clock.setTimeout(giveUp, timeoutMs);
        signal.addEventListener('abort', giveUp, { once: true });
        line.add(admit);
      });
    },
  };
}
