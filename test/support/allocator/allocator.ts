import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { DeviceClass, ResourceClaim, ResourceSlice } from '../../../src/kube/devices.ts';
import { goEnvironment } from '../../../tools/lib/go/build.ts';
import { requireGo } from '../../../tools/lib/go/find.ts';
import { moduleFolder } from '../../../tools/lib/go/programs.ts';
import { cacheFolder, ROOT } from '../../../tools/lib/paths.ts';
import { isExecutable, run } from '../../../tools/lib/shell.ts';

// The allocator of the real scheduler, in a program of ours (main.go).

const SOURCE = join(ROOT, 'test/support/allocator/main.go');

export type Allocation = NonNullable<NonNullable<ResourceClaim['status']>['allocation']>;

/** A claim for one device. `capacity`: what it asks of a shared one. */
export interface Ask {
  class: string;
  capacity?: Readonly<Record<string, string>>;
}

/** A node, as main.go reads it. */
export interface Question {
  node: string;
  before: readonly ResourceSlice[];
  slices: readonly ResourceSlice[];
  classes: readonly DeviceClass[];
  held: readonly Allocation[];
  taken: readonly Ask[];
}

/** What the allocator does about it. */
export interface Answer {
  taken: readonly (Allocation | null)[];
  free: Readonly<Record<string, number>>;
}

/** The program, built of the modules that Kubernetes locks: what the scheduler's build compiled is not compiled again. */
export async function allocatorProgram(): Promise<string> {
  const cache = cacheFolder(process.env);
  const folder = moduleFolder('kubernetes');
  const hash = createHash('sha256');
  for (const file of [SOURCE, join(folder, 'go.mod'), join(folder, 'go.sum')]) hash.update(readFileSync(file));
  const made = join(cache, 'bin', `allocator-${hash.digest('hex').slice(0, 12)}`);
  const program = join(made, 'allocator');
  if (await isExecutable(program)) return program;
  await mkdir(made, { recursive: true });
  const partial = `${program}.${process.pid}`;
  const flags = ['-buildvcs=false', '-trimpath', '-ldflags', '-s -w', '-o', partial];
  const options = { cwd: folder, env: goEnvironment(cache) };
  const { code, stdout, stderr } = await run(await requireGo(), ['build', ...flags, SOURCE], options);
  if (code !== 0) throw new Error(`The allocator was not built: ${stdout}${stderr}`);
  await rename(partial, program);
  return program;
}

/** Asks the program of some nodes. */
export async function askAllocator(program: string, questions: readonly Question[]): Promise<Answer[]> {
  const input = questions.map((one) => JSON.stringify(one)).join('\n');
  const { code, stdout, stderr } = await run(program, [], { input });
  if (code !== 0) throw new Error(`The allocator failed: ${stderr}`);
  const lines = stdout.split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line) as Answer);
}
