import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { createKey } from '../../../src/access/create-key.ts';
import { launchBrowser, STEP_MS } from '../../support/browser/browser.ts';
import { BERTH_EDIT } from '../../support/accounts.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { type Replicas, startReplicas } from '../../support/http/replicas.ts';
import { type RoundRobin, roundRobin } from '../../support/http/round-robin.ts';
import { type IdentityProvider, identityProvider } from '../../support/identity-provider.ts';
import { accountOf, signOut } from '../../support/dashboard-view.ts';
import { describeWith } from '../../support/needs.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';

let tenant: TestNamespace;
let provider: IdentityProvider;
let front: RoundRobin;
let dashboard: BerthProcess;
let api: Replicas;
/** Where people reach Berth: of another site than the provider. */
let base: string;

/** Gives a group of the provider Berth's roles in the tenant's namespace. */
async function bind(group: string): Promise<void> {
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${tenant.name}`;
  const apiGroup = 'rbac.authorization.k8s.io';
  const [apiVersion, metadata] = [`${apiGroup}/v1`, { name: 'renters' }];
  await tenant.client.raw('POST', `${rbac}/roles`, { apiVersion, kind: 'Role', metadata, rules: BERTH_EDIT });
  const roleRef = { apiGroup, kind: 'Role', name: 'renters' };
  const subjects = [{ apiGroup, kind: 'Group', name: group }];
  await tenant.client.raw('POST', `${rbac}/rolebindings`, {
    apiVersion,
    kind: 'RoleBinding',
    metadata,
    roleRef,
    subjects,
  });
}

beforeAll(async () => {
  const { kubeconfig } = inject('cluster');
  tenant = await testNamespace();
  const namespace = await tenant.home();
  let replicas: readonly string[] = [];
  front = await roundRobin(() => replicas.map((url) => new URL(url)));
  base = front.url.replace('127.0.0.1', 'localhost');
  provider = await identityProvider(`${base}/dashboard/oidc/callback`);
  const env = {
    BERTH_TRUST_PROXY: '1',
    BERTH_PUBLIC_URL: base,
    BERTH_OIDC_ISSUER: provider.issuer,
    BERTH_OIDC_CLIENT_ID: provider.clientId,
    BERTH_OIDC_CLIENT_SECRET: provider.clientSecret,
    BERTH_OIDC_NAME: 'Example',
    BERTH_OIDC_USERNAME_CLAIM: 'email',
    BERTH_OIDC_USERNAME_PREFIX: 'oidc:',
    BERTH_OIDC_GROUPS_CLAIM: 'groups',
    BERTH_OIDC_GROUPS_PREFIX: 'idp:',
  };
  dashboard = await startBerth(kubeconfig, 'dashboard', namespace, { env });
  api = await startReplicas(kubeconfig, { namespace, env: { BERTH_DASHBOARD_URL: dashboard.url } });
  ({ replicas } = api);
  await bind('idp:renters');
  // The tenants that the page suggests have keys.
  await createKey(tenant.client, { namespace: tenant.name, displayName: 'first' });
}, 120_000);

afterAll(async () => {
  for (const one of [api, dashboard, front, provider, tenant]) await one[Symbol.asyncDispose]();
});

describeWith('chromium')('signing in at an OpenID provider', () => {
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  const complaints: string[] = [];

  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser.close());

  async function visit(): Promise<void> {
    context = await browser.newContext({ viewport: { width: 1180, height: 800 } });
    page = await context.newPage();
    page.setDefaultTimeout(STEP_MS);
    page.on('console', (message) => {
      // The pages of the provider are its own.
      if (message.type() === 'error' && message.location().url.startsWith(base)) complaints.push(message.text());
    });
    page.on('pageerror', (error) => complaints.push(error.message));
    await page.goto(`${base}/dashboard`);
  }

  async function signIn(login: string): Promise<void> {
    await visit();
    await page.getByRole('link', { name: 'Sign in with Example' }).click();
    await page.getByPlaceholder('Enter any login').fill(login);
    await page.getByPlaceholder('and password').fill('x');
    await page.getByRole('button', { name: 'Sign-in' }).click();
    await page.getByRole('button', { name: 'Continue' }).click();
  }

  /** What the dashboard answers when the page asks for a token for the tenant. */
  async function askForToken(): Promise<{ status: number; body: { scopes?: string[]; error?: { message: string } } }> {
    const headers = { 'x-berth-dashboard': '1' };
    const answer = await context.request.post(`${base}/dashboard/api/token`, {
      headers,
      data: { namespace: tenant.name },
    });
    return { status: answer.status(), body: (await answer.json()) as { scopes?: string[] } };
  }

  it('gives a person the roles of the group, under the name of the provider', async () => {
    provider.people.set('ann', { email: 'ann@example.com', groups: ['renters', 'others'] });
    await signIn('ann');
    await page.getByRole('heading', { name: 'No instances yet' }).waitFor();
    expect(await page.locator('.who span').innerText()).toBe('oidc:ann@example.com');
    expect(await accountOf(page).locator('strong').innerText()).toBe(tenant.name);
    await page.getByRole('link', { name: 'Rent', exact: true }).click();
    await page
      .getByRole('button', { name: /^Rent 1 / })
      .first()
      .waitFor();
    expect((await askForToken()).body.scopes).toEqual(['compute:read', 'compute:write']);
    const cookies = await context.cookies(base);
    expect(cookies.find(({ name }) => name === '__Host-berth_session')).toMatchObject({
      httpOnly: true,
      secure: true,
      sameSite: 'Strict',
    });
    const stored = await page.evaluate(
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href])',
    );
    expect(String(stored)).not.toMatch(/code=|eyJ|state=/);
    // A key of the cluster needs a role of its own.
    await page.getByRole('link', { name: 'API keys' }).click();
    await page.getByRole('alert').filter({ hasText: 'role berth-admin' }).waitFor();
  });

  it('takes the rights with the group, and the session with the account', async () => {
    provider.people.set('ann', { email: 'ann@example.com', groups: ['others'] });
    const { status, body } = await askForToken();
    expect([status, body.error?.message]).toEqual([403, expect.stringContaining('signed in as oidc:ann@example.com')]);
    provider.people.set('ann', { email: 'ann@example.com', groups: ['renters'] });
    expect((await askForToken()).status).toBe(201);
    // The last group: the provider leaves the claim out.
    provider.people.set('ann', { email: 'ann@example.com', groups: undefined });
    expect((await askForToken()).status).toBe(403);
    provider.people.delete('ann');
    expect((await askForToken()).status).toBe(401);
    await page.reload();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  });

  it('leads who signs out to the provider, which asks and then knows them no more', async () => {
    provider.people.set('ann', { email: 'ann@example.com', groups: ['renters'] });
    await signIn('ann');
    await signOut(page);
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect((await context.cookies(base)).map(({ name }) => name)).not.toContain('__Host-berth_session');
    // Without the next step the provider would ask for no password again.
    await page.getByRole('link', { name: 'Sign out at Example too' }).click();
    await page.getByRole('button', { name: /^Yes/ }).click();
    await page.getByText('Sign-out Success').waitFor();
    await page.goto(`${base}/dashboard`);
    await page.getByRole('link', { name: 'Sign in with Example' }).click();
    await page.getByPlaceholder('Enter any login').waitFor();
  });

  it('lets in nobody whose address is not verified', async () => {
    provider.people.set('eve', { email: 'eve@example.com', isVerified: false, groups: ['renters'] });
    await signIn('eve');
    await page.getByRole('alert').filter({ hasText: 'says too little about you' }).waitFor();
    expect((await askForToken()).status).toBe(401);
    expect(dashboard.log()).toContain('has not verified the address');
  });

  it('takes no answer that another browser asked for, and each once', async () => {
    await visit();
    await page.goto(`${base}/dashboard/oidc/callback?code=stolen&state=guessed`);
    await page.getByRole('alert').filter({ hasText: 'began in another browser' }).waitFor();
    // With a sign-in of its own under way, and the answer to another one.
    await context.request.get(`${base}/dashboard/oidc/begin`, { maxRedirects: 0 });
    await page.goto(`${base}/dashboard/oidc/callback?code=stolen&state=guessed`);
    await page.getByRole('alert').filter({ hasText: 'did not sign you in' }).waitFor();
    await page.goto(`${base}/dashboard/oidc/callback?code=stolen&state=guessed`);
    await page.getByRole('alert').filter({ hasText: 'began in another browser' }).waitFor();
    expect((await askForToken()).status).toBe(401);
  });

  it('leads the browser to the provider with a proof of possession and fresh secrets', async () => {
    await visit();
    const urls = await Promise.all(
      [1, 2].map(async () => {
        const answer = await context.request.get(`${base}/dashboard/oidc/begin`, { maxRedirects: 0 });
        return new URL(answer.headers()['location'] ?? '');
      }),
    );
    const [one, two] = urls.map(({ searchParams }) => Object.fromEntries(searchParams));
    expect(one).toMatchObject({ code_challenge_method: 'S256', response_type: 'code', scope: 'openid email profile' });
    for (const name of ['state', 'nonce', 'code_challenge']) expect(one?.[name]).not.toBe(two?.[name]);
  });

  it('writes no secret into a log, and breaks no policy', () => {
    const logs = [dashboard, ...api.processes].map((one) => one.log()).join('');
    expect(logs).toContain('Signed in to the dashboard');
    for (const secret of [provider.clientSecret, 'code=stolen', 'code_verifier']) expect(logs).not.toContain(secret);
    expect(complaints.filter((text) => !/status of (?:401|403|404)/.test(text))).toEqual([]);
  });
});
