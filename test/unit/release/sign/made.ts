import { generateKeyPairSync } from 'node:crypto';
import { filesInTar } from '../../../../src/lib/tar.ts';
import { layerOf, ociArchive } from '../../../../tools/release/image/oci.ts';
import { statementAbout } from '../../../../tools/release/sign/dsse.ts';
import { keyPair, type KeyPair } from '../../../../tools/release/sign/keys.ts';
import { layoutOf, type Layout } from '../../../../tools/release/sign/layout.ts';
import { signedLayout } from '../../../../tools/release/sign/sign.ts';

export const NAME = 'example.com/berth';

export function newKey(): KeyPair {
  return keyPair(generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).privateKey);
}

/** Two small images that have a file with `text`, under one index, signed and attested. */
export function signedImage(text: string, key: KeyPair, name = NAME): Layout {
  const layers = [layerOf([{ name: 'file', type: 'file', content: Buffer.from(text) }])];
  const images = ['amd64', 'arm64'].map((architecture) => ({ architecture, layers }));
  const config = { user: '1', entrypoint: ['/a'], env: [], workingDir: '/', labels: {} };
  const { digest, parts } = ociArchive(images, config, `${name}:1`);
  const subject = { name, digest };
  const statements = [statementAbout(subject, 'https://example.com/says', { text })];
  return signedLayout(layoutOf(filesInTar(Buffer.concat(parts))), subject, statements, key.privateKey);
}
