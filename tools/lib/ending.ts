/** The exit code of a command that Ctrl-C ended. */
export const INTERRUPTED = 130;

/** Milliseconds in which signals are one Ctrl-C: the terminal, npm and bootstrap.mjs each send theirs. */
const ONE_KEYSTROKE = 1000;

export interface Ending {
  /** Aborts at the first call of `request`. */
  signal: AbortSignal;
  /** Asks for the ordered end; asked again a second or more after the first time, it exits. */
  readonly request: () => void;
}

/** `now` counts milliseconds. */
export function createEnding({ now, exit }: { now: () => number; exit: (code: number) => void }): Ending {
  const controller = new AbortController();
  let first: number | undefined;
  return {
    signal: controller.signal,
    request: () => {
      first ??= now();
      if (now() - first >= ONE_KEYSTROKE) exit(INTERRUPTED);
      controller.abort();
    },
  };
}

/** Aborts on Ctrl-C, on termination, and when the process that started this one is gone; a later signal exits. */
export function endingSignal(): AbortSignal {
  const { signal, request } = createEnding({ now: () => performance.now(), exit: (code) => process.exit(code) });
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, request);
  const parent = process.ppid;
  setInterval(() => process.ppid === parent || signal.aborted || request(), 1000).unref();
  return signal;
}
