import type { Browser, BrowserContext, Page, Route } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { buildPage } from '../../../tools/lib/page.ts';
import { allowedPerson } from '../../support/allowed-person.ts';
import { launchBrowser, STEP_MS } from '../../support/browser/browser.ts';
import { accountOf } from '../../support/dashboard-view.ts';
import { type LoneApi, startLoneApi } from '../../support/http/lone-api.ts';
import { describeWith } from '../../support/needs.ts';

const USED = { currency: 'USD', gpu_seconds: 3600, calls: 0, input_tokens: 0, output_tokens: 0, open: false };

function usage(cost: string, groups: readonly string[] = []) {
  const items = groups.map((group) => ({ ...USED, group, name: null, product: 'NVIDIA-L4', cost }));
  return { object: 'usage', totals: [{ ...USED, cost }], items };
}

describeWith('chromium')('what the page says of money', () => {
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let api: LoneApi;
  let url: string;

  beforeAll(async () => {
    await buildPage();
    api = await startLoneApi({ tenants: ['team'], client: allowedPerson });
    // Of all names over plain HTTP, browsers keep the cookie for this one.
    url = `http://localhost:${api.address.port}`;
    browser = await launchBrowser();
  }, 120_000);

  afterAll(async () => {
    await browser.close();
    await api.close();
  });

  beforeEach(async () => {
    context = await browser.newContext({ viewport: { width: 1180, height: 800 }, reducedMotion: 'reduce' });
    page = await context.newPage();
    page.setDefaultTimeout(STEP_MS);
    return () => context.close();
  }, 60_000);

  async function signIn(): Promise<void> {
    await page.goto(`${url}/dashboard`);
    await page.getByLabel('Kubernetes token').fill('opaque');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await accountOf(page).waitFor();
  }

  /** Answers questions about usage, each by its first and last day and its grouping. */
  async function bills(answer: (query: Record<string, string>, route: Route) => Promise<void>): Promise<void> {
    await page.route('**/api/v1/usage?*', async (route) => {
      const { searchParams } = new URL(route.request().url());
      const query = Object.fromEntries(searchParams);
      await answer(query, route);
    });
  }

  it('shows no amount of another time while that of the chosen one is not known', async () => {
    const month = `${new Date().toISOString().slice(0, 8)}01`;
    await bills(({ from, to }, route) =>
      from === month
        ? route.fulfill({ json: { ...usage('12.50'), from, to } })
        : route.fulfill({ status: 503, json: {} }),
    );
    await signIn();
    await page.goto(`${url}/dashboard/usage`);
    const main = page.getByRole('main');
    await main.getByText('$12.50').first().waitFor();
    await page.getByRole('radio', { name: 'Last month' }).check();
    await main.getByText('The server answered 503. Try again.').first().waitFor();
    expect(await main.getByText('$12.50').count()).toBe(0);
  });

  it('tells people apart whose names have the address of their identity provider', async () => {
    const people = ['ann', 'bob'].map((name) => `person/https://id.example.com/realms/gpu#${name}`);
    await bills(({ from, to, group }, route) =>
      route.fulfill({ json: { ...usage('1.00', group === 'key' ? people : []), from, to } }),
    );
    await signIn();
    await page.goto(`${url}/dashboard/usage`);
    const keys = page.getByRole('region', { name: 'By key' });
    await keys.getByRole('rowheader').first().waitFor();
    expect(await keys.getByRole('rowheader').allInnerTexts()).toEqual(people);
  });

  it('goes on to the next month when that begins', async () => {
    const asked: string[] = [];
    await bills(({ from = '', to, group }, route) => {
      if (group === 'key') asked.push(`${from} ${to}`);
      return route.fulfill({ json: { ...usage('1.00'), from, to } });
    });
    await signIn();
    await page.clock.install({ time: new Date('2026-11-30T23:59:30Z') });
    await page.goto(`${url}/dashboard/usage`);
    await expect.poll(() => asked, { timeout: STEP_MS }).toContain('2026-11-01 2026-11-30');
    await page.clock.runFor(60_000);
    await expect.poll(() => asked, { timeout: STEP_MS }).toContain('2026-12-01 2026-12-01');
  });

  it('shows prices to the last digit, for models and in the header', async () => {
    const price = { input: '0.075', output: '0.0005', currency: 'USD' };
    const model = {
      id: 'small',
      engine: 'vllm',
      dialects: { chat: 'native', responses: 'none', messages: 'none' },
      endpoints: [],
      ready_endpoints: 1,
      context_length: null,
      price_per_million_tokens: price,
    };
    await page.route('**/api/v1/models', (route) => route.fulfill({ json: { data: [model] } }));
    const priced = { billed_since: '2026-11-01T00:00:00.000Z', price_per_hour: '0.062857', currency: 'USD' };
    await page.route('**/api/v1/instances', (route) => route.fulfill({ json: { object: 'list', data: [priced] } }));
    await signIn();
    await page.goto(`${url}/dashboard/models`);
    await page.getByRole('cell', { name: '$0.075 in · $0.0005 out' }).waitFor();
    await page.getByRole('banner').getByText('$0.062857').waitFor();
  });

  it('adds a login of a registry and an SSH key once, however often they are sent', async () => {
    const sent: string[] = [];
    for (const path of ['registries', 'ssh-keys']) {
      await page.route(`**/api/v1/${path}`, async (route) => {
        if (route.request().method() !== 'POST') return route.fulfill({ json: { object: 'list', data: [] } });
        sent.push(path);
        await new Promise((settle) => setTimeout(settle, 300));
        const added = { id: sent.length, name: path, created_at: '2026-11-01T08:00:00Z' };
        return route.fulfill({ status: 201, json: added });
      });
    }
    await signIn();
    await page.goto(`${url}/dashboard/registries`);
    for (const [label, text] of Object.entries({ Name: 'hub', Registry: 'docker.io', 'User name': 'ann' }))
      await page.getByLabel(label, { exact: true }).fill(text);
    await page.getByLabel('Password or token').fill('secret');
    await page.getByRole('button', { name: 'Add registry' }).dblclick();
    await page.getByRole('rowheader', { name: 'registries' }).waitFor();
    await page.goto(`${url}/dashboard/ssh-keys`);
    await page.getByLabel('Public key', { exact: true }).fill('ssh-ed25519 AAAA ann@laptop');
    await page.getByRole('button', { name: 'Add key' }).dblclick();
    await page.getByRole('rowheader', { name: 'ssh-keys' }).waitFor();
    expect(sent).toEqual(['registries', 'ssh-keys']);
  });
});
