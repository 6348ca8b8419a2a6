import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { TarEntry } from '../../../../src/lib/tar.ts';
import { layerOf, ociArchive } from '../../../../tools/release/image/oci.ts';

const ENTRIES: TarEntry[] = [
  { name: 'b', type: 'file', content: Buffer.from('two') },
  { name: 'a', type: 'file', content: Buffer.from('one') },
];
const CONFIG = {
  user: '65532:65532',
  entrypoint: ['/a'],
  env: ['PATH=/bin'],
  workingDir: '/',
  labels: {},
};

const hash = (content: Buffer): string => createHash('sha256').update(content).digest('hex');

/** The members of a ustar archive. */
function members(archive: Buffer): Map<string, Buffer> {
  const found = new Map<string, Buffer>();
  for (let at = 0; archive[at] !== 0 && at < archive.length;) {
    const name = archive.toString('utf8', at, at + 100).replace(/\0.*$/s, '');
    const size = Number.parseInt(archive.toString('ascii', at + 124, at + 135), 8);
    found.set(name, archive.subarray(at + 512, at + 512 + size));
    at += 512 + Math.ceil(size / 512) * 512;
  }
  return found;
}

describe('layerOf', () => {
  it('makes the same bytes whatever the order of the entries', () => {
    expect(layerOf(ENTRIES)).toEqual(layerOf(ENTRIES.toReversed()));
  });

  it('names the uncompressed archive as the diff id', () => {
    const { diffId, compressed } = layerOf(ENTRIES);
    expect(diffId).toBe(`sha256:${hash(gunzipSync(compressed))}`);
    expect([...members(gunzipSync(compressed)).keys()]).toEqual(['a', 'b']);
  });
});

describe('ociArchive', () => {
  it('holds every blob under its own digest, once, reachable from an index of the architectures', () => {
    const [shared, foreign] = [layerOf(ENTRIES), layerOf(ENTRIES.slice(1))];
    const images = [
      { architecture: 'amd64', layers: [shared] },
      { architecture: 'arm64', layers: [foreign, shared] },
    ];
    const { digest, parts } = ociArchive(images, CONFIG, 'example.com/berth:1');
    const files = members(Buffer.concat(parts));
    for (const [name, content] of files) {
      if (name.startsWith('blobs/sha256/')) expect(hash(content)).toBe(name.slice('blobs/sha256/'.length));
    }
    const blob = (id: string) => JSON.parse(String(files.get(`blobs/sha256/${id.slice('sha256:'.length)}`)));
    const [entry, byDigest] = JSON.parse(String(files.get('index.json'))).manifests;
    expect(entry.digest).toBe(digest);
    expect(entry.annotations['io.containerd.image.name']).toBe('example.com/berth:1');
    expect(byDigest.digest).toBe(digest);
    expect(byDigest.annotations).toEqual({ 'io.containerd.image.name': `example.com/berth@${digest}` });
    const { manifests } = blob(entry.digest);
    expect(manifests.map((one: { platform: object }) => one.platform)).toEqual([
      { architecture: 'amd64', os: 'linux' },
      { architecture: 'arm64', os: 'linux' },
    ]);
    for (const [at, { layers }] of images.entries()) {
      const manifest = blob(manifests[at].digest);
      const config = blob(manifest.config.digest);
      expect(config).toMatchObject({ architecture: images[at]?.architecture, config: { User: '65532:65532' } });
      expect(config.rootfs.diff_ids).toEqual(layers.map(({ diffId }) => diffId));
      for (const layer of manifest.layers)
        expect(files.has(`blobs/sha256/${layer.digest.slice('sha256:'.length)}`)).toBe(true);
    }
    // The layout, its entries, the index, and for each image a manifest and a configuration; and two layers.
    expect(files.size).toBe(2 + 1 + 4 + 2);
  });
});
