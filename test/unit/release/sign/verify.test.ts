import { sign } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type Descriptor, sha256 } from '../../../../tools/release/image/oci.ts';
import { type Statement, seal, statementAbout } from '../../../../tools/release/sign/dsse.ts';
import { blobOf, type Layout } from '../../../../tools/release/sign/layout.ts';
import { KINDS, SIGNATURE, signedLayout } from '../../../../tools/release/sign/sign.ts';
import { verifyLayout } from '../../../../tools/release/sign/verify.ts';
import { entryOf, flipped, isOf, swapped } from '../../../support/layouts.ts';
import { NAME, newKey, signedImage } from './made.ts';

const key = newKey();
const signed = signedImage('ours', key);
const other = signedImage('theirs', key);

/** The layout with another blob for the entry of a kind. */
function renamed(layout: Layout, kind: string, bytes: Buffer): Layout {
  const named = { digest: sha256(bytes), size: bytes.length };
  const manifests = layout.manifests.map((one) => (isOf(one, kind) ? { ...one, ...named } : one));
  return { blobs: new Map([...layout.blobs, [named.digest, bytes]]), manifests };
}

/** The layout with the first part of a kind replaced, a layer or an image, and the digests on the way to it made right. */
function forged(layout: Layout, kind: string, change: (part: Descriptor, content: Buffer) => [Descriptor, Buffer]) {
  const manifest = JSON.parse(blobOf(layout, entryOf(layout, kind)).toString()) as Record<string, unknown>;
  const key = 'manifests' in manifest ? 'manifests' : 'layers';
  const [part, ...rest] = manifest[key] as Descriptor[];
  if (part === undefined) throw new Error('no part');
  const [changed, content] = change(part, blobOf(layout, part));
  const named = { ...changed, digest: sha256(content), size: content.length };
  const whole = renamed(layout, kind, Buffer.from(JSON.stringify({ ...manifest, [key]: [named, ...rest] })));
  return { ...whole, blobs: new Map([...whole.blobs, [named.digest, content]]) };
}

function verified(layout: Layout) {
  return verifyLayout(layout, NAME, key.publicKey);
}

