import { spawn } from 'node:child_process';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import { finished } from '../../support/ssh-client.ts';

const MAIN = fileURLToPath(new URL('../../../src/cli/berth.ts', import.meta.url));

let server: Server;
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

async function start(words: readonly string[], answer: RequestListener) {
  server = createServer(answer);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  const env = { ...process.env, BERTH_URL: `http://127.0.0.1:${port}`, BERTH_API_KEY: 'key' };
  return spawn(process.execPath, [MAIN, ...words], { env });
}

const OFFER = {
  id: 7,
  gpu_name: 'L4',
  gpu_count: 1,
  available: 1,
  price_per_hour: { on_demand: '0.50', interruptible: '0.20', currency: 'USD' },
};

it('Ctrl-C while an instance starts leaves it rented, and says so', async () => {
  const child = await start(['rent', '--yes'], (request, response) => {
    const { method, url } = request;
    if (method === 'GET') {
      response.write('retry: 2000\n\n', () => child.kill('SIGINT'));
      return;
    }
    const body = url?.endsWith('/search') ? { data: [OFFER] } : { id: 'i-1', warnings: [] };
    request.resume().on('end', () => response.end(JSON.stringify(body)));
  });
  const { code, stdout, stderr } = await finished(child);
  expect([code, stdout.toString()]).toEqual([130, '']);
  expect(stderr).toContain('berth: i-1 stays rented and goes on starting.\nberth show i-1 says how far it is');
});

it('a reader that leaves ends a followed log without a word', async () => {
  const line = 'event: line\nid: 1\ndata: {"id":"1","at":"t","text":"one"}\n\n';
  const child = await start(['logs', '-f', 'i-1'], (request, response) => {
    if (!request.url?.includes('/logs')) {
      response.end('{"id":"i-1"}');
      return;
    }
    response.write(line);
    // The next line meets a closed pipe.
    child.stdout.once('data', () => {
      child.stdout.destroy();
      response.write(line);
    });
    child.stdout.once('close', () => response.write(line));
  });
  let stderr = '';
  child.stderr.on('data', (part) => (stderr += String(part)));
  const code = await new Promise((resolve) => {
    child.once('exit', resolve);
  });
  expect([code, stderr]).toEqual([0, '']);
});
