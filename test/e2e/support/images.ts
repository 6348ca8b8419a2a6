import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { busyboxLayer, imageArchive, type ImageSpec } from '../../../tools/lib/images/image.ts';
import { findProgram } from '../../../tools/lib/shell.ts';
import { llamaImage } from '../../support/llama/image.ts';

/** The image of instances: busybox as root, as most images are. */
export const INSTANCE_IMAGE = 'localhost/berth-e2e-instance:1';
/** The same with a user that is not root, which a namespace with Pod Security restricted demands. */
export const NON_ROOT_IMAGE = 'localhost/berth-e2e-nonroot:1';
/** llama.cpp's HTTP server with a tiny model on port 8000. */
export const MODEL_IMAGE = 'localhost/berth-e2e-model:1';

async function save(spec: ImageSpec, path: string): Promise<string> {
  await pipeline(await imageArchive(spec), createWriteStream(path));
  return path;
}

/** Writes the archives of the test images, and returns their paths. */
export async function makeTestImages(folder: string): Promise<string[]> {
  const busybox = await findProgram('busybox', ['/usr/bin', '/bin']);
  if (busybox === undefined) throw new Error('The end-to-end test needs busybox-static.');
  const layer = await busyboxLayer(busybox);
  return [
    await save({ reference: INSTANCE_IMAGE, layer, cmd: ['/bin/sh'] }, join(folder, 'instance.tar')),
    await save({ reference: NON_ROOT_IMAGE, layer, cmd: ['/bin/sh'], user: '1000:1000' }, join(folder, 'nonroot.tar')),
    await save(await llamaImage(MODEL_IMAGE), join(folder, 'model.tar')),
  ];
}
