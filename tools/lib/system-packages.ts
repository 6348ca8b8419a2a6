import type { Progress } from './progress.ts';
import { lastLines, run } from './shell.ts';

/**
 * Runs a package manager's install command, as `apt-get install -y NAME...`, and says so. The package lists of a fresh
 * machine are empty or old: with apt they are fetched when the first try fails. Returns why it failed, or undefined.
 */
export async function installPackages(command: readonly string[], progress: Progress): Promise<string | undefined> {
  const [program = '', ...args] = command;
  const names = args.filter((arg) => !arg.startsWith('-') && arg !== 'install');
  progress.step({ title: `Installing ${names.join(' ')}`, index: 1, total: 1, next: 'the cluster programs' });
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  let result = await run(program, args, { env });
  if (result.code !== 0 && program === 'apt-get') {
    await run(program, ['update'], { env });
    result = await run(program, args, { env });
  }
  progress.end();
  if (result.code === 0) return undefined;
  const why = lastLines(result.stderr || result.stdout, 1)[0] ?? `code ${result.code}`;
  return `\`${command.join(' ')}\` failed: ${why}`;
}
