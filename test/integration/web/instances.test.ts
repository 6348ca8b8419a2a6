import { afterAll, beforeAll, expect, it } from 'vitest';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { account, BERTH_EDIT, BERTH_VIEW } from '../../support/accounts.ts';
import { accountOf, type DashboardView, openDashboard } from '../../support/dashboard-view.ts';
import { type DashboardWorld, dashboardWorld } from '../../support/dashboard-world.ts';
import { describeWith } from '../../support/needs.ts';
import { waitFor } from '../../support/wait-for.ts';

const HOSTILE = `<img src=x onerror="document.title='owned'">'"$(id)`;
const SECRET = 'hf_of-ann-alone';
const COPY = 'Copy as curl, berth or kubectl';
const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJlzgbwTLpw84a3PBPThpSGFMRrAukdge3TpDy0ElguM you@laptop';

let world: DashboardWorld;
let tenant: DashboardWorld['tenant'];
let dashboard: DashboardWorld['dashboard'];
let api: DashboardWorld['api'];
let editor: string;
let viewer: string;

beforeAll(async () => {
  world = await dashboardWorld();
  ({ tenant, dashboard, api } = world);
  const namespace = tenant.name;
  editor = await account(tenant.client, namespace, 'editor', BERTH_EDIT);
  viewer = await account(tenant.client, namespace, 'viewer', BERTH_VIEW);
});

afterAll(() => world[Symbol.asyncDispose]());

function post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${api.url}/dashboard/api${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-berth-dashboard': '1', ...headers },
    body: JSON.stringify(body),
  });
}

async function cookieOf(token: string): Promise<string> {
  const response = await post('/session', { token });
  return response.headers.get('set-cookie')?.split(';', 1)[0] ?? '';
}

/** The token of a person for the tenant, as the page gets it. */
async function personToken(kubernetes: string, namespace = tenant.name): Promise<{ token: string; scopes: string[] }> {
  const response = await post('/token', { namespace }, { cookie: await cookieOf(kubernetes) });
  expect(response.status).toBe(201);
  return (await response.json()) as { token: string; scopes: string[] };
}

