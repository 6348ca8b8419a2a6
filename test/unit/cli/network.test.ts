import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { proxyLogin, proxyOf } from '../../../src/cli/api/network.ts';
import { createAuthority, issue } from '../../../tools/lib/x509.ts';
import { finished } from '../../support/ssh-client.ts';

const MAIN = fileURLToPath(new URL('../../../src/cli/berth.ts', import.meta.url));

describe('the proxy of a URL', () => {
  const env = {
    HTTPS_PROXY: 'http://proxy:3128',
    HTTP_PROXY: 'proxy:8080',
    NO_PROXY: '.corp.example, gpu.example.com:8443 10.0.0.0/8,fd00::/8,192.168.1.7',
  };

  it.each([
    ['https://gpu.example.com', 'http://proxy:3128/'],
    ['http://gpu.example.com', 'http://proxy:8080/'],
    ['https://gpu.example.com:8443', undefined],
    ['https://a.corp.example', undefined],
    ['https://corp.example', undefined],
    ['https://notcorp.example', 'http://proxy:3128/'],
    ['https://10.1.2.3', undefined],
    ['https://11.1.2.3', 'http://proxy:3128/'],
    ['https://[fd00::1]:8443', undefined],
    ['https://[fe80::1]', 'http://proxy:3128/'],
    ['https://192.168.1.7', undefined],
    ['http://localhost:8080', undefined],
    ['http://127.0.0.1:8080', undefined],
    ['http://[::1]:8080', undefined],
  ])('of %s is %s', (url, proxy) => {
    expect(proxyOf(new URL(url), env)?.href).toBe(proxy);
  });

  it('has the login as it is written, with escapes and without', () => {
    const login = (address: string): string => {
      const { 'proxy-authorization': header = '' } = proxyLogin(new URL(address));
      return Buffer.from(header.replace('Basic ', ''), 'base64').toString();
    };
    expect(login('http://me:p%40ss@proxy')).toBe('me:p@ss');
    expect(login('http://me:100%@proxy')).toBe('me:100%');
  });

  it('is none with NO_PROXY=* or without a proxy, and that of the lower-case name comes first', () => {
    const url = new URL('https://gpu.example.com');
    expect(proxyOf(url, { ...env, NO_PROXY: '*' })).toBeUndefined();
    expect(proxyOf(url, {})).toBeUndefined();
    expect(proxyOf(url, { ...env, https_proxy: 'https://other' })?.href).toBe('https://other/');
    for (const name of ['ALL_PROXY', 'all_proxy'])
      expect(proxyOf(url, { [name]: 'proxy:1' })?.href).toBe('http://proxy:1/');
    expect(proxyOf(url, { ALL_PROXY: 'socks5://other', HTTPS_PROXY: 'proxy:1' })?.href).toBe('http://proxy:1/');
    expect(() => proxyOf(url, { all_proxy: 'socks5://proxy:1080' })).toThrow(
      'all_proxy is no address of an HTTP proxy',
    );
    expect(() => proxyOf(url, { HTTPS_PROXY: 'socks5://proxy:1080' })).toThrow(
      'HTTPS_PROXY is no address of an HTTP proxy',
    );
  });
});

const HOST = 'gpu.corp.example';

let folder: string;
let servers: Server[];
let heard: (string | undefined)[];
let tunnels: string[];
let proxied: (string | undefined)[];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-network-'));
  [servers, heard, tunnels, proxied] = [[], [], [], []];
});
afterEach(async () => {
  for (const server of servers) server.close();
  await rm(folder, { recursive: true });
});

async function listen(server: Server, host = '127.0.0.1'): Promise<number> {
  servers.push(server);
  await once(server.listen(0, host), 'listening');
  return (server.address() as AddressInfo).port;
}

const answer: RequestListener = (request, response) => {
  heard.push(request.headers.authorization);
  response.setHeader('connection', 'close');
  response.end('{"data":[]}');
};

