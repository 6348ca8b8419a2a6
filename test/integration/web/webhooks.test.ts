import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook as Verifier } from 'standardwebhooks';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { account, BERTH_EDIT, BERTH_VIEW, KEY_RIGHTS } from '../../support/accounts.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { type DashboardView, openDashboard } from '../../support/dashboard-view.ts';
import { type DashboardWorld, dashboardWorld } from '../../support/dashboard-world.ts';
import { kindsCounted } from '../../support/kinds-counted.ts';
import { bodyOf } from '../../support/local-server.ts';
import { describeWith } from '../../support/needs.ts';
import { waitFor } from '../../support/wait-for.ts';

const HOSTILE = `<img src=x onerror="document.title='owned'">'"$(id)`;
/** Milliseconds. An event is recorded a quarter of a minute after it happened. */
const RECORDED_MS = 60_000;

let world: DashboardWorld;
let notifier: BerthProcess;
let receiver: Server;
let url: string;
/** The secrets that the page has shown. */
const secrets: string[] = [];
/** What the receiver got whose signature is that of the last secret. */
const verified: unknown[] = [];
let editor: string;
let viewer: string;

async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await bodyOf(request);
  verified.push(new Verifier(secrets.at(-1) ?? '').verify(body, request.headers as Record<string, string>));
  response.writeHead(204).end();
}

beforeAll(async () => {
  world = await dashboardWorld({ BERTH_WEBHOOKS: 'true' });
  const { client, name } = world.tenant;
  await kindsCounted(client);
  const env = { BERTH_WEBHOOK_NETWORKS: '127.0.0.0/8' };
  notifier = await startBerth(inject('cluster').kubeconfig, 'notifier', world.namespace, { env });
  receiver = createServer((request, response) => void take(request, response)).listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook?of=us`;
  editor = await account(client, name, 'editor', [...BERTH_EDIT, ...KEY_RIGHTS]);
  viewer = await account(client, name, 'viewer', [...BERTH_VIEW, ...KEY_RIGHTS]);
}, 120_000);

afterAll(async () => {
  receiver.closeAllConnections();
  receiver.close();
  for (const one of [notifier, world]) await one[Symbol.asyncDispose]();
});

describeWith('chromium')('webhooks in the page', () => {
  let view: DashboardView;

  beforeAll(async () => {
    view = await openDashboard(world.api.url);
    await view.signIn(editor, '/webhooks');
  });
  afterAll(() => view[Symbol.asyncDispose]());

  const row = () => view.page.getByRole('table', { name: 'Webhooks' }).getByRole('row', { name: HOSTILE });

  /** Reads the secret, and closes its dialog. */
  async function takeSecret(): Promise<void> {
    const dialog = view.page.locator('#webhook-secret');
    secrets.push(await dialog.getByLabel('Secret', { exact: true }).inputValue());
    expect(await view.findings()).toEqual([]);
    await dialog.getByRole('button', { name: 'Done' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(await view.page.content()).not.toContain(secrets.at(-1));
  }

  it('one is made, with the words of the API for what is wrong, and its secret is shown once', async () => {
    const { page, findings, picture } = view;
    await page.getByRole('heading', { name: 'No webhooks yet' }).waitFor();
    expect(await findings()).toEqual([]);
    await page.getByRole('button', { name: 'Add webhook' }).click();
    const dialog = page.locator('#add-webhook');
    await dialog.getByLabel('URL', { exact: true }).fill('ftp://example.com');
    await dialog.getByLabel('Events', { exact: true }).fill('instance.ready, instance.Deleted');
    await dialog.getByLabel('Name', { exact: true }).fill(HOSTILE);
    await dialog.getByRole('button', { name: 'Add webhook' }).click();
    await dialog.locator('#webhook-url-help.wrong').filter({ hasText: 'absolute URL' }).waitFor();
    await dialog.locator('#webhook-events-help.wrong').filter({ hasText: 'budget.spent' }).waitFor();
    expect(await findings()).toEqual([]);
    await picture('webhook-refused');
    await dialog.getByLabel('URL', { exact: true }).fill(url);
    await dialog.getByLabel('Events', { exact: true }).fill('instance.ready instance.deleted');
    await dialog.getByText('Copy as curl or berth').click();
    expect(await dialog.locator('.copy-line code').allTextContents()).toEqual([
      expect.stringMatching(/^curl -X POST .*"events":\["instance.ready","instance.deleted"\].*\/api\/v1\/webhooks'$/),
      expect.stringMatching(/^berth webhooks add --event=instance.ready --event=instance.deleted /),
    ]);
    await dialog.getByRole('button', { name: 'Add webhook' }).click();
    await takeSecret();
    await row().getByText('not known yet').or(row().getByText('No event has come yet.')).waitFor();
  });

  it('says how its deliveries go', async () => {
    const { client, name: namespace } = world.tenant;
    const spec = { gpu: { product: 'NVIDIA-A100-SXM4-80GB', count: 1 } };
    await client.create(GPU_INSTANCES, { metadata: { namespace, name: 'told' }, spec } as never);
    await row().getByText('The target takes events.').waitFor({ timeout: RECORDED_MS });
    await row().locator('time').waitFor();
    expect(verified).toEqual([expect.objectContaining({ type: 'instance.ready' })]);
    expect(await view.findings()).toEqual([]);
    await view.picture('webhooks');
  });

  it('gets another secret, which signs what comes then', async () => {
    const { page } = view;
    await page.getByRole('button', { name: `New secret of ${HOSTILE}` }).click();
    await page.getByRole('heading', { name: 'Replace the secret?' }).waitFor();
    expect(await view.findings()).toEqual([]);
    await page.locator('#rotate').getByRole('button', { name: 'Replace' }).click();
    await takeSecret();
    expect(new Set(secrets).size).toBe(2);
    await world.tenant.client.delete(GPU_INSTANCES, { namespace: world.tenant.name, name: 'told' });
    await waitFor('the next event', () => verified.length === 2, RECORDED_MS);
  });

  it('who may only look sees its host, and no button', async () => {
    await using other = await openDashboard(world.api.url);
    await other.signIn(viewer, '/webhooks');
    const seen = other.page.getByRole('table', { name: 'Webhooks' }).getByRole('row', { name: HOSTILE });
    await seen.getByText(`${new URL(url).origin}/***`).waitFor();
    expect(await other.page.getByRole('button', { name: /webhook|secret|Delete/i }).count()).toBe(0);
    expect(other.answers.join('\n')).not.toContain('of=us');
  });

  it('is deleted after a question', async () => {
    const { page } = view;
    await page.getByRole('button', { name: `Delete ${HOSTILE}` }).click();
    await page.locator('#delete').getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('heading', { name: 'No webhooks yet' }).waitFor();
  });

  it('the secrets are in no log and in one answer each, and nothing ran', async () => {
    const { answers, complaints, page } = view;
    const logs = [...world.api.processes, world.dashboard, notifier].map((one) => one.log()).join('');
    for (const secret of secrets) {
      expect(logs).not.toContain(secret);
      expect(answers.filter((text) => text.includes(secret))).toHaveLength(1);
    }
    expect(complaints.filter((text) => !/status of (?:401|422)/.test(text))).toEqual([]);
    expect(await page.title()).not.toBe('owned');
  });
});
