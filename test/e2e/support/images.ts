import { createWriteStream } from 'node:fs';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { busyboxLayer, imageArchive, type ImageSpec } from '../../../src/local/image.ts';
import { findProgram, run } from '../../../src/local/shell.ts';
import { installLlama, modelFile, startLlama } from '../../support/llama/server.ts';

/** What instances run: busybox as root, the way most images come. */
export const INSTANCE_IMAGE = 'localhost/berth-e2e-instance:1';
/** The same with a user that is not root, which a namespace with Pod Security restricted demands. */
export const NON_ROOT_IMAGE = 'localhost/berth-e2e-nonroot:1';
/** llama.cpp's HTTP server with a tiny model on port 8000. */
export const MODEL_IMAGE = 'localhost/berth-e2e-model:1';

const SERVE = `
import sys, time, xllamacpp
p = xllamacpp.CommonParams()
p.model.path = sys.argv[1]
p.model_alias = {"tiny-random"}
p.hostnames = ["0.0.0.0"]
p.port = 8000
p.n_ctx = 4096
p.cpuparams.n_threads = 1
p.warmup = False
p.use_jinja = True
server = xllamacpp.Server(p)
print(server.listening_address, flush=True)
time.sleep(1 << 30)
`;

async function must(command: string, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await run(command, args);
  if (code !== 0) throw new Error(`${command} failed: ${stderr.slice(-1000)}`);
  return stdout;
}

/** Shared libraries that programs are linked to, by ldd. */
async function librariesOf(...programs: string[]): Promise<string[]> {
  const lists = await Promise.all(programs.map((program) => must('ldd', program)));
  return lists.flatMap((text) => [...text.matchAll(/(\/\S+) \(0x/g)].map(([, path = '']) => path));
}

/** The machine's Python with llama.cpp's module and a model: one layer, under /opt wherever they are on this machine. */
async function modelImage(folder: string): Promise<ImageSpec> {
  const venv = await installLlama();
  // The first start writes the model.
  await (await startLlama()).close();
  const query =
    'import os, sys, sysconfig, xllamacpp; ' +
    'print(os.path.realpath(sys.executable), sysconfig.get_path("stdlib"), xllamacpp.__path__[0], sep="\\n")';
  const [python = '', stdlib = '', module = ''] = (await must(join(venv, 'bin/python'), '-c', query))
    .trim()
    .split('\n');
  const libraries = await librariesOf(python, join(module, 'xllamacpp.abi3.so'));
  const moved: Record<string, string> = {
    [python]: 'opt/bin/python3',
    [stdlib]: `opt/lib/${basename(stdlib)}`,
    [module]: 'opt/site/xllamacpp',
    [modelFile(venv)]: 'opt/model.gguf',
  };
  // A Python of one's own has its library beside it, where the user of the image may not look.
  for (const path of libraries) if (!/^\/(usr\/)?lib/.test(path)) moved[path] = `opt/lib/${basename(path)}`;
  const moves = Object.entries(moved).map(([from, to]) => `--transform=s|^${from.slice(1)}|${to}|`);
  const paths = [...new Set([...Object.keys(moved), ...libraries])].map((path) => path.slice(1));
  const tar = join(folder, 'model-layer.tar');
  const skip = ['__pycache__', 'test', `${stdlib.slice(1)}/site-packages`].map((name) => `--exclude=${name}`);
  await must('tar', '--directory=/', '--dereference', ...skip, ...moves, `--file=${tar}`, '--create', ...paths);
  return {
    reference: MODEL_IMAGE,
    layer: { tar },
    env: ['PYTHONHOME=/opt', 'PYTHONPATH=/opt/site', 'PYTHONDONTWRITEBYTECODE=1', 'LD_LIBRARY_PATH=/opt/lib'],
    entrypoint: ['/opt/bin/python3', '-c', SERVE, '/opt/model.gguf'],
    user: '65534:65534',
  };
}

async function save(spec: ImageSpec, path: string): Promise<string> {
  await pipeline(await imageArchive(spec), createWriteStream(path));
  return path;
}

/** Writes the archives of the images that the tests need besides the released one, and returns their paths. */
export async function makeTestImages(folder: string): Promise<string[]> {
  const busybox = await findProgram('busybox', ['/usr/bin', '/bin']);
  if (busybox === undefined) throw new Error('The end-to-end test needs busybox-static.');
  const layer = await busyboxLayer(busybox);
  return [
    await save({ reference: INSTANCE_IMAGE, layer, cmd: ['/bin/sh'] }, join(folder, 'instance.tar')),
    await save({ reference: NON_ROOT_IMAGE, layer, cmd: ['/bin/sh'], user: '1000:1000' }, join(folder, 'nonroot.tar')),
    await save(await modelImage(folder), join(folder, 'model.tar')),
  ];
}
