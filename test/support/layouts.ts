import type { Descriptor } from '../../tools/release/image/oci.ts';
import { blobOf, type Layout } from '../../tools/release/sign/layout.ts';

/** The entry of a kind in the index of a signed layout. */
export function entryOf({ manifests }: Layout, kind: string): Descriptor {
  const found = manifests.find(({ annotations }) => annotations?.['kind'] === kind);
  if (found === undefined) throw new Error(`The layout has no ${kind}.`);
  return found;
}

export function manifestOf(layout: Layout, kind: string): { layers: Descriptor[] } {
  return JSON.parse(blobOf(layout, entryOf(layout, kind)).toString()) as { layers: Descriptor[] };
}

export function firstLayer(layout: Layout, kind: string): Descriptor {
  const [layer] = manifestOf(layout, kind).layers;
  if (layer === undefined) throw new Error(`The ${kind} has no layer.`);
  return layer;
}

/** The layout with one entry of the index from another layout, and the blobs of both. */
export function swapped(layout: Layout, kind: string, from: Layout): Layout {
  const manifests = layout.manifests.map((one) => (one.annotations?.['kind'] === kind ? entryOf(from, kind) : one));
  return { blobs: new Map([...layout.blobs, ...from.blobs]), manifests };
}

/** The layout with one bit changed in the middle of a blob, which keeps its name. */
export function flipped(layout: Layout, { digest }: Pick<Descriptor, 'digest'>): Layout {
  const content = Buffer.from(layout.blobs.get(digest) ?? Buffer.alloc(0));
  const middle = Math.floor(content.length / 2);
  content[middle] = (content[middle] ?? 0) ^ 1;
  return { ...layout, blobs: new Map([...layout.blobs, [digest, content]]) };
}
