import axe from 'axe-core';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { INDEXES } from '../../../src/caches/indexes.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { Cache } from '../../../src/kube/watch/cache.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { buildPage } from '../../../tools/lib/page.ts';
import { findProgram } from '../../../tools/lib/shell.ts';
import { type LoneApi, startLoneApi } from '../../support/http/lone-api.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';
import { describeWith } from '../../support/needs.ts';
import { waitFor } from '../../support/wait-for.ts';

const HOSTILE = `<img src=x onerror="document.title='owned'">'"$(id)`;
const MANY = 1000;

/** Milliseconds by which the clock of the API is before that of the page. */
let skew = 0;
const real = systemClock();
const clock: Clock = { ...real, now: () => real.now() + skew };

let hasAccount = true;
let isEditor = true;
const patches: unknown[] = [];

/** The API server, as far as a person who signs in and looks needs one. */
const client = {
  raw: (_method: string, path: string, body: { spec: { resourceAttributes?: { verb: string } } }) => {
    const user = { username: 'system:serviceaccount:team:ann' };
    if (path.endsWith('/tokenreviews')) {
      return Promise.resolve({ status: hasAccount ? { authenticated: true, user, audiences: ['berth'] } : {} });
    }
    return Promise.resolve({ status: { allowed: isEditor || body.spec.resourceAttributes?.verb === 'list' } });
  },
  list: () => Promise.resolve({ items: [] }),
  patch: (_type: unknown, ref: { name: string }, patch: unknown) => {
    patches.push(patch);
    return Promise.resolve(instance(ref.name));
  },
} as unknown as Partial<KubeClient>;

const instances = new Cache<GpuInstance>({ indexers: INDEXES.instances, onListenerError: () => undefined });
let version = 1;

function instance(name: string, displayName = name): GpuInstance {
  version += 1;
  const made = gpuInstance(name, { displayName }, { claim: claimOn('node-1') });
  return { ...made, metadata: { ...made.metadata, namespace: 'team', resourceVersion: String(version) } };
}

function change(name: string, displayName: string): void {
  instances.upsert(instance(name, displayName));
  instances.advance(String(version));
}

describeWith('chromium')('the page', () => {
  let browser: Browser;
  let page: Page;
  let api: LoneApi;
  let url: string;
  const complaints: string[] = [];
  /** Event streams that the page has asked for. */
  let streams = 0;

  async function signIn(): Promise<void> {
    await page.goto(`${url}/dashboard`);
    await page.getByLabel('Kubernetes token').fill('opaque');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
  }

  beforeAll(async () => {
    await buildPage();
    instances.replace(
      Array.from({ length: MANY }, (_, at) => instance(`i-${at}`)),
      '1',
    );
    instances.advance(String(version));
    api = await startLoneApi({ tenants: ['team'], instances: instances.store, client, clock });
    // Of all names over plain HTTP, browsers keep the cookie for this one.
    url = `http://localhost:${api.address.port}`;
    browser = await chromium.launch({ executablePath: (await findProgram('chromium')) ?? '', args: ['--no-sandbox'] });
    page = await browser.newPage({ viewport: { width: 1180, height: 800 }, reducedMotion: 'reduce' });
    page.on('request', (request) => void (streams += Number(request.headers()['accept'] === 'text/event-stream')));
    page.on('console', (message) => void (message.type() === 'error' && complaints.push(message.text())));
    page.on('pageerror', (error) => complaints.push(error.message));
    await signIn();
  });

  afterAll(async () => {
    await browser.close();
    await api.close();
  });

  it('shows a thousand instances, and what changes in them', async () => {
    await page.getByRole('row', { name: /i-999/ }).first().waitFor();
    expect(await page.locator('tbody tr').count()).toBe(MANY);
    for (let at = 0; at < 50; at += 1) change(`i-${at}`, `changed ${at}`);
    await page.getByRole('link', { name: 'changed 49' }).waitFor();
    expect(await page.getByRole('link', { name: /^changed/ }).count()).toBe(50);
    instances.remove(instance('i-999'));
    instances.advance(String((version += 1)));
    await page.getByRole('link', { name: 'i-999', exact: true }).waitFor({ state: 'detached' });
  });

  it('sets text of tenants as text', async () => {
    change('i-7', HOSTILE);
    await page.getByRole('link', { name: HOSTILE }).waitFor();
    expect(await page.locator('img[src=x]').count()).toBe(0);
    expect(await page.title()).not.toBe('owned');
  });

  it('changes an instance by the same call as a key', async () => {
    await page.goto(`${url}/dashboard/instances/i-8`);
    await page.getByRole('button', { name: 'Rename' }).click();
    await page.getByLabel('Name', { exact: true }).fill("Ann's");
    await page.getByText('The same without this page').click();
    const [curl = '', kubectl = ''] = await page.locator('#action .copy-line code').allTextContents();
    expect(curl).toContain(String.raw`-d '{"name":"Ann'\''s"}'`);
    expect(kubectl).toContain(String.raw`-p '{"spec":{"displayName":"Ann'\''s"}}'`);
    await page.locator('#action').getByRole('button', { name: 'Rename' }).click();
    await page.locator('#action').waitFor({ state: 'detached' });
    expect(patches).toEqual([expect.objectContaining({ spec: { displayName: "Ann's" } })]);
  });

  it('shows no button to somebody who may only look', async () => {
    isEditor = false;
    await page.reload();
    await page.getByRole('heading', { name: 'Where the seconds of the start went' }).waitFor();
    expect(await page.getByRole('button', { name: /Rename|Delete/ }).count()).toBe(0);
    isEditor = true;
  });

  it('goes on after its token has ended', async () => {
    await page.goto(`${url}/dashboard`);
    await page.getByRole('link', { name: 'i-200', exact: true }).waitFor();
    const opened = streams;
    skew += 46_000;
    await waitFor('another stream', () => streams > opened);
    change('i-200', 'after the token');
    await page.getByRole('link', { name: 'after the token' }).waitFor();
  });

  it.each(['/instances/i-8', '/rent', '/ssh-keys', '/api-access'])('axe finds nothing in %s', async (path) => {
    await page.goto(`${url}/dashboard${path}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.evaluate(axe.source);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      const { violations } = await page.evaluate<axe.AxeResults>('axe.run()');
      expect(violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)).toEqual([]);
    }
  });

  it('goes back to the sign-in when the account is gone', async () => {
    hasAccount = false;
    await page.reload();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    hasAccount = true;
  });

  it('broke no policy and threw no error', () => {
    expect(complaints.filter((text) => !/status of (?:401|403|404|409)/.test(text))).toEqual([]);
  });
});
