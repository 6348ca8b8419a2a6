import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { mintToken } from '../../../src/resources/api-key.ts';
import { run } from '../../../tools/lib/shell.ts';
import { finished } from '../../support/ssh-client.ts';

const MAIN = fileURLToPath(new URL('../../../src/cli/berth.ts', import.meta.url));

let server: Server;
let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'berth-process-'));
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await rm(home, { recursive: true });
});

interface Given {
  /** Beside BERTH_URL and BERTH_API_KEY. */
  env?: Record<string, string>;
  /** Where the program finds this machine. */
  host?: string;
}

/** `URL` among the words is the address of the server. */
async function start(
  words: readonly string[],
  answer: RequestListener,
  { env: given = {}, host = '127.0.0.1' }: Given = {},
) {
  server = createServer(answer);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  const url = `http://${host}:${port}`;
  const env = { ...process.env, BERTH_URL: url, BERTH_API_KEY: 'key', ...given };
  return spawn(process.execPath, [MAIN, ...words.map((word) => (word === 'URL' ? url : word))], { env });
}

const OFFER = {
  id: 7,
  gpu_name: 'L4',
  gpu_count: 1,
  available: 1,
  available_by_preemption: 0,
  price_per_hour: { on_demand: '0.50', interruptible: '0.20', currency: 'USD' },
};

const isRental = ({ method, url }: { method?: string; url?: string }): boolean =>
  method === 'POST' && url?.endsWith('/instances') === true;

it('Ctrl-C while the server rents waits for its answer, and says what is rented', async () => {
  const child = await start(['rent', '--yes'], (request, response) => {
    if (!isRental(request)) {
      response.end(JSON.stringify({ data: [OFFER] }));
      return;
    }
    child.kill('SIGINT');
    child.stderr.on('data', (said) => {
      if (String(said).includes('answers in a moment'))
        response.end(JSON.stringify({ id: 'i-1', state: 'creating', warnings: [] }));
    });
  });
  const { code, stdout, stderr } = await finished(child);
  expect([code, stdout.toString()]).toEqual([130, '']);
  expect(stderr).toContain('i-1 stays rented and keeps starting.\nberth show i-1 says how far it is, and berth rm i-1');
});

it('Ctrl-C twice while the server rents waits for nothing', async () => {
  const child = await start(['rent', '--yes'], (request, response) => {
    if (isRental(request)) child.kill('SIGINT');
    else response.end(JSON.stringify({ data: [OFFER] }));
  });
  let isAsked = false;
  child.stderr.on('data', (said) => {
    if (isAsked || !String(said).includes('answers in a moment')) return;
    isAsked = true;
    child.kill('SIGINT');
  });
  const { code, stderr } = await finished(child);
  expect([code, stderr]).toEqual([130, expect.stringContaining('Something may be rented: berth ls lists it.')]);
});

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
  expect(stderr).toContain('berth: i-1 stays rented and keeps starting.\nberth show i-1 says how far it is');
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

it.each([
  ['in the place of a command', (token: string) => [token]],
  ['as an operand', (token: string) => ['show', token]],
  ['after the address', (token: string) => ['login', 'http://127.0.0.1:1', token]],
  ['as an option', (token: string) => ['login', 'http://127.0.0.1:1', `--key=${token}`]],
  ['as the address', (token: string) => ['login', `ftp://${token}`]],
])('a token that somebody types %s is not said again', async (_where, words) => {
  const { token } = mintToken();
  const refuse: RequestListener = (request, response) => {
    const isList = request.url?.endsWith('/instances');
    response.writeHead(isList ? 200 : 404, { 'content-type': 'application/json' });
    // As a proxy that quotes what it was asked for.
    response.end(JSON.stringify(isList ? { data: [] } : { error: { code: 'x', message: request.url } }));
  };
  const child = await start(words(token), refuse, { env: { BERTH_API_KEY: token } });
  const { code, stdout, stderr } = await finished(child);
  expect(code).toBeGreaterThan(0);
  expect(stderr).toMatch(/^berth: .+/);
  expect(`${stdout.toString()}${stderr}`).not.toContain(token);
});

it('ssh is given no API key: neither in its words nor in its environment', async () => {
  await writeFile(join(home, 'ssh'), '#!/bin/sh\necho "$*"\nenv\n', { mode: 0o755 });
  const { token } = mintToken();
  const ssh = { host: '127.0.0.1', port: 22, user: 'i-1.team', command: '', known_hosts: '127.0.0.1 ssh-ed25519 AAAA' };
  const record = { id: 'i-1', state: 'running', simulated: false, ssh };
  const env = { BERTH_API_KEY: token, HOME: home, PATH: `${home}${delimiter}${process.env['PATH']}` };
  const child = await start(['ssh', 'i-1', 'true'], (_request, response) => response.end(JSON.stringify(record)), {
    env,
  });
  const { code, stdout } = await finished(child);
  expect([code, stdout.toString()]).toEqual([0, expect.stringContaining('-- i-1.team@127.0.0.1 true\n')]);
  expect(stdout.toString()).toContain(`HOME=${home}`);
  expect(stdout.toString()).not.toContain(token);
});

