import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { WebSocket } from 'ws';
import { z } from 'zod';
import { createKey } from '../../../src/access/create-key.ts';
import { PODS } from '../../../src/kube/types.ts';
import { BUSYBOX_IMAGE } from '../../../tools/cluster/built/real-node.ts';
import { run } from '../../../tools/lib/shell.ts';
import { API_KEYS } from '../../../src/resources/api-key.ts';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { launchBrowser, STEP_MS } from '../../support/browser/browser.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { type Call, clientOf } from '../../support/http/client.ts';
import { describeWith } from '../../support/needs.ts';
import { importJupyterImage, JUPYTER } from '../../support/ssh-images.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { killApiServer } from '../../support/kill-api-server.ts';
import { kindsCounted } from '../../support/kinds-counted.ts';
import { waitFor } from '../../support/wait-for.ts';

type Way = 'direct' | 'forward';

const onNode = describeWith('real node', 'mmdebstrap', 'chromium');
const SERVER = readFileSync(new URL('../../support/echo-server.py', import.meta.url), 'utf8');

let berth: BerthProcess;
let tenant: TestNamespace;
let stranger: TestNamespace;
let token: string;
let call: Call;
let other: Call;

interface Got {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}

/** A request as no fetch() makes one: with any Host. */
async function ask(path: string, headers: Record<string, string> = {}, body?: Buffer): Promise<Got> {
  const { port } = new URL(berth.url);
  const method = body === undefined ? 'GET' : 'POST';
  const request = httpRequest({ host: '127.0.0.1', port, path, headers, method, setHost: false });
  request.end(body);
  const [answer] = (await once(request, 'response')) as [Parameters<typeof text>[0] & Got & { statusCode: number }];
  return { status: answer.statusCode, headers: answer.headers, body: await text(answer) };
}

function proxied(path: string, headers: Record<string, string> = {}, body?: Buffer): Promise<Got> {
  const own = { host: new URL(berth.url).host, authorization: `Bearer ${token}`, ...headers };
  return ask(`/api/v1/instances/lab/proxy${path}`, own, body);
}

async function create(name: string, spec: Record<string, unknown>): Promise<void> {
  const metadata = { name, namespace: tenant.name };
  const gpu = { product: 'NVIDIA-L4', count: 1 };
  await tenant.client.create(GPU_INSTANCES, { metadata, spec: { gpu, runtype: 'jupyter', ...spec } } as never);
}

async function jupyterReason(name: string): Promise<string | undefined> {
  const { status } = await tenant.client.get(GPU_INSTANCES, { name, namespace: tenant.name });
  return status?.conditions?.find(({ type }) => type === 'Jupyter')?.reason;
}

async function inside(name: string, script: string): Promise<string> {
  const { programs = '', kubeconfig } = inject('cluster');
  const flags = ['--kubeconfig', kubeconfig, '-n', tenant.name, 'exec', `${name}-1`, '-c', 'main', '--'];
  const { code, stdout, stderr } = await run(join(programs, 'kubectl'), [...flags, '/.berth/bin/sh', '-c', script]);
  if (code !== 0) throw new Error(stderr);
  return stdout;
}

beforeAll(async () => {
  const { kubeconfig, initPid = 0, programs = '' } = inject('cluster');
  [tenant, stranger] = await Promise.all([testNamespace(), testNamespace()]);
  await Promise.all([kindsCounted(tenant.client), importJupyterImage({ initPid, programs })]);
  berth = await startBerth(kubeconfig);
  ({ token } = await createKey(tenant.client, { namespace: tenant.name, displayName: 'proxy' }));
  call = clientOf(berth.url, token);
  const theirs = await createKey(stranger.client, { namespace: stranger.name, displayName: 'stranger' });
  other = clientOf(berth.url, theirs.token);
  const onStart = `python3 -c '${SERVER.replaceAll("'", String.raw`'\''`)}'`;
  await create('lab', { image: JUPYTER, ports: [{ containerPort: 7000 }, { containerPort: 7001 }], onStart });
  await create('plain', { image: BUSYBOX_IMAGE });
  await waitFor('Jupyter', async () => (await jupyterReason('lab')) === 'Answers', 100_000);
}, 300_000);
afterAll(async () => {
  await berth[Symbol.asyncDispose]();
  await Promise.all([tenant[Symbol.asyncDispose](), stranger[Symbol.asyncDispose]()]);
});

