import { type Descriptor, INDEX } from '../../tools/release/image/oci.ts';
import { blobOf, type Layout } from '../../tools/release/sign/layout.ts';
import { KINDS } from '../../tools/release/sign/sign.ts';

/** Whether an entry is of the kind. What is signed is an image, or an index of images. */
export function isOf({ annotations }: Descriptor, kind: string): boolean {
  const found = annotations?.['kind'];
  return found === kind || (kind === KINDS.image && found === KINDS.index);
}

/** The entry of a kind in the index of a signed layout. */
export function entryOf({ manifests }: Layout, kind: string): Descriptor {
  const found = manifests.find((entry) => isOf(entry, kind));
  if (found === undefined) throw new Error(`The layout has no ${kind}.`);
  return found;
}

/** The manifest of a kind: of an index that of its first image. */
function manifestOf(layout: Layout, kind: string): Descriptor {
  const entry = entryOf(layout, kind);
  if (entry.mediaType !== INDEX) return entry;
  const [first] = imagesOf(layout, entry);
  if (first === undefined) throw new Error('The index has no image.');
  return first;
}

/** The images that an index names. */
export function imagesOf(layout: Layout, index: Descriptor): (Descriptor & { platform: { architecture: string } })[] {
  const { manifests } = JSON.parse(blobOf(layout, index).toString()) as { manifests: ReturnType<typeof imagesOf> };
  return manifests;
}

export function firstLayer(layout: Layout, kind: string): Descriptor {
  const { layers } = JSON.parse(blobOf(layout, manifestOf(layout, kind)).toString()) as { layers: Descriptor[] };
  const [layer] = layers;
  if (layer === undefined) throw new Error(`The ${kind} has no layer.`);
  return layer;
}

/** The layout with one entry of the index from another layout, and the blobs of both. */
export function swapped(layout: Layout, kind: string, from: Layout): Layout {
  const manifests = layout.manifests.map((one) => (isOf(one, kind) ? entryOf(from, kind) : one));
  return { blobs: new Map([...layout.blobs, ...from.blobs]), manifests };
}

/** The layout with one bit changed in the middle of a blob, which keeps its name. */
export function flipped(layout: Layout, { digest }: Pick<Descriptor, 'digest'>): Layout {
  const content = Buffer.from(layout.blobs.get(digest) ?? Buffer.alloc(0));
  const middle = Math.floor(content.length / 2);
  content[middle] = (content[middle] ?? 0) ^ 1;
  return { ...layout, blobs: new Map([...layout.blobs, [digest, content]]) };
}
