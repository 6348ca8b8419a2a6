import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { CliFailure } from '../failure.ts';
import { withoutKey } from '../settings.ts';
import { plain } from '../text.ts';

/** The failure of kubectl with a next step, unless it has one. */
export function withNext(error: unknown, next: string): CliFailure {
  if (!(error instanceof CliFailure)) return new CliFailure(String(error), { next });
  return error.next === undefined ? new CliFailure(error.message, { exitCode: error.exitCode, next }) : error;
}

/** kubectl with one kubeconfig and context: it knows every way to sign in to a cluster. */
export class Kubectl {
  readonly #flags: readonly string[];

  /** @param flags global options of kubectl, such as --context=NAME */
  constructor(flags: readonly string[]) {
    this.#flags = flags;
  }

  /** What kubectl prints. `input` goes to it, so that secrets stay off its command line. Throws with kubectl's words. */
  async run(args: readonly string[], input = ''): Promise<string> {
    const child = spawn('kubectl', [...this.#flags, ...args], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: withoutKey(process.env),
    });
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
    try {
      const [out, err, [code]] = await Promise.all([
        text(child.stdout),
        text(child.stderr),
        once(child, 'close') as Promise<[number | null]>,
      ]);
      if (code === 0) return out;
      throw new CliFailure(`kubectl ${args[0]} failed: ${plain(err.trim().slice(0, 1000))}`);
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
      throw new CliFailure('This machine has no program kubectl.', {
        next: 'Install it, or use an API key: berth login URL',
      });
    }
  }

  /** Starts kubectl and leaves it running. Its input is closed; its output is for the caller. */
  start(args: readonly string[]): ChildProcess {
    return spawn('kubectl', [...this.#flags, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: withoutKey(process.env),
    });
  }
}
