import type { Browser, Page, Route } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { NotFoundError } from '../../../src/kube/errors.ts';
import { buildPage } from '../../../tools/lib/page.ts';
import { launchBrowser, STEP_MS } from '../../support/browser/browser.ts';
import { accountOf } from '../../support/dashboard-view.ts';
import { type LoneApi, startLoneApi } from '../../support/http/lone-api.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';
import { describeWith } from '../../support/needs.ts';

const USER = { username: 'system:serviceaccount:team:ann' };
const NOT_FOUND = { message: 'not found', status: 404, reason: 'NotFound' };

/** The API server of a person who may do everything. */
const client = {
  raw: (_method: string, path: string) =>
    Promise.resolve({
      status: path.endsWith('/tokenreviews')
        ? { authenticated: true, user: USER, audiences: ['berth'] }
        : { allowed: true },
    }),
  list: () => Promise.resolve({ items: [] }),
  get: () => Promise.reject(new NotFoundError(NOT_FOUND)),
} as unknown as Partial<KubeClient>;

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
    api = await startLoneApi({ tenants: ['team'], instances: own, client });
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
  });

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
});
