import type { Browser, Page, Route } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { buildPage } from '../../../tools/lib/page.ts';
import { allowedPerson } from '../../support/allowed-person.ts';
import { launchBrowser, STEP_MS } from '../../support/browser/browser.ts';
import { accountOf } from '../../support/dashboard-view.ts';
import { type LoneApi, startLoneApi } from '../../support/http/lone-api.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';
import { describeWith } from '../../support/needs.ts';

const OFFER = {
  id: 7,
  gpu_name: 'NVIDIA-L4',
  gpu_count: 1,
  gpu_memory_mb: 24_576,
  isolation: 'whole',
  mig_profile: null,
  pool: 'default',
  simulated: false,
  available: 2,
  available_by_preemption: 0,
  image_cached: true,
  cpu_cores: 4,
  memory_mb: 16_384,
  disk_gb_max: 100,
  cuda_version: null,
  price_per_hour: { on_demand: '0.44', interruptible: '0.20', currency: 'USD' },
};

describeWith('chromium')('the page, when calls go wrong', () => {
  let browser: Browser;
  let page: Page;
  let api: LoneApi;
  let url: string;

  /** Answers calls of a method in place of the server; the others reach it. */
  async function answer(path: string, method: string, with_: (route: Route) => Promise<void>): Promise<void> {
    await page.route(path, (route) => (route.request().method() === method ? with_(route) : route.fallback()));
  }

  beforeAll(async () => {
    await buildPage();
    const instances = ['i-1', 'i-2', 'i-3'].map((name) => gpuInstance(name, {}, { claim: claimOn('node-1') }));
    const own = instances.map((one) => ({ ...one, metadata: { ...one.metadata, namespace: 'team' } }));
    api = await startLoneApi({ tenants: ['team'], instances: own, client: allowedPerson });
    // Of all names over plain HTTP, browsers keep the cookie for this one.
    url = `http://localhost:${api.address.port}`;
    browser = await launchBrowser();
  }, 120_000);

  afterAll(async () => {
    await browser.close();
    await api.close();
  });

  beforeEach(async () => {
    const context = await browser.newContext({ viewport: { width: 1180, height: 800 }, reducedMotion: 'reduce' });
    page = await context.newPage();
    page.setDefaultTimeout(STEP_MS);
    await page.goto(`${url}/dashboard`);
    await page.getByLabel('Kubernetes token').fill('opaque');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await accountOf(page).waitFor();
    return () => context.close();
  }, 60_000);

  it('stops the others of a list when one is refused, and asks again only about that one', async () => {
    const stopped: string[] = [];
    let isLimited = true;
    await answer('**/api/v1/instances/*', 'PATCH', async (route) => {
      const id = new URL(route.request().url()).pathname.split('/').at(-1) ?? '';
      const isRefused = isLimited && id === 'i-2';
      if (!isRefused) stopped.push(id);
      const error = { message: 'Wait 5 s.', code: 'rate_limit_exceeded' };
      return route.fulfill(isRefused ? { status: 429, json: { error } } : { json: { id } });
    });
    await page.getByLabel('Choose all that are shown').check();
    await page.getByRole('button', { name: 'Stop chosen' }).click();
    const dialog = page.locator('#bulk');
    await dialog.getByRole('button', { name: 'Stop', exact: true }).click();
    await dialog.getByText('1 of 3 are left. i-2: Wait 5 s.').waitFor();
    await dialog.getByText('Stop 1 instances?').waitFor();
    expect(stopped.splice(0).toSorted()).toEqual(['i-1', 'i-3']);
    isLimited = false;
    await dialog.getByRole('button', { name: 'Stop', exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(stopped).toEqual(['i-2']);
  });

  it('shows what the person may do once the dashboard answers again', async () => {
    let refused = 0;
    await answer('**/dashboard/api/token', 'POST', (route) => {
      refused += 1;
      const error = { message: 'The dashboard does not answer.', code: 'dashboard_unavailable' };
      return route.fulfill({ status: 503, json: { error } });
    });
    await page.reload();
    await page.getByText('The dashboard does not answer.').first().waitFor();
    expect(refused).toBeGreaterThan(1);
    await page.unroute('**/dashboard/api/token');
    await page.getByRole('link', { name: 'i-1', exact: true }).waitFor();
    await page.getByRole('button', { name: 'Actions for i-1' }).waitFor();
  });

  it('makes one key of two clicks', async () => {
    let made = 0;
    const { promise: answered, resolve: goOn } = Promise.withResolvers<void>();
    await answer('**/dashboard/api/keys', 'POST', async (route) => {
      made += 1;
      await answered;
      const key = {
        id: 'key-1',
        namespace: 'team',
        name: 'ci',
        prefix: 'berth_x',
        scopes: ['models'],
        state: 'active',
      };
      return route.fulfill({ status: 201, json: { ...key, created_at: '2026-11-01T08:00:00Z', token: 'berth_xyz' } });
    });
    await page.getByRole('link', { name: 'API keys' }).click();
    await page.getByRole('button', { name: 'Create key' }).click();
    const button = page.locator('#create').getByRole('button', { name: 'Create key' });
    await button.dblclick();
    goOn();
    await page.locator('#made').waitFor();
    expect(made).toBe(1);
  });

  it('rents once when the answer is lost and the person asks again', async () => {
    const keys: string[] = [];
    await page.route('**/api/v1/offers/search', (route) => route.fulfill({ json: { data: [OFFER] } }));
    await answer('**/api/v1/instances', 'POST', async (route) => {
      keys.push(route.request().headers()['idempotency-key'] ?? '');
      if (keys.length < 4) return route.abort('connectionreset');
      return route.fulfill({ status: 201, json: { id: 'i-1', name: 'again' } });
    });
    await page.getByRole('link', { name: 'Rent a GPU' }).click();
    await page.getByRole('button', { name: 'Rent 1 × NVIDIA-L4' }).click();
    const dialog = page.locator('#rent');
    const button = dialog.getByRole('button', { name: /^Rent for/ });
    const lose = () =>
      Promise.all([page.waitForEvent('requestfailed', (one) => one.method() === 'POST'), button.click()]);
    await lose();
    await dialog.getByText('The server cannot be reached').waitFor();
    await lose();
    await dialog.getByLabel('Name', { exact: true }).fill('another order');
    await lose();
    await button.click();
    await dialog.waitFor({ state: 'detached' });
    const [first, again, other, last] = keys;
    expect(first).toMatch(/^[0-9a-f-]{36}$/);
    expect([again, last]).toEqual([first, other]);
    expect(other).not.toBe(first);
  });
});
