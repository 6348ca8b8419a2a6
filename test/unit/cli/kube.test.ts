import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { appendFile, chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { splitGlobal } from '../../../src/cli/kube/kube-session.ts';
import { finished } from '../../support/ssh-client.ts';

const MAIN = fileURLToPath(new URL('../../../src/cli/kubectl-berth.ts', import.meta.url));

let folder: string;
let server: Server;
let tokens: (string | undefined)[];
let running: ChildProcess | undefined;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-kubectl-'));
  tokens = [];
  server = createServer((request, response) => {
    tokens.push(request.headers.authorization);
    // As a replica that has not seen the new key yet.
    const known = tokens.length > 1;
    response.writeHead(known ? 200 : 401, { 'content-type': 'application/json' });
    response.end(known ? '{"object":"list","data":[]}' : '{"error":{"message":"Invalid API key."}}');
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  server.on('connection', () => {
    // As kubectl says of each.
    void appendFile(join(folder, 'handled'), 'Handling connection for 1\n');
  });
  await promisify(execFile)('mkfifo', [join(folder, 'handled')]);
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await rm(folder, { recursive: true });
});

/** Puts a kubectl on the PATH that writes down what it is given, and runs the plugin. `first` is a line of that kubectl. */
async function plugin(services: object, words: readonly string[], { first = '', env: more = {} } = {}) {
  const { port } = server.address() as AddressInfo;
  const script = [
    '#!/bin/sh',
    `echo "$*" >>'${folder}/calls'`,
    first,
    'case "$*" in',
    `*'get services'*) echo '${JSON.stringify(services)}' ;;`,
    `*port-forward*) echo $$ >'${folder}/forward'; echo 'Forwarding from 127.0.0.1:${port} -> 8080'; exec cat <>'${folder}/handled' ;;`,
    `*create*) cat >'${folder}/key.json'; echo apikey.berth.dev/kubectl-berth-x ;;`,
    'esac',
  ];
  await writeFile(join(folder, 'kubectl'), script.join('\n'));
  await chmod(join(folder, 'kubectl'), 0o755);
  const PATH = `${folder}${delimiter}${process.env['PATH']}`;
  const { BERTH_URL: _url, BERTH_API_KEY: _key, BERTH_NAMESPACE: _home, ...env } = process.env;
  const child = spawn(process.execPath, [MAIN, ...words], { env: { ...env, PATH, HOME: folder, ...more } });
  running = child;
  const result = await finished(child);
  const calls = await readFile(join(folder, 'calls'), 'utf8').catch(() => '');
  return { ...result, calls: calls.trim().split('\n') };
}

const SERVICE = {
  metadata: { name: 'berth-api', namespace: 'berth-system' },
  spec: { ports: [{ name: 'http', port: 80, targetPort: 'http' }] },
};

it('kubectl berth finds the server, makes a key of its own, and takes both away again', async () => {
  const { code, stderr, calls } = await plugin({ items: [SERVICE] }, ['-n', 'team', 'ls']);
  expect([code, stderr]).toEqual([0, 'You have no instances. berth rent rents one.\n']);
  expect(calls).toEqual([
    expect.stringMatching(/^-n team get services --namespace=berth-system -l app.kubernetes.io\/name=berth,/),
    '-n team port-forward -n berth-system service/berth-api :80',
    '-n team create -f - -o name',
    '-n team delete apikey.berth.dev/kubectl-berth-x --wait=false',
  ]);
  const key = JSON.parse(await readFile(join(folder, 'key.json'), 'utf8')) as { spec: { expiresAt: string } };
  expect(JSON.stringify(key)).not.toContain(String(tokens[0]).slice('Bearer '.length));
  expect(Date.parse(key.spec.expiresAt) - Date.now()).toBeLessThan(3_600_001);
  const forward = Number(await readFile(join(folder, 'forward'), 'utf8'));
  expect(() => process.kill(forward, 0)).toThrow('ESRCH');
});

it('options for kubectl stand before the command', () => {
  expect(splitGlobal(['-n', 'team', '--context=x', 'logs', '-n', '5'])).toEqual({
    flags: ['-n', 'team', '--context=x'],
    words: ['logs', '-n', '5'],
  });
});

it('Ctrl-C takes the key and the forward away too', async () => {
  server.removeAllListeners('request');
  // A log that says nothing: the command waits.
  server.on('request', (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    if (tokens.push('') < 3) response.end('{"id":"i-1"}');
    else response.write(':\n\n', () => running?.kill('SIGINT'));
  });
  const { code, calls } = await plugin({ items: [SERVICE] }, ['logs', '-f', 'i-1']);
  expect([code, calls.at(-1)]).toEqual([130, 'delete apikey.berth.dev/kubectl-berth-x --wait=false']);
  const forward = Number(await readFile(join(folder, 'forward'), 'utf8'));
  expect(() => process.kill(forward, 0)).toThrow('ESRCH');
});

it('a forward that ends, as with the pod of a replica, begins again, and a followed log goes on at the same port', async () => {
  server.removeAllListeners('request');
  const line = (n: number): string => `event: line\nid: ${n}\ndata: {"id":"${n}","at":"t","text":"line ${n}"}\n\n`;
  let follows = 0;
  server.on('request', (request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    if (!request.url?.includes('/logs')) {
      response.end('{"id":"i-1"}');
      return;
    }
    follows += 1;
    if (follows > 1) {
      response.end(`${line(2)}event: end\ndata: {"reason":"Stopped"}\n\n`);
      return;
    }
    response.write(line(1), () => {
      const breaks = async (): Promise<void> => {
        process.kill(Number(await readFile(join(folder, 'forward'), 'utf8')));
        response.destroy();
      };
      void breaks();
    });
  });
  const { code, stdout, calls } = await plugin({ items: [SERVICE] }, ['logs', '-f', 'i-1']);
  expect([code, stdout.toString()]).toEqual([0, 'line 1\nline 2\n']);
  const forwards = calls.filter((call) => call.startsWith('port-forward'));
  const to = 'port-forward -n berth-system service/berth-api';
  expect(forwards).toEqual([`${to} :80`, `${to} :80`]);
  const forward = Number(await readFile(join(folder, 'forward'), 'utf8'));
  expect(() => process.kill(forward, 0)).toThrow('ESRCH');
});

it('without the program kubectl, or without the right to make a key, it says what to do', async () => {
  const child = spawn(process.execPath, [MAIN, 'ls'], { env: { PATH: folder, HOME: folder } });
  const { code, stderr } = await finished(child);
  expect([code, stderr]).toEqual([
    1,
    'berth: This machine has no program kubectl.\nInstall it, or use an API key: berth login URL\n',
  ]);
  await writeFile(join(folder, 'kubectl'), '#!/bin/sh\necho "apikeys.berth.dev is forbidden" >&2\nexit 1\n');
  await chmod(join(folder, 'kubectl'), 0o755);
  const env = { PATH: `${folder}${delimiter}${process.env['PATH']}`, HOME: folder, BERTH_URL: 'http://127.0.0.1:1' };
  const refused = await finished(spawn(process.execPath, [MAIN, 'ls'], { env }));
  expect([refused.code, refused.stderr]).toEqual([
    1,
    expect.stringMatching(/forbidden\n.*create and delete of apikeys/),
  ]);
});

it('a Service with the labels of Berth in the namespace of a tenant never gets the key', async () => {
  const planted = JSON.stringify({ items: [{ ...SERVICE, metadata: { name: 'berth-api', namespace: 'tenant' } }] });
  const everywhere = `case "$*" in *--all-namespaces*|*'--namespace=tenant'*) echo '${planted}'; exit ;; esac`;
  const { code, stderr, calls } = await plugin({ items: [] }, ['-n', 'team', 'ls'], { first: everywhere });
  expect([code, stderr]).toEqual([
    1,
    'berth: The namespace berth-system has no Service of Berth.\nIf Berth is in another namespace than berth-system, set BERTH_NAMESPACE. Or set BERTH_URL to the address of the server; your operator knows both.\n',
  ]);
  expect(calls).toHaveLength(1);
});

it('BERTH_NAMESPACE names where else Berth is', async () => {
  const service = { ...SERVICE, metadata: { name: 'gpus-api', namespace: 'gpus' } };
  const { code, calls } = await plugin({ items: [service] }, ['ls'], { env: { BERTH_NAMESPACE: 'gpus' } });
  expect(code).toBe(0);
  expect(calls.slice(0, 2)).toEqual([
    expect.stringMatching(/^get services --namespace=gpus -l /),
    'port-forward -n gpus service/gpus-api :80',
  ]);
});

it('where proxies have a Service of their own, the other one is taken', async () => {
  const metadata = { name: 'berth-ingress', namespace: 'berth-system' };
  const ofProxies = { metadata, spec: { ports: [{ name: 'http', port: 80, targetPort: 'ingress' }] } };
  const { code, calls } = await plugin({ items: [ofProxies, SERVICE] }, ['ls']);
  expect([code, calls[1]]).toEqual([0, 'port-forward -n berth-system service/berth-api :80']);
  const only = await plugin({ items: [ofProxies] }, ['ls']);
  expect([only.code, only.stderr]).toEqual([1, expect.stringContaining('has no Service of Berth')]);
});
