import { createHash } from 'node:crypto';
import { existsSync, renameSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { ImageSpec } from '../../../tools/lib/images/image.ts';
import { run } from '../../../tools/lib/shell.ts';
import { hashOf } from '../python.ts';
import { prepareLlama, SERVE } from './server.ts';

/** Where the server of the image listens. */
export const LLAMA_PORT = 8000;

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

/** The machine's Python with llama.cpp's module and a model, under /opt wherever they are on this machine. */
async function writeLayer(tar: string, venv: string, model: string): Promise<void> {
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
    [model]: 'opt/model.gguf',
    [SERVE]: 'opt/serve.py',
  };
  // A Python of one's own has its library beside it, where the user of the image may not look.
  for (const path of libraries) if (!/^\/(usr\/)?lib/.test(path)) moved[path] = `opt/lib/${basename(path)}`;
  const moves = Object.entries(moved).map(([from, to]) => `--transform=s|^${from.slice(1)}|${to}|`);
  const paths = [...new Set([...Object.keys(moved), ...libraries])].map((path) => path.slice(1));
  const unused = ['test', 'site-packages', 'ensurepip', 'idlelib', 'config-*'].map(
    (name) => `${stdlib.slice(1)}/${name}`,
  );
  const skip = ['--exclude=__pycache__', '--anchored', ...unused.map((path) => `--exclude=${path}`)];
  // Everybody may read it, whatever the checkout's umask was.
  const part = `${tar}.${process.pid}`;
  await must(
    'tar',
    '--directory=/',
    '--dereference',
    '--mode=a+rX',
    ...skip,
    ...moves,
    `--file=${part}`,
    '--create',
    ...paths,
  );
  renameSync(part, tar);
}

/** An image of one layer, made once per machine: llama.cpp's HTTP server with a tiny model, as a user without rights. */
export async function llamaImage(reference: string): Promise<ImageSpec> {
  const { venv, model } = await prepareLlama();
  const state = createHash('sha256').update(`${basename(model)} ${hashOf(SERVE)} ${hashOf(import.meta.filename)}`);
  const tar = join(venv, `layer-${state.digest('hex').slice(0, 12)}.tar`);
  if (!existsSync(tar)) await writeLayer(tar, venv, model);
  return {
    reference,
    layer: { tar },
    env: ['PYTHONHOME=/opt', 'PYTHONPATH=/opt/site', 'PYTHONDONTWRITEBYTECODE=1', 'LD_LIBRARY_PATH=/opt/lib'],
    entrypoint: ['/opt/bin/python3', '/opt/serve.py', '/opt/model.gguf', String(LLAMA_PORT)],
    user: '65534:65534',
  };
}
