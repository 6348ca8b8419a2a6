import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { SECRETS } from '../../../src/kube/types.ts';
import { API_KEYS } from '../../../src/resources/api-key.ts';
import { launchBrowser, STEP_MS } from '../../support/browser/browser.ts';
import { account, tokenOf as makeToken, KEY_RIGHTS } from '../../support/accounts.ts';
import type { Cluster } from '../../support/http/api.ts';
import { openCluster } from '../../support/http/open.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { type Replicas, startReplicas } from '../../support/http/replicas.ts';
import { accountOf, signOut } from '../../support/dashboard-view.ts';
import { describeWith } from '../../support/needs.ts';
import { RoleAccount, writeKubeconfigOf } from '../../support/role-account.ts';
import { waitFor } from '../../support/wait-for.ts';

const run = promisify(execFile);
let cluster: Cluster;
let dashboard: BerthProcess;
let role: RoleAccount;
let folder: string;
let api: Replicas;
let namespace: string;
let owner: string;
let guest: string;

/** A token of the account for these audiences; without one, for the API server. */
function tokenOf(name: string, ...audiences: string[]): Promise<string> {
  return makeToken(cluster.client, namespace, name, audiences);
}

beforeAll(async () => {
  cluster = await openCluster();
  namespace = await cluster.namespace('web');
  const { kubeconfig } = inject('cluster');
  const env = { BERTH_LOG_LEVEL: 'trace' };
  const own = await cluster.namespace('web-berth');
  // With the rights that the chart gives it.
  role = await RoleAccount.make({ client: cluster.client, name: own }, 'dashboard');
  folder = await mkdtemp(join(tmpdir(), 'berth-dashboard-'));
  const config = await writeKubeconfigOf(join(folder, 'config'), kubeconfig, await role.token());
  dashboard = await startBerth(config, 'dashboard', own, { env: { ...env, BERTH_TRUST_PROXY: '1' } });
  api = await startReplicas(kubeconfig, { namespace: own, env: { ...env, BERTH_DASHBOARD_URL: dashboard.url } });
  owner = await account(cluster.client, namespace, 'owner', KEY_RIGHTS);
  guest = await account(cluster.client, namespace, 'guest', []);
});

afterAll(async () => {
  await api[Symbol.asyncDispose]();
  await dashboard[Symbol.asyncDispose]();
  await role[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
  await cluster[Symbol.asyncDispose]();
});

function post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${api.url}/dashboard/api${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-berth-dashboard': '1', ...headers },
    body: JSON.stringify(body),
  });
}

async function signIn(token: string): Promise<{ cookie: string; attributes: string }> {
  const response = await post('/session', { token });
  expect(response.status).toBe(201);
  const attributes = response.headers.get('set-cookie') ?? '';
  return { attributes, cookie: attributes.split(';', 1)[0] ?? '' };
}

const wish = { name: 'x', scopes: ['compute:read'] };

it('no key gets into a log, not even one in a path or a query', async () => {
  const token = await cluster.key(namespace, {}, api);
  const headers = { authorization: `Bearer ${token}` };
  await fetch(`${api.url}/api/v1/instances/${token}?key=${token}`, { headers });
  await fetch(`${api.url}/${token}`);
  const logs = (): string => api.processes.map((one) => one.log()).join('');
  await waitFor('both lines', () => logs().split('berth_…').length > 2);
  expect(logs()).not.toContain(token);
});

