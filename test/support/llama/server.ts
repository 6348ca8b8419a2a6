import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { hashOf, pythonWith } from '../python.ts';

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

/** The folder of a virtual environment with llama.cpp's server, about 60 MB from PyPI on the first call. */
export function installLlama(): Promise<string> {
  return pythonWith('llama', REQUIREMENTS);
}
