import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Plan } from './people/plan.ts';

const WORKER = fileURLToPath(new URL('worker.ts', import.meta.url));
/** MiB: most of what a world makes is garbage within a simulated second, and little of it is looked at so. */
const YOUNG = '--max-semi-space-size=64';
/** Of what a process that failed has said. */
const LAST_WORDS = 4_000;

export interface Job {
  seed: number;
  plan: Plan;
  /** Worlds that may be tried to make a failure short. */
  looks: number;
}

export interface Result {
  seed: number;
  rentals: number;
  /** Instances that were, and their starts. */
  lives: number;
  starts: number;
  /** Simulated milliseconds, and with the nights. */
  elapsed: number;
  simulated: number;
  /** What went wrong first; undefined: nothing. */
  found?: { invariant: number; what: string };
  /** The failure, for people. */
  picture?: string;
}

interface PoolOptions {
  processes: number;
  env?: NodeJS.ProcessEnv;
  execArgv?: readonly string[];
  /** A world that takes longer, in milliseconds, hangs. */
  limitMs: number;
}

/** One process that runs worlds. It is started anew after one that it did not survive. */
class Runner {
  readonly #options: PoolOptions;
  #child: ChildProcess | undefined;
  #said = '';

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  async run(job: Job): Promise<Result> {
    const child = this.#child ?? this.#start();
    const over = new AbortController();
    const { signal } = over;
    try {
      const answered = once(child, 'message', { signal }).then(([result]) => result as Result);
      const ended = once(child, 'exit', { signal }).then(() => this.#broken(job, `its process ended: ${this.#said}`));
      const late = once(AbortSignal.timeout(this.#options.limitMs), 'abort', { signal }).then(() =>
        this.#broken(job, `it takes longer than ${this.#options.limitMs / 1000} s`),
      );
      child.send(job);
      return await Promise.race([answered, ended, late].map(unlessAborted));
    } finally {
      over.abort();
    }
  }

  stop(): void {
    this.#child?.kill('SIGKILL');
    this.#child = undefined;
  }

  #start(): ChildProcess {
    const { env, execArgv = [] } = this.#options;
    const child = fork(WORKER, [], {
      execArgv: [YOUNG, ...execArgv],
      env,
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
    });
    this.#said = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      this.#said = `${this.#said}${chunk.toString()}`.slice(-LAST_WORDS);
    });
    this.#child = child;
    return child;
  }

  #broken({ seed, plan }: Job, what: string): Result {
    this.stop();
    const found = { invariant: 0, what };
    const nothing = { lives: 0, starts: 0, elapsed: 0, simulated: 0 };
    return { seed, rentals: plan.rentals * plan.days, ...nothing, found, picture: `Seed ${seed}: ${what}` };
  }
}

/** What is aborted after the race must reject nobody. */
function unlessAborted<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

/** Runs worlds in some processes at once. `hear` gets their results as they come; true from it begins no other. */
export async function runJobs(
  jobs: Iterable<Job>,
  options: PoolOptions,
  hear: (result: Result) => boolean | void,
): Promise<void> {
  const left = jobs[Symbol.iterator]();
  let isOver = false;
  const work = async (): Promise<void> => {
    const runner = new Runner(options);
    try {
      for (;;) {
        const next = isOver ? undefined : left.next();
        if (next === undefined || next.done === true) return;
        if (hear(await runner.run(next.value)) === true) isOver = true;
      }
    } finally {
      runner.stop();
    }
  };
  await Promise.all(Array.from({ length: options.processes }, work));
}