describe('the endpoints of the dashboard', () => {
  it('keep the session from scripts and other sites', async () => {
    const { attributes } = await signIn(owner);
    expect(attributes).toMatch(/HttpOnly/);
    expect(attributes).toMatch(/SameSite=Strict/);
    expect(attributes).toMatch(/^__Host-/);
    expect(attributes).toMatch(/Secure/);
    expect(attributes).not.toContain(owner.slice(-40));
  });

  it('let nobody in without a good token or session', async () => {
    expect((await post('/session', { token: 'nonsense' })).status).toBe(401);
    expect((await post('/keys', { namespace, ...wish })).status).toBe(401);
    const { cookie } = await signIn(owner);
    const forged = `${cookie.slice(0, -2)}${cookie.endsWith('AA') ? 'BB' : 'AA'}`;
    expect((await post('/keys', { namespace, ...wish }, { cookie: forged })).status).toBe(401);
  });

  it('take no copy of a session that was signed out', async () => {
    const { cookie } = await signIn(owner);
    const url = `${api.url}/dashboard/api/session`;
    const visit = async (): Promise<number> => (await fetch(url, { headers: { cookie } })).status;
    expect(await visit()).toBe(200);
    const left = await fetch(url, { method: 'DELETE', headers: { cookie, 'x-berth-dashboard': '1' } });
    expect([left.status, await visit()]).toEqual([200, 401]);
    await signIn(owner);
  });

  it('take no token that opens the API server, and say how to create another one', async () => {
    const server = await tokenOf('owner');
    const { issuer } = await cluster.client.raw<{ issuer: string }>('GET', '/.well-known/openid-configuration');
    for (const token of [server, await tokenOf('owner', 'berth', issuer), await tokenOf('owner', 'other')]) {
      const answer = await post('/session', { token });
      expect(answer.status).toBe(401);
      expect(await answer.text()).toContain(`kubectl create token owner --namespace ${namespace} --audience=berth`);
    }
    // The API server takes this one as a token of nobody.
    const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token: owner } };
    const path = '/apis/authentication.k8s.io/v1/tokenreviews';
    const { status } = await cluster.client.raw<{ status: { authenticated?: boolean } }>('POST', path, review);
    expect(status.authenticated).not.toBe(true);
  });

  it('answer no request that another site made the browser send', async () => {
    const { cookie } = await signIn(owner);
    const body = JSON.stringify({ namespace, ...wish });
    const url = `${api.url}/dashboard/api/keys`;
    const plain = await fetch(url, { method: 'POST', headers: { cookie, 'content-type': 'text/plain' }, body });
    expect(plain.status).toBe(403);
    expect((await post('/keys', { namespace, ...wish }, { cookie, 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    const preflight = await fetch(url, { method: 'OPTIONS', headers: { origin: 'https://evil.example' } });
    expect(preflight.headers.get('access-control-allow-origin')).toBeNull();
  });

  it('allow what the role of the user allows, and no more', async () => {
    const { cookie } = await signIn(guest);
    expect((await post('/keys', { namespace, ...wish }, { cookie })).status).toBe(403);
    const mine = await signIn(owner);
    expect((await post('/keys', { namespace: 'kube-system', ...wish }, { cookie: mine.cookie })).status).toBe(403);
    const list = await fetch(`${api.url}/dashboard/api/keys?namespace=kube-system`, {
      headers: { cookie: mine.cookie },
    });
    expect(list.status).toBe(403);
    expect((await post('/keys', { namespace: '../x', ...wish }, { cookie: mine.cookie })).status).toBe(422);
    expect((await post('/keys', { namespace, name: 'x', scopes: [] }, { cookie: mine.cookie })).status).toBe(422);
  });
});

describeWith('chromium', 'curl')('in a browser', () => {
  let browser: Browser;
  let page: Page;
  const requested: string[] = [];
  const answers: string[] = [];
  const complaints: string[] = [];

  beforeAll(async () => {
    browser = await launchBrowser();
    page = await browser.newPage({ viewport: { width: 1180, height: 720 } });
    page.setDefaultTimeout(STEP_MS);
    page.on('request', (request) => requested.push(request.url()));
    page.on('console', (message) => void (message.type() === 'error' && complaints.push(message.text())));
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('response', (response) => {
      response.text().then(
        (text) => answers.push(text),
        () => undefined,
      );
    });
  });

  afterAll(async () => {
    await browser.close();
  });

  async function create(name: string): Promise<{ token: string; curl: string }> {
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByLabel('Name', { exact: true }).fill(name);
    await page.locator('#create').getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('heading', { name: 'Key created' }).waitFor();
    // The key is shown once: Escape does not throw it away.
    for (let presses = 0; presses < 3; presses += 1) await page.keyboard.press('Escape');
    const token = await page.getByLabel('Key', { exact: true }).inputValue();
    return { token, curl: await page.getByLabel('Try it').inputValue() };
  }

  it('somebody signs in, makes a key, calls the API with it, and revokes it', async () => {
    await page.goto(`${api.url}/dashboard/api-access`);
    await page.getByLabel('Kubernetes token').fill(owner);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'API keys' }).waitFor();
    expect(await accountOf(page).locator('strong').innerText()).toBe(namespace);

    const { token, curl } = await create('continuous integration');
    expect(token).toMatch(/^berth_/);
    const { stdout } = await waitFor('a key that works', async () => {
      const result = await run('bash', ['-c', curl.replace('curl', 'curl -s')]);
      return result.stdout.includes('"object":"list"') && result;
    });
    expect(stdout).not.toContain(token);
    await page.getByRole('button', { name: 'Done' }).click();

    // The token was in one answer, and is nowhere now.
    await page.reload();
    const row = page.getByRole('row', { name: /continuous integration/ });
    await row.waitFor();
    expect(answers.filter((text) => text.includes(token))).toHaveLength(1);
    expect(await page.content()).not.toContain(token);
    const stored = await page.evaluate(
      "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, ...[...document.querySelectorAll('input, textarea')].map((one) => one.value)])",
    );
    expect(String(stored)).not.toContain(token);
    expect(String(stored)).not.toContain('berth_session');
    const objects = await Promise.all([
      cluster.client.list(API_KEYS, { namespace }),
      cluster.client.list(SECRETS, { namespace }),
    ]);
    expect(JSON.stringify(objects)).not.toContain(token);
    const logs = [...api.processes, dashboard].map((one) => one.log()).join('');
    expect(logs).toContain('Created an API key');
    for (const secret of [token, owner]) expect(logs).not.toContain(secret);

    await row.getByRole('button', { name: /Revoke/ }).click();
    await page.locator('#revoke').getByRole('button', { name: 'Revoke' }).click();
    await row.getByText('revoked', { exact: true }).waitFor();
    await waitFor(
      '401',
      async () => {
        const headers = { authorization: `Bearer ${token}` };
        return (await fetch(`${api.url}/api/v1/offers`, { headers })).status === 401;
      },
      1000,
    );
  });

  it('shows itself', async () => {
    await create('notebook of the vision team');
    await page.getByRole('button', { name: 'Done' }).click();
    const picture = await page.screenshot(
      process.env['BERTH_SCREENSHOT'] ? { path: process.env['BERTH_SCREENSHOT'] } : {},
    );
    expect(picture.length).toBeGreaterThan(10_000);
  });

  it('fits a phone', async () => {
    await page.setViewportSize({ width: 375, height: 740 });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(375);
    await page.getByRole('button', { name: 'Create key' }).click();
    const { x = -1, width = 0 } = (await page.locator('#create').boundingBox()) ?? {};
    expect(Math.min(x, 375 - x - width)).toBeGreaterThan(0);
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.setViewportSize({ width: 1180, height: 720 });
  });

  it('shows what went wrong, and signs out', async () => {
    await accountOf(page).click();
    await page.getByLabel('Another project').fill('kube-system');
    await page.getByRole('button', { name: 'Show' }).click();
    await page.getByRole('alert').filter({ hasText: 'may not list apikeys.berth.dev in kube-system' }).waitFor();
    expect(await page.locator('#rows tr').count()).toBe(0);
    await signOut(page);
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(await page.context().cookies()).toEqual([]);
  });

  it('somebody without rights stays signed in after a reload', async () => {
    await page.getByLabel('Kubernetes token').fill(guest);
    await page.getByRole('button', { name: 'Sign in' }).click();
    const alert = page.getByRole('alert').filter({ hasText: 'may not list apikeys.berth.dev' });
    await alert.waitFor();
    await page.reload();
    await alert.waitFor();
    expect(await page.getByLabel('Kubernetes token').isVisible()).toBe(false);
    await signOut(page);
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  });

  it('the API reference renders too', async () => {
    await page.goto(`${api.url}/docs/api`);
    await page.getByText('Rent an instance', { exact: true }).waitFor();
    const background = () => page.evaluate('getComputedStyle(document.documentElement).backgroundColor');
    const light = await background();
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.locator('html.dark-mode').waitFor();
    expect(await background()).not.toBe(light);
    await page.emulateMedia({ colorScheme: 'light' });
    await page.locator('html:not(.dark-mode)').waitFor();
    expect(await background()).toBe(light);
  });

  it('loads nothing from elsewhere and breaks no policy', () => {
    expect(requested.filter((url) => !url.startsWith(api.url) && !url.startsWith('data:'))).toEqual([]);
    expect(complaints.filter((text) => !/status of (?:401|403)/.test(text))).toEqual([]);
  });
});
