import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { cacheFolder } from '../../../src/local/paths.ts';

const HERE = import.meta.dirname;
const REQUIREMENTS = join(HERE, 'requirements.txt');
const SCRIPT = join(HERE, 'serve.py');

export interface LlamaServer {
  port: number;
  /** The model name it serves. */
  model: string;
  close: () => Promise<void>;
}

/** Starts llama.cpp's HTTP server on a local port, with a tiny model; installs it on the first call of a machine. */
export async function startLlama(): Promise<LlamaServer> {
  const folder = await installLlama();
  const child = spawn(join(folder, 'bin/python'), [SCRIPT, modelFile(folder)], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const exited = once(child, 'exit');
  const lines = createInterface(child.stdout);
  const first = await Promise.race([once(lines, 'line'), exited]);
  if (typeof first[0] !== 'string') throw new Error(`llama.cpp's server did not start: exit code ${String(first[0])}`);
  const { address } = JSON.parse(first[0]) as { address: string };
  return {
    port: Number(new URL(address).port),
    model: 'tiny-random',
    close: async () => {
      child.stdin.end();
      await exited;
    },
  };
}

/** Where the first start writes the model. */
export function modelFile(folder: string): string {
  return join(folder, `tiny-${hashOf(SCRIPT)}.gguf`);
}

/** A virtual environment for exactly these requirements, in the cache of the machine. */
export async function installLlama(): Promise<string> {
  const folder = join(cacheFolder(process.env), `llama-${hashOf(REQUIREMENTS)}`);
  if (existsSync(folder)) return folder;
  process.stderr.write(`Installing llama.cpp's server (about 60 MB from PyPI) into ${folder}\n`);
  const part = `${folder}.part`;
  rmSync(part, { recursive: true, force: true });
  mkdirSync(part, { recursive: true });
  const run = promisify(execFile);
  await run('python3', ['-m', 'venv', part]);
  await run(join(part, 'bin/python'), [
    '-m',
    'pip',
    'install',
    '--quiet',
    '--no-input',
    '--disable-pip-version-check',
    '-r',
    REQUIREMENTS,
  ]);
  // A virtual environment finds itself by its place: python works after the move, scripts with a fixed path are not used.
  renameSync(part, folder);
  return folder;
}

function hashOf(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex').slice(0, 12);
}