function call(token: string, method: string, path: string, body?: unknown): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  return fetch(`${api.url}/api/v1${path}`, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

it('a person may do what the roles of Berth allow, with a token of seconds, at every replica', async () => {
  const looks = await personToken(viewer);
  expect(looks.scopes).toEqual(['compute:read']);
  for (const url of api.replicas) {
    const answer = await fetch(`${url}/api/v1/instances`, { headers: { authorization: `Bearer ${looks.token}` } });
    expect(answer.status).toBe(200);
  }
  expect((await call(looks.token, 'POST', '/ssh-keys', { public_key: KEY, name: 'x' })).status).toBe(403);
  const edits = await personToken(editor);
  expect(edits.scopes).toEqual(['compute:read', 'compute:write']);
  expect((await call(edits.token, 'GET', '/models')).status).toBe(403);
});

it('nobody gets a token for another tenant, from another site, or without a session', async () => {
  const cookie = await cookieOf(editor);
  const refused = await post('/token', { namespace: 'kube-system' }, { cookie });
  expect(refused.status).toBe(403);
  expect(await refused.text()).toContain('berth-view to look, berth-edit to rent');
  const body = { namespace: tenant.name };
  expect((await post('/token', body, { cookie, 'sec-fetch-site': 'cross-site' })).status).toBe(403);
  expect((await post('/token', body, { cookie, 'x-berth-dashboard': '' })).status).toBe(403);
  expect((await post('/token', body)).status).toBe(401);
  // The cookie alone opens nothing of the API.
  const answer = await fetch(`${api.url}/api/v1/instances`, { headers: { cookie } });
  expect(answer.status).toBe(401);
});

it('a changed token gets the 401 of every wrong key', async () => {
  const { token } = await personToken(viewer);
  const [prefix = '', payload = '', signature = ''] = token.split('.');
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>;
  const other = Buffer.from(JSON.stringify({ ...claims, namespace: 'kube-system' })).toString('base64url');
  for (const forged of [`${prefix}.${other}.${signature}`, `${prefix}.${payload}.`, `${token}x.y`, `${prefix}.`]) {
    const answer = await call(forged, 'GET', '/instances');
    expect([answer.status, await answer.text()]).toEqual([
      401,
      '{"error":{"message":"Invalid API key.","code":"invalid_api_key"}}',
    ]);
  }
});

it('an account that is deleted gets no other token', async () => {
  const leaver = await account(tenant.client, tenant.name, 'leaver', BERTH_VIEW);
  const cookie = await cookieOf(leaver);
  expect((await post('/token', { namespace: tenant.name }, { cookie })).status).toBe(201);
  await tenant.client.raw('DELETE', `/api/v1/namespaces/${tenant.name}/serviceaccounts/leaver`);
  await waitFor(
    'the refusal',
    async () => (await post('/token', { namespace: tenant.name }, { cookie })).status === 401,
  );
});

describeWith('chromium')('in a browser', () => {
  let view: DashboardView;
  let page: DashboardView['page'];
  let findings: DashboardView['findings'];
  let picture: DashboardView['picture'];

  beforeAll(async () => {
    view = await openDashboard(api.url);
    ({ page, findings, picture } = view);
  });
  afterAll(() => view[Symbol.asyncDispose]());

  it('the sign-in has nothing against it', async () => {
    await page.goto(`${api.url}/dashboard`);
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(await findings()).toEqual([]);
    await picture('sign-in');
  });

  it('somebody signs in, and an empty list says what to do', async () => {
    await view.signIn(editor);
    await page.getByRole('heading', { name: 'No instances yet' }).waitFor();
    expect(await accountOf(page).locator('strong').innerText()).toBe(tenant.name);
    expect(await findings()).toEqual([]);
    await picture('instances-empty');
  });

  it('adds an SSH key, and the API says what is wrong with another', async () => {
    await page.getByRole('link', { name: 'SSH keys' }).click();
    await page.getByLabel('Public key', { exact: true }).fill('not a key');
    await page.getByRole('button', { name: 'Add key' }).click();
    await page.getByRole('alert').waitFor();
    await page.getByLabel('Public key', { exact: true }).fill(KEY);
    await page.getByLabel('Name of the key').fill(HOSTILE);
    await page.getByRole('button', { name: 'Add key' }).click();
    await page.getByRole('rowheader', { name: HOSTILE }).waitFor();
    expect(await findings()).toEqual([]);
    await picture('ssh-keys');
  });

  it('sees what is free and its price, and rents it', async () => {
    await page.getByRole('link', { name: 'Rent', exact: true }).click();
    await page.getByRole('button', { name: 'Rent 1 × NVIDIA-L40S' }).waitFor();
    expect(await findings()).toEqual([]);
    await picture('rent');
    await page.getByLabel('GPU', { exact: true }).fill('l40s');
    await page.getByRole('button', { name: 'Rent 1 × NVIDIA-H100-80GB-HBM3' }).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Rent 1 × NVIDIA-L40S', exact: true }).click();
    await page.getByLabel('Stop after', { exact: true }).fill('tomorrow');
    await page.getByLabel('Disk in GB').fill('99999');
    await page
      .locator('#rent')
      .getByRole('button', { name: /^Rent for/ })
      .click();
    await page
      .locator('#rent-disk-help.wrong')
      .filter({ hasText: /from 1 to \d+/ })
      .waitFor();
    await page.locator('#rent-longest-help.wrong').filter({ hasText: '90m, 12h' }).waitFor();
    expect(await page.evaluate('document.activeElement.id')).toBe('rent-disk');
    expect(await findings()).toEqual([]);
    await picture('rent-refused');
    await page.getByLabel('Stop after', { exact: true }).fill('2h');
    await page.locator('#rent').getByText('2h at most · about').waitFor();
    await page.getByLabel('Disk in GB').fill('20');
    await page.getByRole('button', { name: 'Add variable' }).click();
    await page.getByLabel('Name of variable 1').fill('HF_TOKEN');
    await page.getByLabel('Value of variable 1').fill(SECRET);
    await page.getByText(COPY).click();
    expect((await page.locator('#rent .copy-line code').allTextContents()).join()).not.toContain(SECRET);
    await page.locator('#rent').getByLabel('Name', { exact: true }).fill(HOSTILE);
    await page
      .locator('#rent')
      .getByRole('button', { name: /^Rent for/ })
      .click();
    await page.getByRole('heading', { name: HOSTILE }).waitFor();
    await page.locator('.state.running').waitFor();
  });

  it('sees where the start went, renames, extends and stops it, with the same as curl and kubectl', async () => {
    await page.getByText('SSH ready').waitFor();
    expect(await findings()).toEqual([]);
    await page.getByRole('button', { name: 'Rename' }).click();
    await page.getByLabel('Name', { exact: true }).fill("Ann's notebook");
    await page.locator('#action').getByText(COPY).click();
    const [curl = '', , kubectl = ''] = await page.locator('#action .copy-line code').allTextContents();
    expect(curl).toContain(String.raw`-d '{"name":"Ann'\''s notebook"}'`);
    expect(kubectl).toMatch(/^kubectl patch gpuinstance \S+ -n \S+ --type=merge/);
    await page.locator('#action').getByRole('button', { name: 'Rename' }).click();
    await page.getByRole('heading', { name: "Ann's notebook" }).waitFor();
    await page.getByRole('button', { name: 'Extend' }).click();
    await page.getByLabel('Stop after').fill('12h');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText(/in 11 h 5\d min/).waitFor();
    await picture('instance');
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.locator('#action').getByRole('button', { name: 'Stop' }).click();
    await page.locator('.state.stopped').waitFor();
    await page.getByRole('button', { name: 'Start' }).click();
    await page.locator('#action').getByRole('button', { name: 'Start' }).click();
    await page.locator('.state.running').waitFor();
  });

  it('shows what kubectl changes, without a reload', async () => {
    await page.getByRole('link', { name: 'Instances', exact: true }).first().click();
    const metadata = { name: 'by-hand', namespace: tenant.name };
    const spec = { gpu: { product: 'NVIDIA-H100-80GB-HBM3', count: 4 }, displayName: 'training' };
    await tenant.client.create(GPU_INSTANCES, { metadata, spec } as never);
    const row = page.getByRole('row', { name: /training/ });
    await row.getByText('Running').waitFor();
    await page.getByText(/^2 running at/).waitFor();
    await tenant.client.patch(GPU_INSTANCES, metadata, { spec: { displayName: HOSTILE } }, { type: 'merge' });
    await page
      .getByRole('row', { name: /by-hand/ })
      .getByText(HOSTILE)
      .waitFor();
    expect(await findings()).toEqual([]);
    await picture('instances');
  });

  it('shows the alternatives when the place is gone', async () => {
    await page.getByRole('link', { name: 'Rent', exact: true }).click();
    const gone = { message: 'Taken.', code: 'offer_unavailable' };
    const { data } = (await (await call((await personToken(viewer)).token, 'GET', '/offers')).json()) as {
      data: unknown[];
    };
    await page.route('**/api/v1/instances', (route) =>
      route.fulfill({ status: 409, json: { error: { ...gone, alternatives: data.slice(0, 2) } } }),
    );
    await page.getByRole('button', { name: /^Rent 1 × NVIDIA-L40S$/ }).click();
    await page
      .locator('#rent')
      .getByRole('button', { name: /^Rent for/ })
      .click();
    await page.getByRole('region', { name: 'Alternatives' }).getByRole('button').first().waitFor();
    await picture('rent-alternatives');
    await page.unroute('**/api/v1/instances');
    await page.getByRole('button', { name: 'Cancel' }).click();
  });

  it('deletes only after a question, by keyboard alone', async () => {
    await page.goto(`${api.url}/dashboard/instances/by-hand`);
    await page.getByRole('button', { name: 'Delete' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Delete this instance?' }).waitFor();
    await page.keyboard.press('Escape');
    await page.locator('#action').waitFor({ state: 'detached' });
    await page.keyboard.press('Enter');
    await page.locator('#action').getByRole('button', { name: 'Delete' }).press('Enter');
    await page.getByRole('heading', { name: 'This instance is gone' }).waitFor();
    expect(await findings()).toEqual([]);
  });

  it('somebody who may only look sees no button that would fail', async () => {
    await using other = await openDashboard(api.url);
    await other.signIn(viewer);
    await other.page.getByRole('link', { name: "Ann's notebook" }).click();
    await other.page.getByText('SSH ready').waitFor();
    expect(await other.page.getByRole('button', { name: /Stop|Delete|Rename/ }).count()).toBe(0);
    expect(other.complaints.filter((text) => !/status of (?:4\d\d)/.test(text))).toEqual([]);
  });

  it('keeps no token, loads nothing from elsewhere and breaks no policy', async () => {
    const stored = await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])');
    expect(String(stored)).not.toMatch(/eyJ/);
    const logs = [...api.processes, dashboard].map((one) => one.log()).join('');
    expect(logs).not.toMatch(/eyJ[\w-]+\./);
    expect(view.requested.filter((url) => !url.startsWith(api.url) && !url.startsWith('data:'))).toEqual([]);
    expect(view.complaints.filter((text) => !/status of (?:4\d\d)/.test(text))).toEqual([]);
    expect(await page.title()).not.toBe('owned');
  });
});
