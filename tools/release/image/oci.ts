import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { TAR_END, tarHeader, tarOf, tarPadding, type TarEntry } from '../../../src/lib/tar.ts';

/** What differs between the images of one index. */
export interface ArchitectureImage {
  /** Go's name of the processor architecture, such as amd64. */
  architecture: string;
  layers: readonly Layer[];
}

/** What all images of one index have in common. */
export interface ImageConfig {
  user: string;
  entrypoint: readonly string[];
  env: readonly string[];
  workingDir: string;
  labels: Record<string, string>;
}

/** Content that an image names by its digest. */
export interface Blob {
  mediaType: string;
  digest: string;
  size: number;
  content: Buffer;
}

/** How a manifest or an index names a blob. */
export interface Descriptor {
  mediaType: string;
  digest: string;
  size: number;
  annotations?: Record<string, string>;
}

/** The time in every image, so that the same content makes the same bytes. */
export const EPOCH = '1970-01-01T00:00:00Z';
const CONTAINERD_NAME = 'io.containerd.image.name';
export const OCI = 'application/vnd.oci.image';
/** The media type of an index, which names images of several architectures. */
export const INDEX = `${OCI}.index.v1+json`;

/** The digest of some content. */
export const sha256 = (content: Buffer): string => `sha256:${createHash('sha256').update(content).digest('hex')}`;

export function blob(mediaType: string, content: Buffer): Blob {
  return { mediaType, digest: sha256(content), size: content.length, content };
}

/** A blob of JSON. */
export function json(mediaType: string, value: unknown): Blob {
  return blob(mediaType, Buffer.from(JSON.stringify(value)));
}

export const descriptor = ({ mediaType, digest, size }: Blob): Descriptor => ({ mediaType, digest, size });

/** One layer: its compressed archive, and the digest of the archive before compression. */
export interface Layer {
  diffId: string;
  compressed: Buffer;
}

/** The same entries in any order make the same archive. */
export function archiveOf(entries: readonly TarEntry[]): Buffer {
  return tarOf(entries.toSorted((a, b) => (a.name < b.name ? -1 : 1)));
}

export const compress = (archive: Buffer): Buffer => gzipSync(archive, { level: 6 });

export function layerOf(entries: readonly TarEntry[]): Layer {
  const archive = archiveOf(entries);
  return { diffId: sha256(archive), compressed: compress(archive) };
}

/** The manifest of one image, and all that it names. */
function imageBlobs(
  { architecture, layers }: ArchitectureImage,
  image: ImageConfig,
): [manifest: Blob, ...rest: Blob[]] {
  const config = json(`${OCI}.config.v1+json`, {
    created: EPOCH,
    architecture,
    os: 'linux',
    config: {
      User: image.user,
      Env: image.env,
      Entrypoint: image.entrypoint,
      WorkingDir: image.workingDir,
      Labels: image.labels,
    },
    rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    history: layers.map(() => ({ created: EPOCH, created_by: 'npm run image' })),
  });
  const blobs = layers.map(({ compressed }) => blob(`${OCI}.layer.v1.tar+gzip`, compressed));
  const manifest = json(`${OCI}.manifest.v1+json`, {
    schemaVersion: 2,
    mediaType: `${OCI}.manifest.v1+json`,
    config: descriptor(config),
    layers: blobs.map(descriptor),
  });
  return [manifest, config, ...blobs];
}

/**
 * The images of several architectures under one index, as the parts of an OCI archive (image-spec 1.1, image layout),
 * named `reference`. A node that imports it has the index under its digest too, as a released chart names it. The same
 * layers and configuration make the same bytes.
 */
export function ociArchive(
  images: readonly ArchitectureImage[],
  image: ImageConfig,
  reference: string,
): { digest: string; parts: Buffer[] } {
  const made = images.map((one) => ({ architecture: one.architecture, blobs: imageBlobs(one, image) }));
  const index = json(INDEX, {
    schemaVersion: 2,
    mediaType: INDEX,
    manifests: made.map(({ architecture, blobs }) => ({
      ...descriptor(blobs[0]),
      platform: { architecture, os: 'linux' },
    })),
  });
  const at = reference.lastIndexOf(':');
  const [repository, tag] = [reference.slice(0, at), reference.slice(at + 1)];
  const names = [
    { [CONTAINERD_NAME]: reference, 'org.opencontainers.image.ref.name': tag },
    { [CONTAINERD_NAME]: `${repository}@${index.digest}` },
  ];
  const entries = {
    schemaVersion: 2,
    mediaType: INDEX,
    manifests: names.map((annotations) => ({ ...descriptor(index), annotations })),
  };
  // Layers that images share are in it once.
  const blobs = new Map([index, ...made.flatMap((one) => one.blobs)].map(({ digest, content }) => [digest, content]));
  const files = [
    { name: 'oci-layout', content: Buffer.from(JSON.stringify({ imageLayoutVersion: '1.0.0' })) },
    { name: 'index.json', content: Buffer.from(JSON.stringify(entries)) },
    ...[...blobs].map(([digest, content]) => ({ name: `blobs/sha256/${digest.slice('sha256:'.length)}`, content })),
  ];
  const parts = files.flatMap(({ name, content }) => [
    tarHeader({ name, type: 'file' }, content.length),
    content,
    tarPadding(content.length),
  ]);
  return { digest: index.digest, parts: [...parts, TAR_END] };
}
