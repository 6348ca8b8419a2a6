/** One step of a longer task, as it is shown while it runs. */
export interface Step {
  title: string;
  index: number;
  total: number;
  /** The step after it. */
  next?: string | undefined;
  /** Seconds that it usually takes on two cores, where that is more than a few. */
  expect?: number | undefined;
  /** How far it is, as the end of the title, now. */
  detail?: () => string;
}

export interface Progress {
  /** Shows the step until the next one or `end`. */
  step(step: Step): void;
  /** Prints a line that stays on the screen. */
  line(text: string): void;
  end(): void;
}

export interface ProgressOutput {
  write(text: string): void;
  isTty: boolean;
  columns: number;
}

/** Milliseconds between two lines about one step where nobody sees a live line. */
const HEARTBEAT = 10_000;
/** Milliseconds between two states of the live line. */
const REFRESH = 250;
/** Milliseconds of a step that is worth a line at its end where nobody sees a live line. */
const LONG = 2000;

/** Progress on a terminal as one live line. Elsewhere a line for each step, and one every ten seconds of a long one. */
export class OutputProgress implements Progress {
  readonly #output: ProgressOutput;
  readonly #wallClock: () => number;
  readonly #start: number;
  #current: { step: Step; since: number } | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** `wallClock` counts milliseconds. */
  constructor(output: ProgressOutput, wallClock: () => number = Date.now) {
    this.#output = output;
    this.#wallClock = wallClock;
    this.#start = wallClock();
  }

  step(step: Step): void {
    this.end();
    this.#current = { step, since: this.#wallClock() };
    this.#show();
    this.#timer = setInterval(() => this.#show(), this.#output.isTty ? REFRESH : HEARTBEAT);
    this.#timer.unref();
  }

  line(text: string): void {
    const { isTty } = this.#output;
    if (isTty && this.#current !== undefined) this.#output.write('\r\u001B[K');
    this.#output.write(`${text}\n`);
    if (isTty) this.#show();
  }

  end(): void {
    clearInterval(this.#timer);
    if (this.#current === undefined) return;
    const { step, since } = this.#current;
    this.#current = undefined;
    const { isTty } = this.#output;
    const took = this.#wallClock() - since;
    if (isTty) this.#output.write('\r\u001B[K');
    if (isTty || took >= LONG) {
      this.#output.write(
        `[${step.index}/${step.total}] ${step.title}${step.detail?.() ?? ''}: done in ${duration(took)}\n`,
      );
    }
  }

  #show(): void {
    if (this.#current === undefined) return;
    const { step, since } = this.#current;
    const now = this.#wallClock();
    const line = describe(step, now - since, now - this.#start);
    const { isTty, columns } = this.#output;
    this.#output.write(isTty ? `\r\u001B[K${line.slice(0, Math.max(20, columns - 1))}` : `${line}\n`);
  }
}

/** Progress on standard error. */
export function terminalProgress(): Progress {
  const { stderr } = process;
  return new OutputProgress({ write: (text) => stderr.write(text), isTty: stderr.isTTY, columns: stderr.columns });
}

/** The same in plain lines, beside the output of a test runner. */
export function plainProgress(): Progress {
  return new OutputProgress({ write: (text) => process.stderr.write(text), isTty: false, columns: 80 });
}

/** `[2/11] Building kubelet, 12 s of about 31 s (1 min 40 s in all); next: kube-proxy` */
export function describe(step: Step, inStep: number, inAll: number): string {
  const expected = step.expect === undefined ? '' : ` of about ${duration(step.expect * 1000)}`;
  const elapsed = `${duration(inStep)}${expected} (${duration(inAll)} in all)`;
  const next = step.next === undefined ? '' : `; next: ${step.next}`;
  return `[${step.index}/${step.total}] ${step.title}${step.detail?.() ?? ''}, ${elapsed}${next}`;
}

/** Milliseconds as people say them: `4 s`, `5 min 32 s`. */
export function duration(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
