import { setTimeout as delay } from 'node:timers/promises';

export type Way = 'HTTP' | 'SSH' | 'model';

/** One call of the load. Times are milliseconds of performance.now(). */
export interface Call {
  way: Way;
  start: number;
  end: number;
  /** Why the call failed; undefined when it succeeded. */
  failure: string | undefined;
}

/** One fault: its victim, when and how. */
export interface Kill {
  at: number;
  /** When the API server or the kubelet answered again, or the node took pods again; undefined for what has no such moment. */
  readyAt?: number;
  /** `api pod`, `kubelet`, `real node` and so on. */
  target: string;
  how: string;
}

/** An answer that must never come, whatever is down: a success of what did not happen, or a refusal of a valid request. */
export class WrongAnswer extends Error {
  override readonly name = 'WrongAnswer';
}

/** What happened in a run. */
export class Log {
  /** When the load began. */
  start = performance.now();
  readonly calls: Call[] = [];
  readonly kills: Kill[] = [];
  readonly wrong: string[] = [];

  /** Forgets the calls before the load. */
  begin(): void {
    this.calls.length = 0;
    this.start = performance.now();
  }

  /** Notes a fault that begins now, and says so. */
  fault(target: string, how: string): Kill {
    const kill = { at: performance.now(), target, how };
    this.kills.push(kill);
    process.stderr.write(`${((kill.at - this.start) / 1000).toFixed(1).padStart(6)} s  ${target}: ${how}\n`);
    return kill;
  }

  /** Makes one call and records its outcome. Returns undefined when it failed. */
  async call<T>(way: Way, work: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    const start = performance.now();
    const note = (failure?: string): void => void this.calls.push({ way, start, end: performance.now(), failure });
    try {
      const value = await work(AbortSignal.timeout(CALL_TIMEOUT));
      note();
      return value;
    } catch (error) {
      const { message, cause } = error as Error;
      if (error instanceof WrongAnswer) this.wrong.push(message);
      note(cause instanceof Error ? `${message}: ${cause.message}` : message);
      return undefined;
    }
  }

  /** Repeats a call until it succeeds. Throws when `signal` aborts. */
  async insist<T>(way: Way, signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    for (;;) {
      const value = await this.call(way, work);
      if (value !== undefined) return value;
      await delay(PAUSE, undefined, { signal });
    }
  }
}

/** Milliseconds after which a call counts as failed. */
const CALL_TIMEOUT = 20_000;
/** Milliseconds between two calls of one worker. */
export const PAUSE = 250;
