import axe from 'axe-core';
import type { Browser, Page, Route } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { INDEXES } from '../../../src/caches/indexes.ts';
import { NotFoundError } from '../../../src/kube/errors.ts';
import { Cache } from '../../../src/kube/watch/cache.ts';
import type { Webhook } from '../../../src/resources/webhook.ts';
import type { KeyRecord } from '../../../src/web/key-record.ts';
import type { RegistryRecord, SshKeyRecord, WebhookWithSecret } from '../../../src/wire/records.ts';
import { buildPage } from '../../../tools/lib/page.ts';
import { launchBrowser, STEP_MS } from '../../support/browser/browser.ts';
import { tabTo } from '../../support/browser/tab-to.ts';
import { accountOf } from '../../support/dashboard-view.ts';
import { type LoneApi, startLoneApi } from '../../support/http/lone-api.ts';
import { describeWith } from '../../support/needs.ts';

const AT = '2026-11-01T08:00:00Z';
const SSH_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB ann@laptop';

/** Every person may do everything. */
const client = {
  raw: (_method: string, path: string) => {
    const user = { username: 'system:serviceaccount:team:ann' };
    const review = { authenticated: true, user, audiences: ['berth'] };
    return Promise.resolve({ status: path.endsWith('/tokenreviews') ? review : { allowed: true } });
  },
  list: () => Promise.resolve({ items: [] }),
  get: () => Promise.reject(new NotFoundError({ message: 'not found', status: 404, reason: 'NotFound' })),
} as unknown as Partial<KubeClient>;

const webhooks = new Cache<Webhook>({ indexers: INDEXES.webhooks, onListenerError: () => undefined });
const NO_WEBHOOKS = { store: webhooks.store, key: () => Promise.resolve(Buffer.alloc(32)) };

interface Sent {
  method: string;
  path: string;
  body: unknown;
}

const LAPTOP: SshKeyRecord = {
  id: 7,
  object: 'ssh_key',
  name: 'laptop',
  public_key: SSH_KEY,
  fingerprint: 'SHA256:abc',
  type: 'ssh-ed25519',
  created_at: AT,
};
const CI: KeyRecord & { token: string } = {
  id: 'k-1',
  object: 'api_key',
  namespace: 'team',
  name: 'ci',
  prefix: 'berth_ab',
  scopes: ['models'],
  state: 'active',
  created_at: AT,
  expires_at: null,
  last_used_at: null,
  token: 'berth_abcdef',
};
const ALERTS: WebhookWithSecret = {
  id: 'w-1',
  object: 'webhook',
  url: 'https://example.com/hook',
  events: null,
  name: 'alerts',
  secret_version: 1,
  delivering: null,
  last_delivered_at: null,
  failed_since: null,
  dropped: 0,
  created_at: AT,
  secret: 'whsec_abc',
};
const GHCR: RegistryRecord = {
  id: 'ghcr',
  object: 'registry',
  name: 'ghcr',
  server: 'ghcr.io',
  username: 'robot',
  created_at: AT,
};
/** What is made when something is sent to a list. */
const MADE: Record<string, object> = { 'ssh-keys': LAPTOP, keys: CI, webhooks: ALERTS, registries: GHCR };

