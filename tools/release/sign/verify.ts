import { type KeyObject, verify } from 'node:crypto';
import { type Descriptor, INDEX } from '../image/oci.ts';
import { open, type Statement, type Subject } from './dsse.ts';
import { blobOf, type Layout } from './layout.ts';
import { KINDS, PAYLOAD_KIND, SIGNATURE } from './sign.ts';

interface Manifest {
  config: Descriptor;
  layers: Descriptor[];
}

interface Payload {
  critical?: {
    identity?: { 'docker-reference'?: unknown };
    image?: { 'docker-manifest-digest'?: unknown };
    type?: unknown;
  };
}

/** The one entry of any of these kinds. */
function entryOf(layout: Layout, ...kinds: string[]): Descriptor {
  const found = layout.manifests.filter(({ annotations }) => kinds.includes(String(annotations?.['kind'])));
  const [entry] = found;
  if (entry === undefined || found.length > 1)
    throw new Error(`The index has ${found.length} of ${kinds.join(' or ')}, not 1.`);
  return entry;
}

/** Checks every byte of an image, or of all images of an index. */
function checkContent(layout: Layout, entry: Descriptor): void {
  if (entry.mediaType !== INDEX) return void layersOf(layout, entry);
  const { manifests } = JSON.parse(blobOf(layout, entry).toString()) as { manifests: Descriptor[] };
  for (const manifest of manifests) layersOf(layout, manifest);
}

/** The layers of a manifest with their contents, each of which has the digest that the manifest names. */
function layersOf(layout: Layout, entry: Descriptor): { layer: Descriptor; content: Buffer }[] {
  const { config, layers } = JSON.parse(blobOf(layout, entry).toString()) as Manifest;
  blobOf(layout, config);
  return layers.map((layer) => ({ layer, content: blobOf(layout, layer) }));
}

function checkSignature({ layer, content }: { layer: Descriptor; content: Buffer }, subject: Subject, key: KeyObject) {
  const value = Buffer.from(layer.annotations?.[SIGNATURE] ?? '', 'base64');
  if (!verify('sha256', content, key, value)) throw new Error('The signature is not of the key.');
  const { critical } = JSON.parse(content.toString()) as Payload;
  if (critical?.type !== PAYLOAD_KIND || critical.image?.['docker-manifest-digest'] !== subject.digest)
    throw new Error(`The signature is not of ${subject.digest}.`);
  if (critical.identity?.['docker-reference'] !== subject.name)
    throw new Error(`The signature is not of ${subject.name}.`);
}

/**
 * Verifies a layout that `signedLayout` made: every byte of the image, its signature, and that each attestation is signed
 * by the same key and about this image. Returns the digest and what is attested. Throws for the first thing that is wrong.
 */
export function verifyLayout(
  layout: Layout,
  name: string,
  key: KeyObject,
): { digest: string; statements: Statement[] } {
  const image = entryOf(layout, KINDS.image, KINDS.index);
  checkContent(layout, image);
  const subject = { name, digest: image.digest };
  const signatures = layersOf(layout, entryOf(layout, KINDS.signatures));
  if (signatures.length === 0) throw new Error('There is no signature.');
  for (const signature of signatures) checkSignature(signature, subject, key);
  const statements = layersOf(layout, entryOf(layout, KINDS.attestations)).map(({ content }) => open(content, key));
  for (const { subject: about, predicateType } of statements) {
    const isAbout = about.length === 1 && `sha256:${about[0]?.digest['sha256']}` === image.digest;
    if (!isAbout) throw new Error(`The attestation ${predicateType} is not about ${image.digest}.`);
  }
  return { digest: image.digest, statements };
}