onNode('Jupyter', () => {
  it('is started with a token that stands in no object and no log', async () => {
    const secret = (await inside('lab', 'cat /workspace/.berth-jupyter/token')).trim();
    expect(secret).toMatch(/^[0-9a-f]{48}$/);
    const get = (query: string): Promise<string> =>
      inside('lab', `busybox wget -S -qO- "http://127.0.0.1:8080/api/status${query}" 2>&1 | head -1`);
    expect(await get('')).toContain(' 403 ');
    expect(await get(`?token=${secret}`)).toContain(' 200 ');
    const pod = await tenant.client.get(PODS, { name: 'lab-1', namespace: tenant.name });
    expect(JSON.stringify(pod)).not.toContain(secret);
    const { programs = '', kubeconfig } = inject('cluster');
    const { stdout } = await run(join(programs, 'kubectl'), [
      '--kubeconfig',
      kubeconfig,
      '-n',
      tenant.name,
      'logs',
      'lab-1',
    ]);
    expect(stdout).toContain('Jupyter Server');
    expect(stdout + berth.log()).not.toContain(secret);
  });

  it('runs a cell that a program sends over a WebSocket', async () => {
    const made = await proxied('/8080/api/kernels', { 'content-type': 'application/json' }, Buffer.from('{}'));
    expect(made.status).toBe(201);
    const { id } = JSON.parse(made.body) as { id: string };
    const url = `${berth.url.replace('http', 'ws')}/api/v1/instances/lab/proxy/8080/api/kernels/${id}/channels`;
    const socket = new WebSocket(url, { headers: { authorization: `Bearer ${token}` } });
    const results: string[] = [];
    socket.on('message', (data: Buffer) => {
      const { msg_type: type, content } = JSON.parse(String(data)) as { msg_type: string; content: { text?: string } };
      if (type === 'stream') results.push(content.text ?? '');
    });
    await once(socket, 'open');
    const header = { msg_id: '1', username: '', session: 's', msg_type: 'execute_request', version: '5.3' };
    const content = { code: 'print(6 * 7)', silent: false, store_history: false, user_expressions: {} };
    const message = { header, parent_header: {}, metadata: {}, content, channel: 'shell' };
    socket.send(JSON.stringify(message));
    await waitFor('the result', () => results.join('').includes('42'));
    socket.close();
  });

  it('has a condition that says that the image lacks it', async () => {
    await waitFor('the condition', async () => (await jupyterReason('plain')) === 'NotInImage');
    const { error } = await waitFor('the refusal', async () => {
      const answer = await call('POST', '/instances/plain/links');
      return answer.status === 502 ? answer : undefined;
    });
    expect(error).toMatchObject({ code: 'port_unreachable' });
    expect(error['message']).toContain('The image has no jupyter.');
  });
});

/** Connections to ports by each way so far. */
async function connections(): Promise<Record<Way, number>> {
  const metrics = await (await fetch(`${berth.metricsUrl}/metrics`)).text();
  const of = (way: Way): number =>
    Number(new RegExp(`berth_port_connections_total\\{[^}]*way="${way}"[^}]*\\} (\\d+)`).exec(metrics)?.[1]);
  return { direct: of('direct'), forward: of('forward') };
}

