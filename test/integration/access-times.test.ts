import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import type { Client, ClientChannel } from 'ssh2';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { WebSocket } from 'ws';
import { createKey } from '../../src/access/create-key.ts';
import { NAMESPACES } from '../../src/kube/types.ts';
import { API_KEYS, type Scope } from '../../src/resources/api-key.ts';
import { GPU_INSTANCES } from '../../src/resources/instances/gpu-instance.ts';
import { SSH_KEYS } from '../../src/resources/ssh-key.ts';
import { TENANT_LABEL } from '../../src/resources/tenants/tenant-policy.ts';
import { newEd25519Key } from '../../src/ssh/login/ed25519-key.ts';
import { ssh2 } from '../../src/ssh/ssh2/load.ts';
import { account, BERTH_EDIT, KEY_RIGHTS } from '../support/accounts.ts';
import { type BerthProcess, startBerth } from '../support/berth-process.ts';
import { describeWith } from '../support/needs.ts';
import { PAGE_HEADERS } from '../support/lone-dashboard.ts';
import { runningInstance } from '../support/running-instance.ts';
import type { ScriptedEngine } from '../support/scripted-engine.ts';
import { serveModel } from '../support/serve-model.ts';
import { importJupyterImage, JUPYTER } from '../support/ssh-images.ts';
import { openTerminal } from '../support/terminal-world.ts';
import { type TestNamespace, testNamespace } from '../support/test-cluster.ts';
import { waitFor } from '../support/wait-for.ts';

// Every way in, and how long after what opened it was taken away it ends. The test prints the table of docs/run/threat-model.md.

/** A bound for safety, and no measure of speed: what is taken away ends within a second. */
const MOST_MS = 1000;
const SERVER = readFileSync(new URL('../support/echo-server.py', import.meta.url), 'utf8');
const CHAT = { model: 'small', messages: [{ role: 'user', content: 'Hi' }] };
const STALLED = { kind: 'stall', reply: { text: 'A longer answer than one token' }, events: 3 } as const;

let tenant: TestNamespace;
let berth: BerthProcess;
let engine: ScriptedEngine;
const sshKey = newEd25519Key('');
const table: string[] = [];

/** Something that is open. Resolves when it has ended. */
type Open = { ended: Promise<unknown> };
type WayIn = (token: string) => Promise<Open>;

async function fetched(token: string, path: string, body?: object): Promise<Response> {
  const accept = body === undefined ? 'text/event-stream' : '*/*';
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept };
  const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
  return fetch(`${berth.url}/api/v1${path}`, { ...sent, headers });
}

/** A stream whose first bytes are there. */
async function streamed(answer: Response): Promise<Open> {
  const reader = answer.body?.getReader();
  if (answer.status !== 200 || reader === undefined) throw new Error(`${answer.status} ${await answer.text()}`);
  await reader.read();
  const rest = async (): Promise<void> => {
    for (let next = await reader.read(); !next.done; next = await reader.read());
  };
  return { ended: rest().catch(() => undefined) };
}

function events(path: string): WayIn {
  return async (token) => streamed(await fetched(token, path));
}

const OF_MODELS = /of a model$/;
const BY_KEY: Record<string, WayIn> = {
  'events of instances': events('/instances'),
  'events of offers': events('/offers'),
  log: events('/instances/lab/logs?follow=true'),
  history: events('/instances/lab/events'),
  'stream of a model': async (token) => {
    engine.behave(STALLED);
    return streamed(await fetched(token, '/chat/completions', { ...CHAT, stream: true }));
  },
  'call of a model': async (token) => {
    engine.behave({ kind: 'hang' });
    const before = engine.received.length;
    const answer = fetched(token, '/chat/completions', CHAT);
    await waitFor('the call at the engine', () => engine.received.length > before);
    return { ended: answer.then((one) => one.text()) };
  },
  'WebSocket of a port': async (token) => {
    const url = `${berth.url.replace('http', 'ws')}/api/v1/instances/lab/proxy/7000/ws`;
    const socket = new WebSocket(url, { headers: { authorization: `Bearer ${token}` } });
    await once(socket, 'open');
    return { ended: once(socket, 'close') };
  },
  'port in a browser': async (token) => {
    const made = await fetched(token, '/instances/lab/links', { port: 7000 });
    const { host, pathname, search } = new URL(((await made.json()) as { url: string }).url);
    const { hostname, port } = new URL(berth.url);
    const enter = request({ hostname, port, path: pathname + search, headers: { host }, setHost: false }).end();
    const [entered] = (await once(enter, 'response')) as [IncomingMessage];
    entered.resume();
    const cookie = (entered.headers['set-cookie'] ?? []).map((one) => one.split(';', 1)[0]).join('; ');
    const headers = { host, cookie, origin: `http://${host}` };
    const socket = new WebSocket(`${berth.url.replace('http', 'ws')}/ws`, { headers });
    await once(socket, 'open');
    return { ended: once(socket, 'close') };
  },
  terminal: async (token) => {
    const terminal = openTerminal(`${berth.url.replace('http', 'ws')}/api/v1/instances/lab/terminal`, token);
    await waitFor('the shell', () => terminal.output !== '');
    return { ended: waitFor('its end', () => terminal.closed, 30_000) };
  },
};