/** A proxy that leads every tunnel to one port of this machine. */
async function proxyTo(port: number, refuses = false): Promise<number> {
  const proxy = createServer((request, response) => {
    tunnels.push(request.url ?? '');
    proxied.push(request.headers['proxy-authorization']);
    answer(request, response);
  });
  proxy.on('connect', (request: IncomingMessage, client: Socket) => {
    tunnels.push(request.url ?? '');
    proxied.push(request.headers['proxy-authorization']);
    expect(request.headers.authorization).toBeUndefined();
    if (refuses) {
      client.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
      return;
    }
    const server = connect(port, '127.0.0.1', () => client.write('HTTP/1.1 200 OK\r\n\r\n'));
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      from.on('error', () => to.destroy()).on('close', () => to.destroy());
      from.pipe(to);
    }
  });
  return await listen(proxy);
}

/** A server with a certificate of an organisation, whose authority is in `ca.pem`. */
async function tlsServer(): Promise<number> {
  const authority = await createAuthority('Corp');
  const { key, certificate } = await issue(authority, { commonName: HOST, hosts: [HOST, '127.0.0.1'] });
  await writeFile(join(folder, 'ca.pem'), authority.certificate);
  return await listen(createTlsServer({ key, cert: certificate }, answer));
}

async function ls(env: Record<string, string>) {
  const { SSL_CERT_FILE: _own, NODE_EXTRA_CA_CERTS: _extra, ...others } = process.env;
  const child = spawn(process.execPath, [MAIN, 'ls', '--json'], {
    env: { ...others, HOME: folder, BERTH_API_KEY: 'key', ...env },
  });
  return await finished(child);
}

describe('in the network of a company', () => {
  it.each(['SSL_CERT_FILE', 'NODE_EXTRA_CA_CERTS'])('the authority of %s is trusted, and no other', async (name) => {
    const url = `https://127.0.0.1:${await tlsServer()}`;
    const refused = await ls({ BERTH_URL: url });
    expect([refused.code, refused.stderr]).toEqual([6, expect.stringContaining('set NODE_EXTRA_CA_CERTS')]);
    expect(await ls({ BERTH_URL: url, [name]: join(folder, 'ca.pem') })).toMatchObject({ code: 0, stderr: '' });
    expect(heard).toEqual(['Bearer key']);
  });

  it('a file of authorities that cannot be read is named', async () => {
    const env = { BERTH_URL: `https://127.0.0.1:${await tlsServer()}`, SSL_CERT_FILE: '/nowhere.pem' };
    expect(await ls(env)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('SSL_CERT_FILE: ENOENT') as string,
    });
  });

  it('a server is reached through a proxy, which learns its name and no key', async () => {
    const port = await proxyTo(await tlsServer());
    const env = { BERTH_URL: `https://${HOST}`, SSL_CERT_FILE: join(folder, 'ca.pem') };
    const proxy = `http://me:p%40ss@127.0.0.1:${port}`;
    expect(await ls({ ...env, HTTPS_PROXY: proxy })).toMatchObject({ code: 0, stderr: '' });
    expect([tunnels, heard]).toEqual([[`${HOST}:443`], ['Bearer key']]);
    expect(proxied).toEqual([`Basic ${Buffer.from('me:p@ss').toString('base64')}`]);
  });

  it('a proxy that refuses says so', async () => {
    const port = await proxyTo(0, true);
    const env = { BERTH_URL: `https://${HOST}`, HTTPS_PROXY: `http://127.0.0.1:${port}` };
    const { code, stderr } = await ls(env);
    expect([code, stderr]).toEqual([
      6,
      expect.stringMatching(/the proxy 127.0.0.1:\d+ answers 407.*\nHTTPS_PROXY names the proxy/s),
    ]);
  });

  it('plain HTTP goes through a proxy too, where it may', async () => {
    const port = await proxyTo(0);
    const env = { BERTH_URL: `http://${HOST}`, HTTP_PROXY: `127.0.0.1:${port}` };
    expect((await ls({ ...env })).code).toBe(2);
    expect(await ls({ ...env, BERTH_PLAIN_HTTP: 'true' })).toMatchObject({ code: 0 });
    expect(tunnels).toEqual([`http://${HOST}/api/v1/instances`]);
  });

  it('an address of IPv6 is one', async () => {
    const port = await listen(createServer(answer), '::1');
    expect(await ls({ BERTH_URL: `http://[::1]:${port}` })).toMatchObject({ code: 0 });
  });
});
