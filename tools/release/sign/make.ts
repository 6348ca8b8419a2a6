import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { ROOT } from '../../lib/paths.ts';
import { filesInTar } from '../../../src/lib/tar.ts';
import type { Descriptor } from '../image/oci.ts';
import { CHART_NAME, IMAGE_NAME } from '../names.ts';
import { statementAbout, type Subject } from './dsse.ts';
import { type KeyPair, publicPem } from './keys.ts';
import { blobOf, type Layout, layoutOf, readLayout, writeLayout } from './layout.ts';
import { chartArtifact, packChart } from './packed-chart.ts';
import { BILL_OF_MATERIALS, type Build, LOCK_FILES, provenance, PROVENANCE } from './provenance.ts';
import { signedLayout } from './sign.ts';
import { verifyLayout } from './verify.ts';

export interface ReleaseOptions {
  /** The folder with what `npm run image` made. */
  dist: string;
  /** The folder for the release. */
  out: string;
  /** Commit of the source. */
  commit: string;
  /** Path of Helm. */
  helm: string;
  key: KeyPair;
}

/** What was released: image and chart with their digests, and the path of the packed chart. */
export interface Release {
  image: Subject;
  chart: Subject;
  archive: string;
}

async function readBuild(dist: string, commit: string): Promise<Build> {
  const locks = await Promise.all(LOCK_FILES.map(async (path) => [path, await readFile(join(ROOT, path))] as const));
  const bill = JSON.parse(await readFile(join(dist, 'berth-sbom.cdx.json'), 'utf8')) as Build['bill'];
  return { commit, locks: new Map(locks), bill };
}

/** The architectures of an index of images. */
function architecturesOf(layout: Layout, entry: Descriptor): string[] {
  const { manifests } = JSON.parse(blobOf(layout, entry).toString()) as {
    manifests: { platform: { architecture: string } }[];
  };
  return manifests.map(({ platform }) => platform.architecture);
}

/** Throws when the chart promises GPUs of nodes that cannot run the image, or keeps from some that can. */
async function checkArchitectures(built: readonly string[]): Promise<void> {
  const values = parse(await readFile(join(ROOT, 'charts/berth/values.yaml'), 'utf8')) as {
    image: { architectures: string[] };
  };
  const { architectures } = values.image;
  if (architectures.join() !== built.join())
    throw new Error(`The chart is for ${architectures.join()}, and the image for ${built.join()}.`);
}

/**
 * Packs the chart for the built image, and signs both with what is known of their making:
 *
 *     OUT/image, OUT/chart    OCI layouts, each with its signature and its attestations
 *     OUT/berth-VERSION.tgz   the packed chart, with the image's digest in its values
 *     OUT/berth.pub           the public key
 *
 * It verifies what it wrote. Throws LocalFailure when Helm fails, and Error when a check does.
 */
export async function makeRelease({ dist, out, commit, helm, key }: ReleaseOptions): Promise<Release> {
  const built = layoutOf(filesInTar(await readFile(join(dist, 'berth-image.tar'))));
  const [found] = built.manifests;
  if (found === undefined) throw new Error('The image archive is empty.');
  await checkArchitectures(architecturesOf(built, found));
  const build = await readBuild(dist, commit);
  const image: Subject = { name: IMAGE_NAME, digest: found.digest };
  const tgz = await packChart(helm, image.digest);
  const { layout, digest, metadata } = chartArtifact(tgz);
  const chart: Subject = { name: CHART_NAME, digest };
  const parts = [
    {
      folder: 'image',
      subject: image,
      layout: built,
      statements: [
        statementAbout(image, PROVENANCE, provenance(build)),
        statementAbout(image, BILL_OF_MATERIALS, build.bill),
      ],
    },
    { folder: 'chart', subject: chart, layout, statements: [statementAbout(chart, PROVENANCE, provenance(build))] },
  ];
  await mkdir(out, { recursive: true });
  for (const { folder, subject, layout: unsigned, statements } of parts) {
    const path = join(out, folder);
    await writeLayout(path, signedLayout(unsigned, subject, statements, key.privateKey));
    verifyLayout(await readLayout(path), subject.name, key.publicKey);
  }
  const archive = join(out, `berth-${metadata.version}.tgz`);
  await writeFile(archive, tgz);
  await writeFile(join(out, 'berth.pub'), publicPem(key.publicKey));
  return { image, chart, archive };
}
