import { join } from 'node:path';
import { LocalFailure, runMain } from '../lib/failure.ts';
import { cacheFolder, ROOT } from '../lib/paths.ts';
import { terminalProgress } from '../lib/progress.ts';
import { lastLines, run } from '../lib/shell.ts';
import { chartTools, ensureGoTools } from './go-tools.ts';
import { ARCHITECTURES } from './names.ts';
import { readSigningKey } from './sign/keys.ts';
import { makeRelease } from './sign/make.ts';

async function must(command: string, args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(command, args, { cwd: ROOT });
  if (code === 0) return stdout;
  throw new LocalFailure(`${command} ${args[0] ?? ''} failed.`, 'Read the lines below.', lastLines(stderr, 20));
}

/** The commit of this checkout. Throws LocalFailure when files differ from it: the release would name a wrong source. */
async function commitOf(): Promise<string> {
  const changes = await must('git', ['status', '--porcelain']);
  if (changes !== '')
    throw new LocalFailure('The checkout differs from its commit.', 'Commit or remove these:', lastLines(changes, 10));
  return (await must('git', ['rev-parse', 'HEAD'])).trim();
}

/** Builds image and chart, and signs them, into dist/release. */
async function main(): Promise<void> {
  const key = await readSigningKey(process.env);
  const commit = await commitOf();
  const { signal } = new AbortController();
  const cache = cacheFolder(process.env);
  const goTools = { cache, label: 'chart', programs: chartTools(), needed: ['helm'] };
  const tools = await ensureGoTools({ ...goTools, progress: terminalProgress(), signal });
  await must(process.execPath, [join(ROOT, 'tools/release/image/build.ts'), ...ARCHITECTURES]);
  const dist = join(ROOT, 'dist');
  const out = join(dist, 'release');
  const { image, chart, archive } = await makeRelease({ dist, out, commit, helm: join(tools, 'helm'), key });
  console.log(`${image.name}@${image.digest}\n${chart.name}@${chart.digest}\n${archive}`);
}

await runMain(main);
