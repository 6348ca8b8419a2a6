import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheFolder, ROOT, stateFolder } from '../../../tools/lib/paths.ts';
import { plainProgress } from '../../../tools/lib/progress.ts';
import { run } from '../../../tools/lib/shell.ts';
import { chartTools, ensureGoTools } from '../../../tools/release/go-tools.ts';
import { ARCHITECTURES } from '../../../tools/release/names.ts';
import { phase } from '../../support/phases.ts';
import type { Driver, E2eCluster } from './driver.ts';
import { makeTestImages } from './images.ts';
import { signWith, throwAwayKey } from './signed-release.ts';

/** A cluster whose node has the images, ready for the release. */
export interface Stage<C extends E2eCluster> {
  cluster: C;
  /** Path of Helm. */
  helm: string;
  /** Path of the packed chart. */
  chart: string;
}

async function buildImage(): Promise<string> {
  const args = [join(ROOT, 'tools/release/image/build.ts'), ...ARCHITECTURES];
  const { code, stderr } = await run(process.execPath, args, { cwd: ROOT });
  if (code !== 0) throw new Error(stderr);
  return join(ROOT, 'dist/berth-image.tar');
}

async function buildTools(signal: AbortSignal): Promise<string> {
  const progress = plainProgress();
  const cache = cacheFolder(process.env);
  return ensureGoTools({ cache, label: 'chart', programs: chartTools(), needed: ['helm'], progress, signal });
}

/** Builds the release, makes a cluster in the folder `name` of the state folder, and loads the images into it. */
export async function setStage<C extends E2eCluster>(name: string, driver: Driver<C>): Promise<Stage<C>> {
  const state = join(stateFolder(), name);
  await rm(join(state, 'images'), { recursive: true, force: true });
  await mkdir(join(state, 'images'), { recursive: true });
  const { signal } = new AbortController();
  const tools = await phase('helm', () => buildTools(signal));
  const image = await phase('image', buildImage);
  const helm = join(tools, 'helm');
  const { archive: chart } = await phase('release', () => signWith(throwAwayKey(), helm, join(state, 'release')));
  const others = await phase('images of the test', () => makeTestImages(join(state, 'images')));
  const cluster = await phase('cluster', () => driver({ state, signal }));
  try {
    for (const archive of [image, ...others]) await phase(`load ${archive}`, () => cluster.loadImage(archive));
  } catch (error) {
    await cluster.stop();
    throw error;
  }
  return { cluster, helm, chart };
}
