import { join } from 'node:path';
import { build } from 'rolldown';
import { LocalFailure } from './failure.ts';
import { ROOT } from './paths.ts';

/** Bundles the page of the dashboard into one file beside its styles, where the server finds it. Takes under a second. */
export async function buildPage(): Promise<void> {
  const complaints: string[] = [];
  await build({
    cwd: ROOT,
    input: 'src/web/page/main.tsx',
    platform: 'browser',
    output: { file: join(ROOT, 'src/web/public/built/app.js'), format: 'esm', minify: true },
    // A module of Node in the page, for example, is a warning only.
    onLog: (_level, log) => void complaints.push(log.message),
    logLevel: 'warn',
  });
  if (complaints.length > 0) {
    throw new LocalFailure('The page of the dashboard is not clean.', complaints.join('\n'));
  }
}