describe('verifyLayout', () => {
  it('accepts what was signed, and says what is attested', () => {
    const { digest, statements } = verified(signed);
    expect(digest).toBe(entryOf(signed, KINDS.image).digest);
    expect(statements).toMatchObject([{ predicateType: 'https://example.com/says', predicate: { text: 'ours' } }]);
  });

  it('refuses a changed byte in every blob', () => {
    expect(signed.blobs.size).toBe(12);
    for (const digest of signed.blobs.keys())
      expect(() => verified(flipped(signed, { digest })), digest).toThrow(`The blob ${digest} was changed.`);
  });

  it('refuses a layout without one of its blobs', () => {
    for (const digest of signed.blobs.keys()) {
      const blobs = new Map([...signed.blobs].filter(([name]) => name !== digest));
      expect(() => verified({ ...signed, blobs })).toThrow(`The blob ${digest} is missing.`);
    }
  });

  it('refuses another key', () => {
    expect(() => verifyLayout(signed, NAME, newKey().publicKey)).toThrow('The signature is not of the key.');
    expect(() => verified(signedImage('ours', newKey()))).toThrow('The signature is not of the key.');
  });

  it('refuses another image under a good signature', () => {
    expect(() => verified(swapped(signed, KINDS.image, other))).toThrow('The signature is not of sha256:');
    const changed = forged(signed, KINDS.image, (image, content) => [image, Buffer.from(`${content.toString()} `)]);
    expect(() => verified(changed)).toThrow('The signature is not of sha256:');
  });

  it('refuses a signature that was made for another repository', () => {
    expect(() => verified(signedImage('ours', key, 'example.com/test'))).toThrow(
      'The signature is not of example.com/b',
    );
  });

  it('refuses a signed payload whose digest was changed', () => {
    const wanted = entryOf(other, KINDS.image).digest;
    const both = swapped(signed, KINDS.image, other);
    const changed = forged(both, KINDS.signatures, (layer, content) => [
      layer,
      Buffer.from(content.toString().replace(entryOf(signed, KINDS.image).digest, wanted)),
    ]);
    expect(() => verified(changed)).toThrow('The signature is not of the key.');
  });

  it('refuses what the key has signed for another purpose', () => {
    const payload = forged(signed, KINDS.signatures, (layer, content) => {
      const text = Buffer.from(content.toString().replace('cosign container image signature', 'another'));
      const value = sign('sha256', text, key.privateKey).toString('base64');
      return [{ ...layer, annotations: { [SIGNATURE]: value } }, text];
    });
    expect(() => verified(payload)).toThrow('The signature is not of sha256:');
    const { digest } = entryOf(signed, KINDS.image);
    const about = { ...statementAbout({ name: NAME, digest }, 'https://example.com/says', {}), _type: 'another' };
    const sealed = forged(signed, KINDS.attestations, (layer) => [layer, seal(about, key.privateKey)]);
    expect(() => verified(sealed)).toThrow('An attestation is no in-toto statement.');
  });

  it('refuses the attestations of another image that the key has signed too', () => {
    expect(() => verified(swapped(signed, KINDS.attestations, other))).toThrow('is not about sha256:');
  });

  it('refuses an attestation of another key', () => {
    const theirs = signedImage('ours', newKey());
    expect(() => verified(swapped(signed, KINDS.attestations, theirs))).toThrow('An attestation is not signed');
  });

  it('refuses an attestation whose statement was changed, or that is of another type', () => {
    const rewrite = (change: (envelope: { payload: string; payloadType: string }) => object) =>
      forged(signed, KINDS.attestations, (layer, content) => [
        layer,
        Buffer.from(JSON.stringify(change(JSON.parse(content.toString())))),
      ]);
    const statement = (text: string): string =>
      Buffer.from(Buffer.from(text, 'base64').toString().replace('ours', 'evil')).toString('base64');
    const changed = rewrite((envelope) => ({ ...envelope, payload: statement(envelope.payload) }));
    expect(() => verified(changed)).toThrow('An attestation is not signed by the key.');
    const renamed = rewrite((envelope) => ({ ...envelope, payloadType: 'text/plain' }));
    expect(() => verified(renamed)).toThrow('An attestation is no in-toto one.');
  });

  it('refuses an attestation about several things', () => {
    const { digest } = entryOf(signed, KINDS.image);
    const about = statementAbout({ name: NAME, digest }, 'https://example.com/says', {});
    const two: Statement = { ...about, subject: [...about.subject, { name: 'another', digest: { sha256: '0' } }] };
    const changed = forged(signed, KINDS.attestations, (layer) => [layer, seal(two, key.privateKey)]);
    expect(() => verified(changed)).toThrow('is not about sha256:');
  });

  it.each([KINDS.image, KINDS.signatures, KINDS.attestations])('refuses a layout without %s, or with two', (kind) => {
    const without = signed.manifests.filter((one) => !isOf(one, kind));
    expect(() => verified({ ...signed, manifests: without })).toThrow(`has 0 of ${kind}`);
    expect(() => verified({ ...signed, manifests: [...signed.manifests, entryOf(other, kind)] })).toThrow('has 2 of');
  });

  it('refuses a list of signatures with nothing in it', () => {
    const signatures = blobOf(signed, entryOf(signed, KINDS.signatures)).toString();
    const empty = renamed(
      signed,
      KINDS.signatures,
      Buffer.from(JSON.stringify({ ...JSON.parse(signatures), layers: [] })),
    );
    expect(() => verified(empty)).toThrow('There is no signature.');
  });
});

describe('signedLayout', () => {
  it('tags signature and attestations as cosign looks for them in a registry', () => {
    const { digest } = entryOf(signed, KINDS.image);
    const names = signed.manifests.map(({ annotations }) => annotations?.['org.opencontainers.image.ref.name']);
    const tag = digest.replace(':', '-');
    expect(names).toEqual(['1', `${tag}.sig`, `${tag}.att`]);
  });

  it('signs no image that the layout does not have', () => {
    const subject = { name: NAME, digest: entryOf(other, KINDS.image).digest };
    expect(() => signedLayout(signed, subject, [], key.privateKey)).toThrow('The layout has no sha256:');
  });
});