function describeCalls(way: Way): void {
  it(`reach the pod, way: ${way}`, async () => {
    const before = await connections();
    expect((await proxied('/7000/', {}, Buffer.from('x'))).status).toBe(200);
    expect(await connections()).toEqual({ ...before, [way]: before[way] + 1 });
  });

  it('reach a declared port with path, query and body, and no credential', async () => {
    const cookie = 'berth_session=x; mine=1';
    const sent = { cookie, 'x-api-key': token, 'x-forwarded-for': '10.1.1.1', connection: 'x-hop', 'x-hop': '1' };
    const { status, headers, body } = await proxied('/7000/a%2Fb/../c?d=%20e', sent, Buffer.alloc(3_000_000));
    expect(status).toBe(200);
    const told = JSON.parse(body) as { headers: Record<string, string> };
    expect(told).toMatchObject({ method: 'POST', uri: '/a%2Fb/../c?d=%20e', size: 3_000_000 });
    expect(told.headers).toMatchObject({ Cookie: 'mine=1', 'X-Forwarded-For': '127.0.0.1', Host: 'localhost:7000' });
    expect(body).not.toContain(token);
    expect(told.headers).not.toHaveProperty('X-Hop');
    expect(headers['content-security-policy']).toContain('sandbox');
  });

  it('get nothing that acts on the origin of Berth', async () => {
    const page = await proxied('/7000/page');
    expect(page.headers['set-cookie']).toBeUndefined();
    expect(page.headers['access-control-allow-origin']).toBe('*');
    expect((await proxied('/7000/away?to=https://evil.test/')).headers).not.toHaveProperty('location');
    expect((await proxied('/7000/away?to=/page')).headers['location']).toBe('/api/v1/instances/lab/proxy/7000/page');
  });

  it('stream large answers', async () => {
    expect((await proxied('/7000/large')).body.length).toBe(64 * 1024 * 1024);
  });

  it('reach no other tenant, no port that is not declared, and nothing without a key', async () => {
    expect((await other('GET', '/instances/lab/proxy/7000/')).error).toMatchObject({ code: 'instance_not_found' });
    expect((await other('POST', '/instances/lab/links')).error).toMatchObject({ code: 'instance_not_found' });
    for (const port of ['44188', '22', '0', '99999', '7000x']) {
      expect((await call('GET', `/instances/lab/proxy/${port}/`)).error).toMatchObject({ code: 'port_not_declared' });
    }
    expect((await call('GET', '/instances/lab/proxy/7001/')).error).toMatchObject({ code: 'port_unreachable' });
    const none = await ask('/api/v1/instances/lab/proxy/7000/', { host: 'localhost' });
    expect(none).toMatchObject({
      status: 401,
      body: '{"error":{"message":"Invalid API key.","code":"invalid_api_key"}}',
    });
    const url = `${berth.url.replace('http', 'ws')}/api/v1/instances/lab/proxy/7000/ws`;
    const [, refused] = (await once(
      new WebSocket(url).on('error', () => undefined),
      'unexpected-response',
    )) as [unknown, { statusCode: number }];
    expect(refused.statusCode).toBe(401);
  });
}

onNode('calls by the direct way', () => describeCalls('direct'));