async function sshClient(): Promise<Client> {
  const client = new ssh2.Client();
  client.on('error', () => undefined);
  const instance = await tenant.client.get(GPU_INSTANCES, { namespace: tenant.name, name: 'lab' });
  const closed = once(client, 'close').then(() => Promise.reject(new Error('The gateway hung up.')));
  const ready = Promise.race([once(client, 'ready'), closed]);
  closed.catch(() => undefined);
  client.connect({
    host: '127.0.0.1',
    port: berth.sshPort,
    username: instance.status?.ssh?.user ?? '',
    privateKey: sshKey.private,
  });
  await ready;
  return client;
}

const BY_SSH: Record<string, WayIn> = {
  'SSH session': async () => {
    const client = await sshClient();
    const { promise, resolve, reject } = Promise.withResolvers<ClientChannel>();
    client.exec('sleep 600', (error, channel) => (error ? reject(error) : resolve(channel)));
    return { ended: once((await promise).resume(), 'close') };
  },
  'SSH tunnel': async () => {
    const client = await sshClient();
    const { promise, resolve, reject } = Promise.withResolvers<ClientChannel>();
    client.forwardOut('127.0.0.1', 1, '127.0.0.1', 7000, (error, channel) =>
      error ? reject(error) : resolve(channel),
    );
    return { ended: once((await promise).resume(), 'close') };
  },
};

async function answers(token: string, path: string): Promise<void> {
  await waitFor(path, async () => {
    const answer = await fetched(token, path);
    await answer.body?.cancel();
    return answer.status === 200;
  });
}

/** A token of the dashboard for somebody who signed in with an account of that name, and their way out. */
async function signedIn(name: string): Promise<{ token: string; signOut: () => Promise<unknown> }> {
  const credential = await account(tenant.client, tenant.name, name, [...BERTH_EDIT, ...KEY_RIGHTS]);
  const call = (method: string, path: string, init: RequestInit) =>
    fetch(`${berth.url}/dashboard/api${path}`, {
      ...init,
      method,
      headers: { ...PAGE_HEADERS, ...(init.headers as Record<string, string>) },
    });
  const post = (path: string, body: object, headers = {}) =>
    call('POST', path, { headers, body: JSON.stringify(body) });
  const session = await post('/session', { token: credential });
  const [cookie = ''] = (session.headers.get('set-cookie') ?? '').split(';', 1);
  const answer = await post('/token', { namespace: tenant.name }, { cookie });
  const { token } = (await answer.json()) as { token: string };
  return { token, signOut: () => call('DELETE', '/session', { headers: { cookie } }) };
}

async function freshKey(): Promise<{ token: string; name: string }> {
  const { token, key } = await createKey(tenant.client, { namespace: tenant.name, displayName: 'times' });
  await answers(token, '/models/small');
  return { token, name: key.metadata.name };
}

/** Opens all ways in at once, takes something away, and returns for each the milliseconds to its end. */
async function timesOf(ways: Record<string, WayIn>, token: string, take: () => Promise<unknown>) {
  const open: [string, Promise<number>][] = [];
  let takenAt = Infinity;
  for (const [name, begin] of Object.entries(ways)) {
    const { ended } = await begin(token);
    open.push([name, ended.then(() => performance.now() - takenAt)]);
  }
  await take();
  takenAt = performance.now();
  return Promise.all(open.map(async ([name, ms]) => [name, Math.max(0, Math.round(await ms))] as const));
}

async function label(value: string | null): Promise<void> {
  const labels = { [TENANT_LABEL]: value };
  await tenant.client.patch(NAMESPACES, { name: tenant.name }, { metadata: { labels } }, { type: 'merge' });
}

const onNode = describeWith('real node', 'mmdebstrap');

