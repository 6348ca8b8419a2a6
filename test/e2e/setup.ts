import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { cacheFolder, ROOT, stateFolder } from '../../src/local/paths.ts';
import { createProgress } from '../../src/local/progress.ts';
import { run } from '../../src/local/shell.ts';
import { chartTools, ensureGoTools } from '../../src/release/go-tools.ts';
import { builtDriver } from './support/built-driver.ts';
import type { Driver } from './support/driver.ts';
import { makeTestImages } from './support/images.ts';
import { kindDriver } from './support/kind-driver.ts';

declare module 'vitest' {
  interface ProvidedContext {
    e2e: { kubeconfig: string; auditLog: string; helm: string };
  }
}

function driver(): Driver {
  return process.env['BERTH_E2E_DRIVER'] === 'kind' ? kindDriver(run) : builtDriver;
}

async function buildImage(): Promise<string> {
  const { code, stderr } = await run(process.execPath, [join(ROOT, 'src/release/image/build.ts')], { cwd: ROOT });
  if (code !== 0) throw new Error(stderr);
  return join(ROOT, 'dist/berth-image.tar');
}

/** Builds what is released, makes a cluster for it, and puts the images on its node. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const state = join(stateFolder(), 'e2e');
  await rm(join(state, 'images'), { recursive: true, force: true });
  await mkdir(join(state, 'images'), { recursive: true });
  const { stderr } = process;
  const progress = createProgress({ write: (text) => stderr.write(text), isTty: false, columns: 80 });
  const { signal } = new AbortController();
  const tools = await ensureGoTools({
    cache: cacheFolder(process.env),
    label: 'chart',
    programs: chartTools(),
    progress,
    signal,
  });
  const archives = [await buildImage(), ...(await makeTestImages(join(state, 'images')))];
  const cluster = await driver()({ state, signal });
  try {
    for (const archive of archives) await cluster.loadImage(archive);
  } catch (error) {
    await cluster.stop();
    throw error;
  }
  const { kubeconfig, auditLog } = cluster;
  project.provide('e2e', { kubeconfig, auditLog, helm: join(tools, 'helm') });
  return () => cluster.stop();
}
