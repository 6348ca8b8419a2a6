import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { ROOT } from '../../../../tools/lib/paths.ts';
import { tarOf } from '../../../../src/lib/tar.ts';
import { blobOf } from '../../../../tools/release/sign/layout.ts';
import { chartArtifact, withDigest } from '../../../../tools/release/sign/packed-chart.ts';

const VALUES = readFileSync(join(ROOT, 'charts/berth/values.yaml'), 'utf8');
const DIGEST = `sha256:${'0'.repeat(64)}`;

describe('withDigest', () => {
  it('fills in the digest of the image and changes nothing else', () => {
    const before = parse(VALUES) as { image: object };
    expect(parse(withDigest(VALUES, DIGEST))).toEqual({ ...before, image: { ...before.image, digest: DIGEST } });
  });

  it('refuses values that have a digest already, or none', () => {
    expect(() => withDigest(withDigest(VALUES, DIGEST), DIGEST)).toThrow('no empty image.digest');
    expect(() => withDigest('other:\n  digest: ""\n', DIGEST)).toThrow('no empty image.digest');
  });
});

describe('chartArtifact', () => {
  it('is what Helm pulls: the metadata as configuration, and the package as the one layer', () => {
    const chart = 'name: berth\nversion: 1.2.3\ndescription: A chart.\n';
    const archive = gzipSync(tarOf([{ name: 'berth/Chart.yaml', type: 'file', content: Buffer.from(chart) }]));
    const { layout, digest } = chartArtifact(archive);
    const [entry] = layout.manifests;
    expect(entry?.digest).toBe(digest);
    const manifest = JSON.parse(String(layout.blobs.get(digest)));
    expect(manifest.config.mediaType).toBe('application/vnd.cncf.helm.config.v1+json');
    expect(JSON.parse(blobOf(layout, manifest.config).toString())).toMatchObject({ version: '1.2.3' });
    expect(manifest.layers).toHaveLength(1);
    expect(manifest.layers[0].mediaType).toBe('application/vnd.cncf.helm.chart.content.v1.tar+gzip');
    expect(blobOf(layout, manifest.layers[0])).toEqual(archive);
  });
});
