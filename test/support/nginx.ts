import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '../../tools/lib/free-ports.ts';
import { findProgram } from '../../tools/lib/shell.ts';
import { debProgram } from './deb-program.ts';
import { waitFor } from './wait-for.ts';

/** Whether this machine has nginx, or apt to bring it. */
export async function hasNginx(): Promise<boolean> {
  const found = await Promise.all(['nginx', 'apt-get'].map((name) => findProgram(name)));
  return found.some((path) => path !== undefined);
}

export interface Nginx extends AsyncDisposable {
  /** One for each of `forwardedFor`. */
  ports: number[];
}

/**
 * An nginx in front of a port of the loopback.
 * @param forwardedFor what it writes into X-Forwarded-For: a port of its own for each
 */
export async function startNginx(upstream: number, forwardedFor: readonly string[]): Promise<Nginx> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-nginx-'));
  const ports = await freePorts(forwardedFor.length);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  const servers = forwardedFor.map(
    (value, index) => `server {
      listen 127.0.0.1:${ports[index]};
      location / { proxy_pass http://127.0.0.1:${upstream}; proxy_set_header X-Forwarded-For ${value}; }
    }`,
  );
  const config = `daemon off; pid ${folder}/pid; error_log stderr; events {}
    http { access_log off; ${temporary.join(' ')} ${servers.join('\n')} }`;
  await writeFile(join(folder, 'nginx.conf'), config);
  const program = await debProgram('nginx');
  const child = spawn(program, ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', 'stderr'], { stdio: 'inherit' });
  const exited = once(child, 'exit');
  await waitFor('nginx', async () => {
    if (child.exitCode !== null) throw new Error(`nginx ended by itself, with ${child.exitCode}.`);
    const socket = connect(ports[0] ?? 0, '127.0.0.1');
    const isThere = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    return isThere;
  });
  return {
    ports,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await exited;
      await rm(folder, { recursive: true });
    },
  };
}
