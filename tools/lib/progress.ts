/** One step of a longer work, as shown while it runs. */
export interface Step {
  title: string;
  index: number;
  total: number;
  /** What comes after it. */
  next?: string | undefined;
  /** Seconds it usually takes on two cores, when that is more than a few. */
  expect?: number | undefined;
}

export interface Progress {
  /** Shows the step until the next one or `end`. */
  step(step: Step): void;
  /** A line of its own, kept on the screen. */
  line(text: string): void;
  end(): void;
}

export interface ProgressOutput {
  write(text: string): void;
  isTty: boolean;
  columns: number;
}

/** At most one line in this many milliseconds while a step runs and no one can see a live line. */
const HEARTBEAT = 10_000;
const REFRESH = 250;

/** Progress on a terminal as one live line, elsewhere as a line per step and a heartbeat on the long ones. */
export function createProgress(output: ProgressOutput, now: () => number = Date.now): Progress {
  const start = now();
  let current: { step: Step; since: number } | undefined;
  let timer: NodeJS.Timeout | undefined;

  function show(): void {
    if (current === undefined) return;
    const line = describe(current.step, now() - current.since, now() - start);
    if (output.isTty) output.write(`\r\u001B[K${line.slice(0, Math.max(20, output.columns - 1))}`);
    else output.write(`${line}\n`);
  }

  function close(): void {
    clearInterval(timer);
    if (current !== undefined) {
      const took = now() - current.since;
      if (output.isTty) output.write('\r\u001B[K');
      if (output.isTty || took >= 2000) {
        output.write(
          `[${current.step.index}/${current.step.total}] ${current.step.title}: done in ${duration(took)}\n`,
        );
      }
    }
    current = undefined;
  }

  return {
    step(step) {
      close();
      current = { step, since: now() };
      show();
      timer = setInterval(show, output.isTty ? REFRESH : HEARTBEAT);
      timer.unref();
    },
    line(text) {
      if (output.isTty && current !== undefined) output.write('\r\u001B[K');
      output.write(`${text}\n`);
      if (output.isTty) show();
    },
    end: close,
  };
}

/** `[2/11] Building kubelet, 12 s of about 31 s (1 min 40 s in all); next: kube-proxy` */
export function describe(step: Step, inStep: number, inAll: number): string {
  const expected = step.expect === undefined ? '' : ` of about ${duration(step.expect * 1000)}`;
  const elapsed = `${duration(inStep)}${expected} (${duration(inAll)} in all)`;
  const next = step.next === undefined ? '' : `; next: ${step.next}`;
  return `[${step.index}/${step.total}] ${step.title}, ${elapsed}${next}`;
}

/** Milliseconds as people say them: `4 s`, `5 min 32 s`. */
export function duration(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
