import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { mintToken } from '../../../src/resources/api-key.ts';
import { programSession } from '../../support/ssh-terminal.ts';
import { waitFor } from '../../support/wait-for.ts';

// What opens other programs: a browser and editors, of which stand-ins write down what they are given.

const MAIN = fileURLToPath(new URL('../../../src/cli/berth.ts', import.meta.url));

const INSTANCE = {
  id: 'i-abc123',
  name: 'train',
  state: 'running',
  simulated: false,
  ssh: { host: 'gpu.example.com', port: 22, user: 'i-abc123', command: '', known_hosts: null },
};
/** What the server hands out as a link. */
let link: string;
let server: Server;
let home: string;
let token: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'berth-editors-'));
  ({ token } = mintToken());
  link = 'https://8000-u.example.com/?t=1&x=`true`';
  server = createServer((request, response) => {
    const isList = request.url?.endsWith('/instances');
    const record = request.url?.endsWith('/links') ? { port: 8000, url: link } : INSTANCE;
    response.end(JSON.stringify(isList ? { data: [INSTANCE] } : record));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  await mkdir(join(home, 'bin'));
  for (const name of ['xdg-open', 'code']) await stand(name, '');
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await rm(home, { recursive: true });
});

/** Puts a program on the PATH that writes down its words and the key, if it has any. */
async function stand(name: string, end: string): Promise<void> {
  const lines = ['#!/bin/sh', `echo "${name} $* $BERTH_API_KEY" >>'${home}/ran'`, end];
  await writeFile(join(home, 'bin', name), `${lines.join('\n')}\n`);
  await chmod(join(home, 'bin', name), 0o755);
}

function start(...words: string[]) {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const PATH = [join(home, 'bin'), process.env['PATH']].join(delimiter);
  const env = { ...process.env, BERTH_URL: url, BERTH_API_KEY: token, HOME: home, XDG_CONFIG_HOME: '', PATH };
  return programSession([process.execPath, MAIN, ...words], env);
}

const ran = (): Promise<string> => readFile(join(home, 'ran'), 'utf8').catch(() => '');

async function opened(): Promise<string> {
  return await waitFor('another program', async () => (await ran()) || undefined);
}

it('a port is opened in the browser, with its address as one word and without the key', async () => {
  const session = start('open', 'train');
  expect(await session.end()).toBe(0);
  expect(session.screen).toContain('Opened in your browser.');
  expect(await opened()).toBe(`xdg-open ${link} \n`);
});

it('an address that is no page is not opened', async () => {
  link = 'file:///etc/passwd';
  expect(await start('open', 'train').end()).toBe(1);
  expect(await ran()).toBe('');
});

it('VS Code gets the entry of ~/.ssh/config and the folder', async () => {
  expect(await start('code', 'train', '/workspace/src').end()).toBe(0);
  expect(await opened()).toBe('code --remote ssh-remote+i-abc123.berth /workspace/src \n');
  expect(await readFile(join(home, '.config/berth/ssh_config'), 'utf8')).toContain('Host i-abc123');
});

it('an editor that is not on the PATH is opened by its address', async () => {
  await stand('code', 'exit 127');
  expect(await start('code', 'train').end()).toBe(0);
  await waitFor('the address', async () =>
    (await ran()).includes('xdg-open vscode://vscode-remote/ssh-remote+i-abc123.berth/workspace \n'),
  );
});

it('the page that makes keys is opened before a key is asked for', async () => {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const session = start('login', '--web', url);
  await session.type('', /not shown\): /);
  expect(await opened()).toBe(`xdg-open ${url}/dashboard/api-access \n`);
  expect(await session.end(`${token}\r`)).toBe(0);
  expect(session.screen).not.toContain(token);
});