onNode('what was opened ends within a second of', () => {
  beforeAll(async () => {
    const { kubeconfig, initPid = 0, programs = '' } = inject('cluster');
    tenant = await testNamespace();
    await label('true');
    await importJupyterImage({ initPid, programs });
    const own = await tenant.home();
    engine = await serveModel({ client: tenant.client, name: own }, { engine: 'vllm', models: ['small'] });
    berth = await startBerth(kubeconfig, 'all', own, { env: { BERTH_REQUIRE_TENANT_LABEL: 'true' } });
    const [namespace, name] = [tenant.name, 'lab'];
    const metadata = { namespace, name: 'laptop' };
    await tenant.client.create(SSH_KEYS, { metadata, spec: { publicKey: sshKey.public, displayName: '' } });
    const onStart = `python3 -c '${SERVER.replaceAll("'", String.raw`'\''`)}'`;
    const gpu = { product: 'NVIDIA-L4', count: 1 };
    const spec = { gpu, image: JUPYTER, ports: [{ containerPort: 7000 }], onStart };
    await tenant.client.create(GPU_INSTANCES, { metadata: { namespace, name }, spec } as never);
    await runningInstance(tenant, name, 100_000);
    const { token } = await freshKey();
    await answers(token, `/instances/${name}/proxy/7000/x`);
  }, 300_000);

  afterAll(async () => {
    process.stdout.write(`${['taken away | way in | ms', ...table].join('\n')}\n`);
    await berth[Symbol.asyncDispose]();
    await engine.close();
    await tenant[Symbol.asyncDispose]();
  });

  function tell(what: string, times: readonly (readonly [string, number])[]): void {
    for (const [way, ms] of times) table.push(`${what} | ${way} | ${ms}`);
    expect(times.filter(([, ms]) => ms > MOST_MS)).toEqual([]);
  }

  const ref = (name: string) => ({ namespace: tenant.name, name });
  const patched = (name: string, spec: object) => tenant.client.patch(API_KEYS, ref(name), { spec }, { type: 'merge' });

  it.each<[string, (name: string) => Promise<unknown>]>([
    ['the key, revoked', (name) => patched(name, { revoked: true })],
    ['the key, deleted', (name) => tenant.client.delete(API_KEYS, ref(name))],
  ])('%s', { timeout: 300_000 }, async (what, take) => {
    const { token, name } = await freshKey();
    tell(what, await timesOf(BY_KEY, token, () => take(name)));
  });

  it.each<[string, Scope[], (way: string) => boolean]>([
    ['the scopes for instances', ['models'], (way) => !OF_MODELS.test(way)],
    ['the scope models', ['compute:read', 'compute:write'], (way) => OF_MODELS.test(way)],
  ])('%s', { timeout: 300_000 }, async (what, scopes, isMeant) => {
    const { token, name } = await freshKey();
    const ways = Object.fromEntries(Object.entries(BY_KEY).filter(([way]) => isMeant(way)));
    tell(what, await timesOf(ways, token, () => patched(name, { scopes })));
  });

  it('the model', { timeout: 300_000 }, async () => {
    const { token, name } = await freshKey();
    const ways = Object.fromEntries(Object.entries(BY_KEY).filter(([way]) => OF_MODELS.test(way)));
    tell('the model', await timesOf(ways, token, () => patched(name, { models: ['other'] })));
  });

  it('the role of a person', { timeout: 300_000 }, async () => {
    const { token } = await signedIn('ada');
    const path = `/apis/rbac.authorization.k8s.io/v1/namespaces/${tenant.name}/rolebindings/ada`;
    tell('the role of a person', await timesOf(BY_KEY, token, () => tenant.client.raw('DELETE', path)));
  });

  it('the session of a person, by signing out', { timeout: 300_000 }, async () => {
    const { token, signOut } = await signedIn('ben');
    tell('the session of a person', await timesOf(BY_KEY, token, signOut));
  });

  it('the label of the tenant', { timeout: 300_000 }, async () => {
    const { token } = await freshKey();
    const take = () => label(null);
    tell('the label', await timesOf({ ...BY_KEY, ...BY_SSH }, token, take));
    const answer = await fetched(token, '/instances');
    expect([answer.status, await answer.text()]).toEqual([403, expect.stringContaining('not_a_tenant')]);
    await expect(sshClient()).rejects.toThrow();
    await label('true');
  });

  it('the SSH key', { timeout: 300_000 }, async () => {
    tell('the SSH key', await timesOf(BY_SSH, '', () => tenant.client.delete(SSH_KEYS, ref('laptop'))));
  });

  it('the namespace', { timeout: 90_000 }, async () => {
    const { token } = await freshKey();
    tell('the namespace', await timesOf(BY_KEY, token, () => tenant.client.delete(NAMESPACES, { name: tenant.name })));
    expect((await fetched(token, '/instances')).status).toBe(401);
  });
});
