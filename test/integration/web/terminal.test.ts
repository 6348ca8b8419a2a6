import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { WebSocket } from 'ws';
import { createKey } from '../../../src/access/create-key.ts';
import { API_KEYS } from '../../../src/resources/api-key.ts';
import { GPU_INSTANCES, LAST_ACTIVITY } from '../../../src/resources/instances/gpu-instance.ts';
import { BUSYBOX_IMAGE } from '../../../tools/cluster/built/real-node.ts';
import { freePorts } from '../../../tools/lib/free-ports.ts';
import { launchBrowser, STEP_MS } from '../../support/browser/browser.ts';
import { account, BERTH_EDIT } from '../../support/accounts.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { type Replicas, startReplicas } from '../../support/http/replicas.ts';
import { describeWith } from '../../support/needs.ts';
import { openTerminal, TerminalClient } from '../../support/terminal-world.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';

const onNode = describeWith('real node', 'chromium');

/** Each role in a process of its own, as the chart runs them. */
let tenant: TestNamespace;
let processes: BerthProcess[];
let ssh: BerthProcess;
let api: Replicas;
let editor: string;
const clients: TerminalClient[] = [];

async function rent(name: string): Promise<void> {
  const metadata = { name, namespace: tenant.name };
  const spec = { gpu: { product: 'NVIDIA-L4', count: 1 }, image: BUSYBOX_IMAGE, idleTimeout: '12h' };
  await tenant.client.create(GPU_INSTANCES, { metadata, spec } as never);
  await waitFor(
    'the login',
    async () => {
      const { status } = await tenant.client.get(GPU_INSTANCES, { name, namespace: tenant.name });
      return status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True');
    },
    100_000,
  );
}

beforeAll(async () => {
  const { kubeconfig } = inject('cluster');
  tenant = await testNamespace();
  const namespace = await tenant.home();
  const [port = 0] = await freePorts(1);
  const dashboard = await startBerth(kubeconfig, 'dashboard', namespace, { env: { BERTH_TRUST_PROXY: '1' } });
  const beside = { BERTH_DASHBOARD_URL: dashboard.url };
  const terminals = { ...beside, BERTH_TERMINAL_ADDR: `127.0.0.1:${port}` };
  const [controller] = await Promise.all([
    startBerth(kubeconfig, 'controller', namespace),
    startBerth(kubeconfig, 'ssh', namespace, { env: terminals }).then((one) => (ssh = one)),
  ]);
  const env = { ...beside, BERTH_TERMINAL_URL: `http://127.0.0.1:${port}`, BERTH_DEFAULT_IMAGE: BUSYBOX_IMAGE };
  api = await startReplicas(kubeconfig, { namespace, env });
  processes = [dashboard, controller, ssh];
  editor = await account(tenant.client, tenant.name, 'editor', BERTH_EDIT);
}, 120_000);

afterAll(async () => {
  // A replica gives open terminals time to end.
  for (const { socket } of clients) socket.terminate();
  for (const one of [api, ...processes, tenant]) await one[Symbol.asyncDispose]();
});

function open(instance: string, token: string): TerminalClient {
  const client = openTerminal(urlOf(instance), token);
  clients.push(client);
  return client;
}

function urlOf(instance: string): string {
  return `${api.url.replace('http', 'ws')}/api/v1/instances/${instance}/terminal?columns=100&rows=30`;
}

