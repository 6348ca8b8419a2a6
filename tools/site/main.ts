import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { build } from 'vitepress';
import { runMain } from '../lib/failure.ts';
import { filesIn } from '../lib/files-in.ts';
import { ROOT, stateFolder } from '../lib/paths.ts';

const SITE = join(ROOT, 'tools/site');

/** Puts built files in place one by one: whoever reads the site while it is built again finds each of them whole. */
async function publish(built: string, site: string): Promise<void> {
  const files = await filesIn(built);
  for (const file of files) {
    await mkdir(dirname(join(site, file)), { recursive: true });
    await rename(join(built, file), join(site, file));
  }
  const kept = new Set(files);
  for (const old of await filesIn(site)) if (!kept.has(old)) await rm(join(site, old), { force: true });
}

await runMain(async () => {
  // A test and the build of the image may build the site of one checkout at the same time, while others read the sources.
  const own = join(stateFolder(), 'site', `build-${process.pid}`);
  let site = '';
  try {
    await build(SITE, {
      onAfterConfigResolve(config) {
        site = config.outDir;
        Object.assign(config, { outDir: join(own, 'built'), tempDir: join(own, 'rendered') });
      },
    });
    await publish(join(own, 'built'), site);
  } finally {
    await rm(own, { recursive: true, force: true });
  }
});
