import { createInterface } from 'node:readline/promises';
import { lookForGo } from '../go/find.ts';
import type { Progress } from '../progress.ts';
import { findProgram, lastLines, run } from '../shell.ts';
import { requirementOf, type RequirementName } from './requirements.ts';

/** What scripts ask of this machine. Tests put a stand-in there. */
export interface Host {
  readonly platform: NodeJS.Platform;
  readonly isRoot: boolean;
  has(name: RequirementName): Promise<boolean>;
  /** Whether a program is here; for `go`, one that is new enough. */
  hasProgram(name: string): Promise<boolean>;
  packageManager(): Promise<PackageManager | undefined>;
  /** Asks the person at the terminal a question with the answers yes and no. */
  ask(question: string): Promise<boolean>;
  /** Runs an install command. Returns why it failed, or undefined. */
  install(command: readonly string[]): Promise<string | undefined>;
}

export type PackageManager = 'apt-get' | 'dnf';

/** The command that installs what brings these requirements. */
export function installCommand(manager: PackageManager, names: readonly RequirementName[]): string[] {
  const packages = names.map((name) => requirementOf(name)[manager === 'apt-get' ? 'apt' : 'dnf']);
  const options = manager === 'apt-get' ? ['-y', '--no-install-recommends'] : ['-y'];
  return [manager, 'install', ...options, ...packages];
}

/** The machine that this process runs on. An installation shows up in `progress`. */
export class ThisHost implements Host {
  readonly platform = process.platform;
  readonly isRoot = process.getuid?.() === 0;
  readonly #progress: Progress;

  constructor(progress: Progress) {
    this.#progress = progress;
  }

  has(name: RequirementName): Promise<boolean> {
    return requirementOf(name).isPresent();
  }

  async hasProgram(name: string): Promise<boolean> {
    return name === 'go' ? (await lookForGo()).usable : (await findProgram(name, ['/usr/bin', '/bin'])) !== undefined;
  }

  async packageManager(): Promise<PackageManager | undefined> {
    for (const manager of ['apt-get', 'dnf'] as const) if (await this.hasProgram(manager)) return manager;
    return undefined;
  }

  async ask(question: string): Promise<boolean> {
    const terminal = createInterface({ input: process.stdin, output: process.stderr });
    try {
      return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim());
    } finally {
      terminal.close();
    }
  }

  async install(command: readonly string[]): Promise<string | undefined> {
    const [program = '', ...args] = command;
    const packages = args.filter((arg) => !arg.startsWith('-') && arg !== 'install');
    this.#progress.step({ title: `Installing ${packages.join(' ')}`, index: 1, total: 1 });
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    let result = await run(program, args, { env });
    // The package lists of a fresh machine are empty or old.
    if (result.code !== 0 && program === 'apt-get') {
      await run(program, ['update'], { env });
      result = await run(program, args, { env });
    }
    this.#progress.end();
    if (result.code === 0) return undefined;
    const why = lastLines(result.stderr || result.stdout, 1)[0] ?? `code ${result.code}`;
    return `\`${command.join(' ')}\` failed: ${why}`;
  }
}