describeWith('chromium')('the settings, by keyboard alone', () => {
  let browser: Browser;
  let page: Page;
  let api: LoneApi;
  /** What each list has. */
  const held = new Map<string, object>();
  const sent: Sent[] = [];
  const complaints: string[] = [];

  async function answer(route: Route): Promise<void> {
    const request = route.request();
    const { pathname } = new URL(request.url());
    const [, path = '', list = ''] = /\/api(?:\/v1)?(\/([^/]+).*)$/.exec(pathname) ?? [];
    if (request.method() === 'GET') {
      return route.fulfill({ json: { object: 'list', data: held.has(list) ? [held.get(list)] : [] } });
    }
    sent.push({ method: request.method(), path, body: request.postDataJSON() });
    const made = { ...MADE[list], ...(path.endsWith('/revoke') && { state: 'revoked' }) };
    if (request.method() === 'DELETE') held.delete(list);
    else held.set(list, made);
    return route.fulfill({ json: made });
  }

  beforeAll(async () => {
    await buildPage();
    api = await startLoneApi({ tenants: ['team'], client, webhooks: NO_WEBHOOKS });
    browser = await launchBrowser();
    page = await browser.newPage({ viewport: { width: 1180, height: 800 }, reducedMotion: 'reduce' });
    page.setDefaultTimeout(STEP_MS);
    page.on('console', (message) => void (message.type() === 'error' && complaints.push(message.text())));
    page.on('pageerror', (error) => complaints.push(error.message));
    await page.route(/\/api\/v1\/(ssh-keys|webhooks|registries)\b|\/dashboard\/api\/keys\b/, answer);
    await page.goto(`http://localhost:${api.address.port}/dashboard`);
    await tabTo(page, 'token');
    await page.keyboard.type('opaque');
    await page.keyboard.press('Enter');
    await accountOf(page).waitFor();
  }, 120_000);
  afterAll(async () => {
    await browser.close();
    await api.close();
  });
  beforeEach(() => void (sent.length = 0));

  async function press(name: string, key = 'Enter'): Promise<void> {
    await tabTo(page, name);
    await page.keyboard.press(key);
  }

  async function type(name: string, text: string): Promise<void> {
    await tabTo(page, name);
    await page.keyboard.type(text);
  }

  async function findings(): Promise<string[]> {
    await page.evaluate(axe.source);
    const { violations } = await page.evaluate<axe.AxeResults>('axe.run()');
    return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
  }

  /** Goes there, and finds nothing against an empty list. */
  async function goTo(place: string, empty: string): Promise<void> {
    await press(place);
    await page.getByRole('heading', { name: empty }).waitFor();
    expect(await findings()).toEqual([]);
  }

  /** One that is closed is still there for a moment, and takes its opener's next press for nothing new. */
  function dialogIsGone(): Promise<void> {
    return page.locator('dialog').waitFor({ state: 'detached' });
  }

  /** Asks to end what a row shows, changes its mind, and ends it. */
  async function endByQuestion(button: string, verb: string, question: string): Promise<void> {
    expect(await findings()).toEqual([]);
    await press(button);
    const title = page.getByRole('heading', { name: question });
    await title.waitFor();
    expect(await findings()).toEqual([]);
    await page.keyboard.press('Escape');
    await dialogIsGone();
    await press(button);
    await title.waitFor();
    await press(verb);
    await dialogIsGone();
  }

  it('adds an SSH key and deletes it', async () => {
    await goTo('SSH keys', 'No SSH keys yet');
    await type('Public key', SSH_KEY);
    await type('Name of the key', 'laptop');
    await press('Add key');
    await page.getByRole('rowheader', { name: 'laptop' }).waitFor();
    await endByQuestion('Delete laptop', 'Delete', 'Delete SSH key?');
    await page.getByRole('heading', { name: 'No SSH keys yet' }).waitFor();
    expect(sent).toEqual([
      { method: 'POST', path: '/ssh-keys', body: { public_key: SSH_KEY, name: 'laptop' } },
      { method: 'DELETE', path: '/ssh-keys/7', body: null },
    ]);
  });

  it('makes an API key for models only, and revokes it', async () => {
    await goTo('API keys', 'No API keys');
    await press('Create key');
    await page.getByRole('heading', { name: 'Create key' }).waitFor();
    await type('Name', 'ci');
    for (const scope of ['compute:read See offers, instances and SSH keys', 'compute:write Rent, change and delete'])
      await press(scope, 'Space');
    await press('Expires', 'End');
    expect(await findings()).toEqual([]);
    await press('Create key');
    await page.getByRole('heading', { name: 'Key created' }).waitFor();
    expect(await findings()).toEqual([]);
    // Nobody loses by a slip what is shown once.
    await page.keyboard.press('Escape');
    await press('Done');
    await dialogIsGone();
    await page.getByRole('rowheader', { name: 'ci' }).waitFor();
    await endByQuestion('Revoke ci', 'Revoke', 'Revoke key?');
    await page.getByRole('rowheader', { name: 'ci revoked' }).waitFor();
    const body = { namespace: 'team', name: 'ci', scopes: ['models'], expires_at: null };
    expect(sent).toEqual([
      { method: 'POST', path: '/keys', body },
      { method: 'POST', path: '/keys/team/k-1/revoke', body: null },
    ]);
  });

  it('adds a webhook, sees its secret once, and deletes it', async () => {
    await goTo('Webhooks', 'No webhooks yet');
    await press('Add webhook');
    await page.getByRole('heading', { name: 'Add webhook' }).waitFor();
    await type('URL', 'https://example.com/hook');
    await type('Name', 'alerts');
    expect(await findings()).toEqual([]);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Signing secret' }).waitFor();
    expect(await page.getByLabel('Secret', { exact: true }).inputValue()).toBe('whsec_abc');
    expect(await findings()).toEqual([]);
    await press('Done');
    await dialogIsGone();
    await endByQuestion('Delete alerts', 'Delete', 'Delete this webhook?');
    await page.getByRole('heading', { name: 'No webhooks yet' }).waitFor();
    expect(sent).toEqual([
      { method: 'POST', path: '/webhooks', body: { url: 'https://example.com/hook', name: 'alerts' } },
      { method: 'DELETE', path: '/webhooks/w-1', body: null },
    ]);
  });

  it('adds the login of a registry and deletes it', async () => {
    await goTo('Registries', 'No registries yet');
    await type('Name', 'ghcr');
    await type('Registry', 'ghcr.io');
    await type('User name', 'robot');
    await type('Password or token', 'hunter2');
    await page.keyboard.press('Enter');
    await page.getByRole('rowheader', { name: 'ghcr' }).waitFor();
    await endByQuestion('Delete ghcr', 'Delete', 'Delete this login?');
    await page.getByRole('heading', { name: 'No registries yet' }).waitFor();
    const body = { name: 'ghcr', server: 'ghcr.io', username: 'robot', password: 'hunter2' };
    expect(sent).toEqual([
      { method: 'POST', path: '/registries', body },
      { method: 'DELETE', path: '/registries/ghcr', body: null },
    ]);
  });

  it('broke no policy and threw no error', () => {
    expect(complaints.filter((text) => !/status of (?:401|403|404)/.test(text))).toEqual([]);
  });
});
