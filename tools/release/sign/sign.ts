import { type KeyObject, sign } from 'node:crypto';
import { type Blob, blob, type Descriptor, descriptor, EPOCH, INDEX, json, OCI, sha256 } from '../image/oci.ts';
import { ENVELOPE_TYPE, seal, type Statement, type Subject } from './dsse.ts';
import type { Layout } from './layout.ts';

export const SIGNATURE = 'dev.cosignproject.cosign/signature';
export const PAYLOAD_KIND = 'cosign container image signature';
const SIMPLE_SIGNING = 'application/vnd.dev.cosign.simplesigning.v1+json';

/** What an entry of the index is, in the words of `cosign save`, so that cosign verifies and publishes the folder. */
export const KINDS = {
  image: 'dev.cosignproject.cosign/image',
  index: 'dev.cosignproject.cosign/imageIndex',
  signatures: 'dev.cosignproject.cosign/sigs',
  attestations: 'dev.cosignproject.cosign/atts',
} as const;

type Layer = Blob & { annotations: Record<string, string> };

/** What a signature signs: the digest, and the repository that it was made for ("simple signing"). */
function signature({ name, digest }: Subject, key: KeyObject): Layer {
  const payload = Buffer.from(
    JSON.stringify({
      critical: {
        identity: { 'docker-reference': name },
        image: { 'docker-manifest-digest': digest },
        type: PAYLOAD_KIND,
      },
      optional: null,
    }),
  );
  const value = sign('sha256', payload, key).toString('base64');
  return { ...blob(SIMPLE_SIGNING, payload), annotations: { [SIGNATURE]: value } };
}

function attestation(statement: Statement, key: KeyObject): Layer {
  const annotations = { [SIGNATURE]: '', predicateType: statement.predicateType };
  return { ...blob(ENVELOPE_TYPE, seal(statement, key)), annotations };
}

/** The blobs of an image whose layers are signatures or attestations; its manifest comes first. */
function carrier(layers: readonly Layer[]): [manifest: Blob, ...rest: Blob[]] {
  const diffIds = layers.map(({ content }) => sha256(content));
  const config = json(`${OCI}.config.v1+json`, {
    architecture: '',
    created: EPOCH,
    history: layers.map(() => ({ created: EPOCH })),
    os: '',
    rootfs: { type: 'layers', diff_ids: diffIds },
    config: {},
  });
  const manifest = json(`${OCI}.manifest.v1+json`, {
    schemaVersion: 2,
    mediaType: `${OCI}.manifest.v1+json`,
    config: descriptor(config),
    layers: layers.map((layer) => ({ ...descriptor(layer), annotations: layer.annotations })),
  });
  return [manifest, config, ...layers];
}

/**
 * The layout of one image, or of one index of images, with its signature and its attestations beside it, each under the tag at which cosign looks for
 * it in a registry. `source` has it in its index.json; `subject` is the same under the name of its repository.
 */
export function signedLayout(
  source: Layout,
  subject: Subject,
  statements: readonly Statement[],
  key: KeyObject,
): Layout {
  const image = source.manifests.find(({ digest }) => digest === subject.digest);
  if (image === undefined) throw new Error(`The layout has no ${subject.digest}.`);
  const signatures = carrier([signature(subject, key)]);
  const attestations = carrier(statements.map((statement) => attestation(statement, key)));
  const tag = subject.digest.replace(':', '-');
  const entry = (manifest: Descriptor, kind: string, name: string): Descriptor => ({
    ...manifest,
    annotations: { ...manifest.annotations, kind, 'org.opencontainers.image.ref.name': name },
  });
  const added = [...signatures, ...attestations].map(({ digest, content }) => [digest, content] as const);
  return {
    blobs: new Map([...source.blobs, ...added]),
    manifests: [
      { ...image, annotations: { ...image.annotations, kind: image.mediaType === INDEX ? KINDS.index : KINDS.image } },
      entry(descriptor(signatures[0]), KINDS.signatures, `${tag}.sig`),
      entry(descriptor(attestations[0]), KINDS.attestations, `${tag}.att`),
    ],
  };
}
