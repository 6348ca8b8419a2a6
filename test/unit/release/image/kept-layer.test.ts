import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { TarEntry } from '../../../../src/lib/tar.ts';
import { keptLayer } from '../../../../tools/release/image/kept-layer.ts';
import { layerOf } from '../../../../tools/release/image/oci.ts';

const layer = (text: string): TarEntry[] => [{ name: 'file', type: 'file', content: Buffer.from(text) }];
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-layers-'));
});
afterEach(() => rm(folder, { recursive: true }));

/** Makes the layer, and puts other bytes in the place of those that were kept. */
async function replaceKept(text: string, by: (archive: Buffer) => Buffer): Promise<Buffer> {
  const { compressed } = await keptLayer(layer(text), folder);
  const [file = ''] = await readdir(folder);
  const replaced = by(gunzipSync(compressed));
  await writeFile(join(folder, file), replaced);
  return replaced;
}

it('makes the layer that it does not have', async () => {
  expect(await keptLayer(layer('a'), folder)).toEqual(layerOf(layer('a')));
});

it('compresses no layer again that it has', async () => {
  const kept = await replaceKept('a', (archive) => gzipSync(archive, { level: 1 }));
  expect(await keptLayer(layer('a'), folder)).toEqual({ ...layerOf(layer('a')), compressed: kept });
});

it.each([
  ['another archive', () => gzipSync('other')],
  ['the half of one', (archive: Buffer) => gzipSync(archive).subarray(0, 40)],
])('takes no file that has become %s', async (_, by) => {
  await replaceKept('a', by);
  expect(await keptLayer(layer('a'), folder)).toEqual(layerOf(layer('a')));
  expect(await keptLayer(layer('a'), folder)).toEqual(layerOf(layer('a')));
});

it('keeps the newest layer only', async () => {
  await keptLayer(layer('a'), folder);
  await keptLayer(layer('b'), folder);
  expect(await readdir(folder)).toEqual([`${layerOf(layer('b')).diffId.replace(':', '-')}.tar.gz`]);
});