onNode('a terminal over HTTP', () => {
  beforeAll(() => rent('lab'), 110_000);

  it('is a login shell with a terminal, resized, interrupted, and ended with its status', async () => {
    const { token } = await createKey(tenant.client, { namespace: tenant.name, displayName: 'terminal' });
    const client = await waitFor('a key that works', async () => {
      const one = open('lab', token);
      await waitFor('an answer', () => one.output !== '' || one.refused !== undefined);
      return one.refused === undefined && one;
    });
    client.send(0, 'tty; stty size; echo "$TERM $((20 + 3))"\r');
    await client.shows('xterm-256color 23');
    expect(client.output).toMatch(/\/dev\/pts\/\d+\r\n30 100/);
    client.send(4, JSON.stringify({ Width: 90, Height: 20 }));
    // The answer, and not what was typed: then the shell runs it and reads no more.
    client.send(0, 'echo $((300 + 1)); sleep 1000\r');
    await client.shows('301');
    client.send(0, '\u0003');
    client.send(0, 'stty size\r');
    await client.shows('20 90');
    client.send(0, 'exit 7\r');
    await waitFor('the status', () => client.status);
    expect(client.status).toMatchObject({ status: 'Failure', details: { causes: [{ message: '7' }] } });
    await waitFor('the audit', () => ssh.log().includes('"event":"terminal-end"'));
    expect(ssh.log()).not.toContain('sleep 1000');
    for (const one of [...processes, ...api.processes]) expect(one.log()).not.toContain(token);
    const { metadata } = await tenant.client.get(GPU_INSTANCES, { name: 'lab', namespace: tenant.name });
    expect(metadata.annotations).toHaveProperty([LAST_ACTIVITY]);
  });

  it('ends with its key, its program too, and no other tenant gets in', async () => {
    const { token, key } = await createKey(tenant.client, { namespace: tenant.name, displayName: 'to be revoked' });
    await using stranger = await testNamespace();
    const theirs = await createKey(stranger.client, { namespace: stranger.name, displayName: 'stranger' });
    const client = await waitFor('a key that works', async () => {
      const one = open('lab', token);
      await waitFor('an answer', () => one.output !== '' || one.refused !== undefined);
      return one.refused === undefined && one;
    });
    client.send(0, 'sleep 4711 & echo started\r');
    await client.shows('started\r\n');
    const refused = await waitFor('the key of the stranger', async () => {
      const one = open('lab', theirs.token);
      await waitFor('an answer', () => one.output !== '' || one.refused !== undefined);
      return one.refused?.status !== 401 && one;
    });
    expect(refused.refused?.status).toBe(404);
    const ref = { namespace: tenant.name, name: key.metadata.name };
    await tenant.client.patch(API_KEYS, ref, { spec: { revoked: true } }, { type: 'merge' });
    await waitFor('the end', () => client.closed, 5_000);
    expect(client.status?.message).toContain('The API key is over');
  });

  it('opens with a token among the protocols, for pages of this host alone', async () => {
    const { token } = await createKey(tenant.client, { namespace: tenant.name, displayName: 'page' });
    const protocols = [
      'v5.channel.k8s.io',
      `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString('base64url')}`,
    ];
    await waitFor('a key that works', async () => {
      const one = new TerminalClient(new WebSocket(urlOf('lab'), protocols, { origin: api.url }));
      await waitFor('an answer', () => one.output !== '' || one.refused !== undefined);
      one.socket.close();
      return one.refused === undefined;
    });
    const evil = new TerminalClient(new WebSocket(urlOf('lab'), protocols, { origin: 'https://evil.example' }));
    expect(await waitFor('the refusal', () => evil.refused)).toMatchObject({ status: 400 });
  });
});

onNode('a terminal in the page', () => {
  let browser: Browser;
  let page: Page;
  const complaints: string[] = [];

  const screen = async (): Promise<string> => (await page.locator('.xterm-rows').innerText()).replaceAll('\u00A0', ' ');
  const shows = (text: string | RegExp) =>
    waitFor(`the screen to show ${String(text)}`, async () => {
      const now = await screen();
      return typeof text === 'string' ? now.includes(text) : text.test(now);
    });

  beforeAll(async () => {
    browser = await launchBrowser();
    page = await browser.newPage({ viewport: { width: 1180, height: 1000 }, reducedMotion: 'reduce' });
    page.setDefaultTimeout(STEP_MS);
    page.on('console', (message) => void (message.type() === 'error' && complaints.push(message.text())));
    page.on('pageerror', (error) => complaints.push(error.message));
  });
  afterAll(() => browser.close());

  it('gives a prompt to somebody who signed in', async () => {
    await rent('desk');
    await page.goto(`${api.url.replace('127.0.0.1', 'localhost')}/dashboard/instances/desk`);
    await page.getByLabel('Kubernetes token').fill(editor);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('button', { name: 'Open terminal' }).click();
    await shows(/[#$]\s*$/);
    await page.keyboard.type('echo "$((40 + 2))" from "$(hostname)"\n');
    await shows('42 from desk-1');
    await page.keyboard.type('env | grep -c TOKEN; cat /proc/self/environ | tr "\\0" "\\n" | grep BERTH_SESSION\n');
    await shows('BERTH_SESSION=');
  });

  it('lives on past the first token of the person', async () => {
    // The server asks for another token when the first has 10 of its 20 seconds left, and ends a terminal without one.
    const asked = page.waitForResponse((response) => response.url().endsWith('/dashboard/api/token'), {
      timeout: 60_000,
    });
    await asked;
    await page.keyboard.type('echo "still $((1 + 1))"\n');
    await shows('still 2');
  }, 70_000);

  it('ends within half a minute when the account is deleted', async () => {
    await tenant.client.raw('DELETE', `/api/v1/namespaces/${tenant.name}/serviceaccounts/editor`);
    await page.getByText(/sign-in is over|cluster rejects this token/).waitFor({ timeout: 40_000 });
  }, 70_000);

  it('broke no policy and threw no error', () => {
    expect(complaints.filter((text) => !/status of (?:401|403|404|409|426)/.test(text))).toEqual([]);
  });
});
