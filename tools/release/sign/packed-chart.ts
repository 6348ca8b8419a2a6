import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { parse } from 'yaml';
import { LocalFailure } from '../../lib/failure.ts';
import { ROOT } from '../../lib/paths.ts';
import { lastLines, run } from '../../lib/shell.ts';
import { filesInTar, tarOf } from '../../../src/lib/tar.ts';
import { helmEnvironment } from '../helm.ts';
import { blob, descriptor, json, OCI } from '../image/oci.ts';
import type { Layout } from './layout.ts';

const OWN_IMAGE = /(?<=^ {6}image: ghcr\.io\/berth-dev\/berth):\S+$/m;
const EMPTY_DIGEST = /(?<=^image:\n(?: {2}.*\n)*? {2}digest: )""$/gm;

interface Metadata {
  name: string;
  version: string;
  description: string;
}

/** The chart's values with the image's digest. Throws when they have no place for it. */
export function withDigest(values: string, digest: string): string {
  if (values.match(EMPTY_DIGEST)?.length !== 1) throw new Error('values.yaml has no empty image.digest.');
  return values.replace(EMPTY_DIGEST, digest);
}

/** Chart.yaml with the image's digest in its list of images. Throws when the list lacks the image. */
export function listedByDigest(chart: string, digest: string): string {
  if (!OWN_IMAGE.test(chart)) throw new Error('Chart.yaml lists no image of Berth.');
  return chart.replace(OWN_IMAGE, `@${digest}`);
}

/** The package that Helm makes of the chart, with the image's digest and without times. Throws LocalFailure. */
export async function packChart(helm: string, imageDigest: string): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-chart-'));
  try {
    const chart = join(folder, 'berth');
    await cp(join(ROOT, 'charts/berth'), chart, { recursive: true });
    for (const [name, edit] of [
      ['values.yaml', withDigest],
      ['Chart.yaml', listedByDigest],
    ] as const) {
      const path = join(chart, name);
      await writeFile(path, edit(await readFile(path, 'utf8'), imageDigest));
    }
    const args = ['package', chart, '--destination', folder];
    const { code, stderr } = await run(helm, args, { env: helmEnvironment() });
    if (code !== 0)
      throw new LocalFailure('The chart cannot be packaged.', 'Read the lines below.', lastLines(stderr, 8));
    const archive = (await readdir(folder)).find((name) => name.endsWith('.tgz')) ?? '';
    return withoutTimes(await readFile(join(folder, archive)));
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** The same files, so that the same chart makes the same bytes. Chart.yaml stays first, as Helm wants to find it soon. */
function withoutTimes(archive: Buffer): Buffer {
  const files = [...filesInTar(gunzipSync(archive))];
  return gzipSync(tarOf(files.map(([name, content]) => ({ name, type: 'file', content }))), { level: 9 });
}

/** The package as the artifact that `helm push` would make of it. */
export function chartArtifact(archive: Buffer): { layout: Layout; digest: string; metadata: Metadata } {
  const chart = filesInTar(gunzipSync(archive)).get('berth/Chart.yaml')?.toString() ?? '';
  const metadata = parse(chart) as Metadata;
  const config = json('application/vnd.cncf.helm.config.v1+json', metadata);
  const layer = blob('application/vnd.cncf.helm.chart.content.v1.tar+gzip', archive);
  const manifest = json(`${OCI}.manifest.v1+json`, {
    schemaVersion: 2,
    mediaType: `${OCI}.manifest.v1+json`,
    config: descriptor(config),
    layers: [descriptor(layer)],
    annotations: {
      'org.opencontainers.image.title': metadata.name,
      'org.opencontainers.image.version': metadata.version,
      'org.opencontainers.image.description': metadata.description,
    },
  });
  const annotations = { 'org.opencontainers.image.ref.name': metadata.version };
  return {
    layout: {
      blobs: new Map([manifest, config, layer].map(({ digest, content }) => [digest, content])),
      manifests: [{ ...descriptor(manifest), annotations }],
    },
    digest: manifest.digest,
    metadata,
  };
}
