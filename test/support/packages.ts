import type { Progress } from '../../tools/lib/progress.ts';
import { findProgram } from '../../tools/lib/shell.ts';
import { installPackages } from '../../tools/lib/system-packages.ts';

/** Programs of other people that tests run, by the Debian package that has them. */
const PROGRAMS = {
  mmdebstrap: 'mmdebstrap',
  rsync: 'rsync',
  'openssh-client': 'ssh',
  chromium: 'chromium',
} as const;

type Package = keyof typeof PROGRAMS;

/** What a test may need that a machine may lack. */
export type Need = Package | 'real node';

declare module 'vitest' {
  interface ProvidedContext {
    absent: readonly Need[];
  }
}

async function absentPackages(): Promise<Package[]> {
  const absent: Package[] = [];
  for (const name of Object.keys(PROGRAMS) as Package[]) {
    if ((await programOf(name)) === undefined) absent.push(name);
  }
  return absent;
}

/** The full path of a package's program, or undefined. */
export function programOf(name: Package): Promise<string | undefined> {
  return findProgram(PROGRAMS[name]);
}

/**
 * Installs what the tests need and this machine lacks where that is allowed, as in CI; else says how to get it, and the
 * tests that need it are skipped. Throws when it may install and cannot: a test that is skipped unseen tests nothing.
 */
export async function meetNeeds(options: { install: boolean; progress: Progress }): Promise<readonly Need[]> {
  const absent = await absentPackages();
  if (absent.length === 0) return absent;
  const command = ['apt-get', 'install', '-y', '--no-install-recommends', ...absent];
  if (!options.install) {
    options.progress.line(`Tests that need ${absent.join(', ')} are skipped. To run them: ${command.join(' ')}`);
    return absent;
  }
  const failed = await installPackages(command, options.progress);
  if (failed !== undefined) throw new Error(failed);
  return [];
}
