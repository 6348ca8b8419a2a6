/** The exit code of a command that Ctrl-C ended. */
export const INTERRUPTED = 130;

/** Milliseconds in which all signals count as one Ctrl-C: the terminal, npm and bootstrap.mjs each send one. */
const ONE_KEYSTROKE = 1000;

/** The end of a process: in order at the first signal, at once at a later one. */
export class Ending {
  readonly #controller = new AbortController();
  readonly #monotonic: () => number;
  readonly #exit: (code: number) => void;
  #first: number | undefined;

  /** `monotonic` counts milliseconds. */
  constructor(monotonic: () => number, exit: (code: number) => void) {
    this.#monotonic = monotonic;
    this.#exit = exit;
  }

  /** Aborts at the first call of `request`. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Asks for the ordered end. A second or more after the first call, it exits. */
  request(): void {
    this.#first ??= this.#monotonic();
    if (this.#monotonic() - this.#first >= ONE_KEYSTROKE) this.#exit(INTERRUPTED);
    this.#controller.abort();
  }
}

/** Aborts on Ctrl-C, on termination, and when the parent of this process has ended. A later signal exits. */
export function endingSignal(): AbortSignal {
  const ending = new Ending(
    () => performance.now(),
    (code) => process.exit(code),
  );
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => ending.request());
  const parent = process.ppid;
  setInterval(() => process.ppid === parent || ending.signal.aborted || ending.request(), 1000).unref();
  return ending.signal;
}