it.each([
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const)('%s ends ssh too: it would keep the instance in use', async (signal, status) => {
  await writeFile(join(home, 'ssh'), '#!/bin/sh\necho $$\nexec sleep 60\n', { mode: 0o755 });
  const ssh = { host: '127.0.0.1', port: 22, user: 'i-1.team', command: '', known_hosts: null };
  const record = { id: 'i-1', state: 'running', simulated: false, ssh };
  const env = { HOME: home, PATH: `${home}${delimiter}${process.env['PATH']}` };
  const answer: RequestListener = (_request, response) => response.end(JSON.stringify(record));
  const child = await start(['ssh', 'i-1', 'true'], answer, { env });
  child.stdout.once('data', () => child.kill(signal));
  const { code, stdout } = await finished(child);
  expect([code, stdout.toString()]).toEqual([status, expect.stringMatching(/^\d+\n$/)]);
});

it.each([
  [['echo', 'x'], 'none'],
  [[], 'tmux new -A -s main'],
])('a RemoteCommand of the user stands back for words (%j)', async (words, expected) => {
  const config = join(home, 'config');
  await writeFile(config, 'Host *\n  RemoteCommand tmux new -A -s main\n');
  const program = (await run('sh', ['-c', 'command -v ssh'])).stdout.trim();
  await writeFile(join(home, 'ssh'), `#!/bin/sh\nexec ${program} -F '${config}' -G "$@"\n`, { mode: 0o755 });
  const ssh = { host: '127.0.0.1', port: 22, user: 'i-1.team', command: '', known_hosts: null };
  const record = { id: 'i-1', state: 'running', simulated: false, ssh };
  const env = { HOME: home, PATH: `${home}${delimiter}${process.env['PATH']}` };
  const answer: RequestListener = (_request, response) => response.end(JSON.stringify(record));
  const { code, stdout, stderr } = await finished(await start(['ssh', 'i-1', ...words], answer, { env }));
  expect([code, stderr]).toEqual([0, '']);
  expect(/^remotecommand (.*)$/m.exec(stdout.toString())?.[1] ?? 'none').toBe(expected);
});

it('what the system of the machine refuses is no fault of berth', async () => {
  const file = join(home, 'file');
  await writeFile(file, '');
  const env = { HOME: file, XDG_CONFIG_HOME: '' };
  const child = await start(['login', 'URL'], (_request, response) => response.end('{}'), { env });
  const { code, stderr } = await finished(child, 'key');
  expect([code, stderr]).toEqual([
    1,
    `berth: not a directory, mkdir '${file}/.config/berth'.\nRepair that on this machine, and run the command again.\n`,
  ]);
});

it('what is piped has no colour and is as wide as it is', async () => {
  const name = 'NVIDIA-'.padEnd(100, 'X');
  const offer = { ...OFFER, gpu_name: name, gpu_memory_mb: 1, isolation: 'whole', disk_gb_max: 1, memory_mb: 1 };
  const env = { COLUMNS: '40', FORCE_COLOR: '1' };
  const answer: RequestListener = (_request, response) => response.end(JSON.stringify({ data: [offer] }));
  const { code, stdout } = await finished(await start(['offers'], answer, { env }));
  expect([code, stdout.toString()]).toEqual([0, expect.stringContaining(`1 x ${name}  `)]);
  expect(stdout.toString()).not.toContain('\u001b');
});

// Linux takes 0.0.0.0 for this machine, and it is no address of the loopback.
it.each<{ words: string[]; env: Record<string, string>; heard: number }>([
  { words: ['ls'], env: {}, heard: 0 },
  { words: ['login', 'URL'], env: { BERTH_API_KEY: '' }, heard: 0 },
  { words: ['ls'], env: { BERTH_PLAIN_HTTP: 'true' }, heard: 1 },
  { words: ['login', '--plain-http', 'URL'], env: {}, heard: 1 },
])('$words with $env sends a key to another machine in the clear $heard times', async ({ words, env, heard }) => {
  let requests = 0;
  const answer: RequestListener = (_request, response) => {
    requests += 1;
    response.end('{"data":[]}');
  };
  const child = await start(words, answer, { host: '0.0.0.0', env: { ...env, HOME: home, XDG_CONFIG_HOME: '' } });
  child.stdin.end('berth_secret\n');
  const { code, stderr } = await finished(child);
  expect([code, requests]).toEqual([heard === 1 ? 0 : 2, heard]);
  if (heard === 0)
    expect(stderr).toContain('is not encrypted: others on the network could read the key. Nothing was sent.');
});
