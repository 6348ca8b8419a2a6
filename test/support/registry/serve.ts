import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, fetch } from 'undici';
import { freePorts } from '../../../tools/lib/free-ports.ts';
import { debProgram } from '../deb-program.ts';
import { waitFor } from '../wait-for.ts';

export const ANY_CERTIFICATE = new Agent({ connect: { rejectUnauthorized: false } });

export interface RegistryOptions {
  /** Where the configuration is written. */
  folder: string;
  /** Of the Distribution registry, version 0.1. */
  config: object;
  /** The words before its command. */
  before?: readonly string[];
  /** Where it is, and the status that says so. */
  answers: { base: string; status: number };
}

/** Runs the Distribution registry. Resolves when it answers. */
export async function serveRegistry({
  folder,
  config,
  before = [],
  answers,
}: RegistryOptions): Promise<AsyncDisposable> {
  const path = join(folder, 'config.yml');
  await writeFile(path, JSON.stringify(config));
  const [program, ...args] = [...before, await debProgram('docker-registry'), 'serve', path];
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const exited = once(child, 'exit');
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (log = (log + text).slice(-4000)));
  await waitFor('the registry', async () => {
    if (child.exitCode !== null) throw new Error(`The registry ended by itself: ${log}`);
    return fetch(`${answers.base}/v2/`, { dispatcher: ANY_CERTIFICATE }).then(
      ({ status }) => status === answers.status,
      () => false,
    );
  });
  return {
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await exited;
    },
  };
}

/** A registry for everybody, on the loopback of this machine, without TLS. `server` is its host and port. */
export async function openRegistry(): Promise<AsyncDisposable & { server: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-registry-'));
  const [port = 0] = await freePorts(1);
  const server = `127.0.0.1:${port}`;
  const config = {
    version: '0.1',
    log: { level: 'warn' },
    storage: { filesystem: { rootdirectory: join(folder, 'data') } },
    http: { addr: server, secret: 'of this test' },
  };
  const registry = await serveRegistry({ folder, config, answers: { base: `http://${server}`, status: 200 } });
  return {
    server,
    async [Symbol.asyncDispose]() {
      await registry[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