onNode('a browser', () => {
  async function link(port: number, path = '/', by = call): Promise<URL> {
    const { status, json } = await by('POST', '/instances/lab/links', { port, path });
    expect(status).toBe(201);
    return new URL(z.string().parse(json['url']));
  }

  async function visit(port: number, by = call): Promise<{ host: string; cookie: string }> {
    const url = await link(port, '/', by);
    const entered = await ask(url.pathname + url.search, { host: url.host });
    return { host: url.host, cookie: String(entered.headers['set-cookie']).split(';', 1)[0] ?? '' };
  }

  it('comes in by a link that works once, and stays by a cookie of that host', async () => {
    const url = await link(7000, '/page');
    expect(url.hostname).toMatch(/^7000-[0-9a-f-]{36}\.localhost$/);
    expect(url.href).not.toContain(token);
    const entered = await ask(url.pathname + url.search, { host: url.host });
    expect(entered).toMatchObject({ status: 302, headers: { location: '/page' } });
    const [cookie = ''] = entered.headers['set-cookie'] ?? [];
    expect(cookie).toMatch(/^berth_port=[^;]+; Path=\/; HttpOnly; SameSite=Lax; Max-Age=43200$/);
    expect((await ask(url.pathname + url.search, { host: url.host })).status).toBe(401);
    const own = { host: url.host, cookie: cookie.split(';', 1)[0] ?? '' };
    const page = await ask('/page', own);
    expect(page.body).toContain('WebSocket');
    expect(page.headers['set-cookie']).toEqual(['mine=1; Path=/']);
    const told = JSON.parse((await ask('/x', own)).body) as { headers: Record<string, string> };
    expect(told.headers).toMatchObject({ Host: url.host });
    expect(told.headers).not.toHaveProperty('Cookie');
    expect(berth.log()).not.toContain(url.searchParams.get('ticket'));
  });

  it('is let in nowhere else, and not for a page elsewhere', async () => {
    const { host, cookie } = await visit(7000);
    expect((await ask('/', { host })).status).toBe(401);
    expect((await ask('/', { host: host.replace('7000-', '8080-'), cookie })).status).toBe(401);
    const foreign = { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors', origin: 'http://evil.localhost' };
    expect((await ask('/', { host, cookie, ...foreign })).status).toBe(403);
    expect((await ask('/api/v1/offers', { host, cookie, authorization: `Bearer ${token}` })).body).toContain('"uri"');
  });

  it('has the limit of the key that let it in', async () => {
    const limits = { requestsPerMinute: 4 };
    const few = await createKey(tenant.client, { namespace: tenant.name, displayName: 'few', limits });
    const fewCalls = clientOf(berth.url, few.token);
    const made = await waitFor('the key', async () => {
      const answer = await fewCalls('POST', '/instances/lab/links', { port: 7000 });
      return answer.status === 201 ? answer : undefined;
    });
    const url = new URL(z.string().parse(made.json['url']));
    const entered = await ask(url.pathname + url.search, { host: url.host });
    const cookie = String(entered.headers['set-cookie']).split(';', 1)[0] ?? '';
    const codes = [];
    for (let count = 0; count < 5; count += 1) codes.push((await ask('/', { host: url.host, cookie })).status);
    expect(codes).toEqual([200, 200, 200, 429, 429]);
  });

  it('sees Jupyter without knowing its token', async () => {
    const own = await visit(8080);
    expect((await ask('/api/status', own)).status).toBe(200);
  });

  it('shows the page with its WebSocket, and keeps it from the dashboard', async () => {
    const chrome = await launchBrowser();
    const page = await chrome.newPage();
    page.setDefaultTimeout(STEP_MS);
    await page.goto((await link(7000, '/page')).href);
    await page.waitForFunction("document.title === 'hello'");
    const dashboard = `http://localhost:${new URL(berth.url).port}/dashboard/api/session`;
    const read = await page.evaluate(
      (url) =>
        fetch(url, { credentials: 'include' }).then(
          () => 'read',
          () => 'refused',
        ),
      dashboard,
    );
    expect(read).toBe('refused');
    await chrome.close();
  });

  it.each([
    ['loses the scope', { scopes: ['compute:read'] }],
    ['is revoked', { revoked: true }],
  ])('is out within a second when the key %s, WebSockets too', async (_name, change) => {
    const short = await createKey(tenant.client, { namespace: tenant.name, displayName: 'short' });
    const by = clientOf(berth.url, short.token);
    await waitFor('the key', async () => (await by('GET', '/instances')).status === 200);
    const { host, cookie } = await visit(7000, by);
    const socket = new WebSocket(`${berth.url.replace('http', 'ws')}/ws`, {
      headers: { host, cookie, origin: `http://${host}` },
    });
    await once(socket, 'open');
    socket.send('ping');
    expect(String((await once(socket, 'message'))[0])).toBe('ping');
    const closed = once(socket, 'close');
    const ref = { name: short.name, namespace: tenant.name };
    await tenant.client.patch(API_KEYS, ref, { spec: change }, { type: 'merge' });
    const began = performance.now();
    await closed;
    expect(performance.now() - began).toBeLessThan(1000);
    expect((await ask('/', { host, cookie })).status).toBe(401);
  });
});

onNode('an API server that is killed', () => {
  it('leaves WebSockets and new requests alone', async () => {
    const url = `${berth.url.replace('http', 'ws')}/api/v1/instances/lab/proxy/7000/ws`;
    const socket = new WebSocket(url, { headers: { authorization: `Bearer ${token}` } });
    await once(socket, 'open');
    const apiServer = killApiServer(inject('cluster').initPid ?? 0);
    await waitFor('the API server to be away', async () =>
      (await inside('lab', 'true').catch((error: unknown) => String(error))).includes('refused'),
    );
    socket.send('still there');
    expect(String((await once(socket, 'message'))[0])).toBe('still there');
    expect((await proxied('/7000/', {}, Buffer.from('x'))).status).toBe(200);
    await apiServer.restart(tenant.client);
    socket.close();
  });
});

onNode('calls when the helper in the instance was killed', () => {
  beforeAll(async () => {
    const { forward } = await connections();
    await inside('lab', '/.berth/bin/busybox killall -9 direct');
    await waitFor('port-forward', async () => {
      await proxied('/7000/', {}, Buffer.from('x'));
      return (await connections()).forward > forward;
    });
  });

  describeCalls('forward');
});
