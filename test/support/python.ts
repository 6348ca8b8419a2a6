import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { cacheFolder } from '../../tools/lib/paths.ts';
import { run } from '../../tools/lib/shell.ts';

async function must(program: string, args: readonly string[]): Promise<void> {
  const { code, stderr } = await run(program, args);
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} failed: ${stderr.slice(-2000)}`);
}

/**
 * A virtual environment with exactly these requirements, made on the first call of a machine.
 *
 * @returns its folder, in the cache of the machine
 */
export async function pythonWith(name: string, requirements: string): Promise<string> {
  const folder = join(cacheFolder(process.env), `${name}-${hashOf(requirements)}`);
  if (existsSync(folder)) return folder;
  const packages = readFileSync(requirements, 'utf8').match(/^[\w.-]+==[\w.]+/gm) ?? [];
  process.stderr.write(`Installing ${packages.join(', ')} into ${folder}\n`);
  const part = `${folder}.${process.pid}`;
  rmSync(part, { recursive: true, force: true });
  mkdirSync(part, { recursive: true });
  await must('python3', ['-m', 'venv', part]);
  const options = ['--quiet', '--no-input', '--disable-pip-version-check'];
  await must(join(part, 'bin/python'), ['-m', 'pip', 'install', ...options, '-r', requirements]);
  // A virtual environment finds itself by its place: python works after the move, scripts with a fixed path are not used.
  try {
    renameSync(part, folder);
  } catch (error) {
    // Another process may have been faster.
    if (!existsSync(folder)) throw error;
    rmSync(part, { recursive: true });
  }
  return folder;
}

export function hashOf(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex').slice(0, 12);
}
