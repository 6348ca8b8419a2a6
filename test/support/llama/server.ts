import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { run } from '../../../tools/lib/shell.ts';
import { hashOf, pythonWith } from '../python.ts';

const HERE = import.meta.dirname;
export const SERVE = join(HERE, 'serve.py');
const WRITE_MODEL = join(HERE, 'write_model.py');

/** The model name that the server gives. */
export const LLAMA_MODEL = 'tiny-random';

export interface LlamaServer {
  port: number;
  /** Ends it at once, in the middle of whatever it does. */
  kill: () => Promise<void>;
  close: () => Promise<void>;
}

export interface LlamaFiles {
  /** A virtual environment with llama.cpp's server. */
  venv: string;
  /** A tiny model. */
  model: string;
}

export interface LlamaOptions {
  /** Width and layers of the model; by default it is as small as can be. */
  size?: readonly [width: number, layers: number];
  /** It writes lines of these large letters without an end, in place of the start of a tool call. */
  letters?: string;
  /** Of llama.cpp, by the names of its `common_params`, beside those of serve.py. */
  parameters?: Readonly<Record<string, unknown>>;
}

/** Installs llama.cpp's server, about 60 MB from PyPI, and writes the model, once per machine. */
export async function prepareLlama({ size = [64, 2], letters = '' }: LlamaOptions = {}): Promise<LlamaFiles> {
  const venv = await pythonWith('llama', join(HERE, 'requirements.txt'));
  const model = join(venv, `${size.join('x')}${letters}-${hashOf(WRITE_MODEL)}.gguf`);
  if (existsSync(model)) return { venv, model };
  const { code, stderr } = await run(join(venv, 'bin/python'), [WRITE_MODEL, model, ...size.map(String), letters]);
  if (code !== 0) throw new Error(`The model could not be written: ${stderr.slice(-1000)}`);
  return { venv, model };
}

/** Starts llama.cpp's HTTP server on a local port. */
export async function startLlama({ parameters = {}, ...options }: LlamaOptions = {}): Promise<LlamaServer> {
  const { venv, model } = await prepareLlama(options);
  const env = { ...process.env, LLAMA_PARAMETERS: JSON.stringify(parameters) };
  const child = spawn(join(venv, 'bin/python'), [SERVE, model], { env, stdio: ['pipe', 'pipe', 'ignore'] });
  const exited = once(child, 'exit');
  const lines = createInterface(child.stdout);
  const first = await Promise.race([once(lines, 'line'), exited]);
  if (typeof first[0] !== 'string') throw new Error(`llama.cpp's server did not start: exit code ${String(first[0])}`);
  const { address } = JSON.parse(first[0]) as { address: string };
  return {
    port: Number(new URL(address).port),
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
    },
    close: async () => {
      child.stdin.end();
      await exited;
    },
  };
}
