import { execFileSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../tools/lib/paths.ts';

/** Compiles Berth as for its image, and returns the program. */
export function compileBerth(): string {
  const folder = join(ROOT, 'dist/bench');
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [compiler, '-p', join(ROOT, 'tsconfig.build.json'), '--outDir', folder]);
  // The api role hands some of the documents out.
  cpSync(join(ROOT, 'docs'), join(folder, 'docs'), { recursive: true });
  return join(folder, 'main.js');
}
