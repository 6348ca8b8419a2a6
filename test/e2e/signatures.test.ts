import { readFile } from 'node:fs/promises';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { run } from '../../tools/lib/shell.ts';
import { helmEnvironment } from '../../tools/release/helm.ts';
import { blobOf, type Layout } from '../../tools/release/sign/layout.ts';
import { BILL_OF_MATERIALS, PROVENANCE } from '../../tools/release/sign/provenance.ts';
import { KINDS } from '../../tools/release/sign/sign.ts';
import { verifyLayout } from '../../tools/release/sign/verify.ts';
import { entryOf, flipped, firstLayer, swapped } from '../support/layouts.ts';
import { SignedRelease, throwAwayKey } from './support/signed-release.ts';

const key = throwAwayKey();

describe('a signed release', () => {
  let signed: SignedRelease;
  let image: Layout;
  let chart: Layout;

  beforeAll(async () => {
    signed = await SignedRelease.make(inject('e2e').helm, key);
    [image, chart] = [await signed.read('image'), await signed.read('chart')];
  });

  it('is accepted by cosign: image, provenance, bill of materials and chart', async () => {
    expect(await signed.ask(image, key)).toEqual({ attested: [PROVENANCE, BILL_OF_MATERIALS], refusal: '' });
    expect(await signed.ask(chart, key)).toEqual({ attested: [PROVENANCE], refusal: '' });
  });

  it('says which packages the image has, and from which commit it was built', () => {
    const { statements } = verifyLayout(image, signed.release.image.name, key.publicKey);
    const [provenance, bill] = statements.map(({ predicate }) => JSON.stringify(predicate));
    expect(provenance).toMatch(/"gitCommit":"[\da-f]{40}"/);
    expect(provenance).toMatch(/"uri":"pkg:npm\/express@[\d.]+","digest":\{"sha512":"[\da-f]{128}"\}/);
    expect(provenance).toMatch(/"uri":"pkg:generic\/node@[\d.]+\?arch=arm64","digest":\{"sha256":"[\da-f]{64}"\}/);
    expect(provenance).toMatch(/"uri":"pkg:golang\/[^"]+","digest":\{"dirHash":"[\da-f]{64}"\}/);
    expect(bill).toContain('"bomFormat":"CycloneDX"');
  });

  it('packs the chart for the image that was built, the same bytes each time', async () => {
    const { image: subject, chart: first, archive } = signed.release;
    const args = ['template', 'berth', archive, '--show-only', 'templates/controller/deployment.yaml'];
    const { stdout } = await run(inject('e2e').helm, args, { env: helmEnvironment() });
    const reference = `${subject.name}@${subject.digest}`;
    expect(stdout.match(/ghcr\.io\/[^\s"]+/g)).toEqual([reference, reference]);
    expect(blobOf(chart, firstLayer(chart, KINDS.image))).toEqual(await readFile(archive));
    const again = await SignedRelease.make(inject('e2e').helm, key);
    expect(again.release.chart).toEqual(first);
  });

  it('is refused by another key', async () => {
    for (const layout of [image, chart])
      expect((await signed.ask(layout, throwAwayKey())).refusal).toContain('invalid signature');
  });

  it.each(['image', 'chart'] as const)('is refused with a changed byte: %s', async (name) => {
    const layout = name === 'image' ? image : chart;
    const manifest = entryOf(layout, KINDS.image);
    expect((await signed.ask(flipped(layout, manifest), key)).refusal).not.toBe('');
    expect((await signed.ask(flipped(layout, firstLayer(layout, KINDS.signatures)), key)).refusal).not.toBe('');
    // cosign passes over an attestation that is wrong, and says which are right.
    const { attested } = await signed.ask(flipped(layout, firstLayer(layout, KINDS.attestations)), key);
    expect(attested).not.toContain(PROVENANCE);
    // cosign leaves the layers to the program that pulls them.
    const content = flipped(layout, firstLayer(layout, KINDS.image));
    expect(() => verifyLayout(content, signed.release[name].name, key.publicKey)).toThrow('was changed');
  });

  it('is refused with a signature or attestations of something else that the same key has signed', async () => {
    for (const kind of [KINDS.image, KINDS.signatures, KINDS.attestations]) {
      expect((await signed.ask(swapped(chart, kind, image), key)).refusal, kind).not.toBe('');
    }
  });
});
