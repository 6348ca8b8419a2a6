import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Descriptor, INDEX, sha256 } from '../image/oci.ts';

/** An OCI image layout (image-spec 1.1) in memory. */
export interface Layout {
  /** Digest -> content. */
  blobs: ReadonlyMap<string, Buffer>;
  /** The entries of index.json. */
  manifests: readonly Descriptor[];
}

const BLOBS = 'blobs/sha256';

/** Writes a layout into a folder, in place of what was there. */
export async function writeLayout(folder: string, { blobs, manifests }: Layout): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(join(folder, BLOBS), { recursive: true });
  const index = { schemaVersion: 2, mediaType: INDEX, manifests };
  await writeFile(join(folder, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
  await writeFile(join(folder, 'index.json'), JSON.stringify(index));
  for (const [digest, content] of blobs) {
    await writeFile(join(folder, BLOBS, digest.slice('sha256:'.length)), content);
  }
}

/** Reads the files of a layout: those of a folder, or those of an archive as name -> content. */
export function layoutOf(files: ReadonlyMap<string, Buffer>): Layout {
  const index = JSON.parse(files.get('index.json')?.toString() ?? '{}') as { manifests?: Descriptor[] };
  const blobs = [...files]
    .filter(([name]) => name.startsWith(`${BLOBS}/`))
    .map(([name, content]) => [`sha256:${name.slice(BLOBS.length + 1)}`, content] as const);
  return { blobs: new Map(blobs), manifests: index.manifests ?? [] };
}

export async function readLayout(folder: string): Promise<Layout> {
  const files = new Map([['index.json', await readFile(join(folder, 'index.json'))]]);
  for (const name of await readdir(join(folder, BLOBS))) {
    files.set(`${BLOBS}/${name}`, await readFile(join(folder, BLOBS, name)));
  }
  return layoutOf(files);
}

/** The content of a blob, which has the digest that it is named by. Throws when it is missing or changed. */
export function blobOf({ blobs }: Layout, { digest }: Pick<Descriptor, 'digest'>): Buffer {
  const content = blobs.get(digest);
  if (content === undefined) throw new Error(`The blob ${digest} is missing.`);
  if (sha256(content) !== digest) throw new Error(`The blob ${digest} was changed.`);
  return content;
}
