import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { GPU_POOLS, specVersion } from '../../../src/resources/gpu-pool.ts';
import { BERTH_EDIT, clusterAccount } from '../../support/accounts.ts';
import { type DashboardView, openDashboard, signOut } from '../../support/dashboard-view.ts';
import { waitFor } from '../../support/wait-for.ts';
import { openFront } from './front.ts';
import { openSession, signIn } from './http.ts';
import { kill, replicasOf } from './processes.ts';
import { dashboardAt, ingressOf, NAMESPACE, OTHER, TENANT } from './release.ts';
import type { World } from './world.ts';

/** What docs/use/http.md lets an operator do who is no administrator of the cluster. */
const OPERATOR = [
  { apiGroups: [''], resources: ['nodes', 'pods'], verbs: ['list'] },
  { apiGroups: ['berth.dev'], resources: ['gpupools', 'gpuinstances', 'tenantlimits'], verbs: ['list'] },
  { apiGroups: ['berth.dev'], resources: ['gpupools'], verbs: ['patch'] },
];
const API = 'app.kubernetes.io/component=api';
/** Counts in the log. */
const ON_START = 'count=0; while sleep 1; do count=$((count + 1)); echo "count $count"; done &';

/** Somebody who may rent in the other tenant's namespace, and sees the fleet and sets its prices. */
function operator(client: KubeClient): ReturnType<typeof clusterAccount> {
  return clusterAccount(client, OTHER, 'operator', { rules: BERTH_EDIT, everywhere: OPERATOR });
}

/** Opens the release by an Ingress, and lets its roles find each other in a cluster that resolves no names. */
export async function openRelease(world: World): Promise<void> {
  const dashboard = await world.service('berth-dashboard');
  await world.release.upgrade({ ...dashboardAt(dashboard), ...ingressOf('localhost') });
  const { host, port } = await world.service('berth-terminal');
  const api = ['deployment/berth-api', '-n', NAMESPACE];
  await world.kubectl(['set', 'env', ...api, `BERTH_TERMINAL_URL=http://${host}:${port}`]);
  expect(await world.kubectl(['rollout', 'status', ...api, '--timeout=3m'])).toMatchObject({ code: 0 });
}

/** Makes and revokes a key by the dashboard, as an admin of the namespace, and sets a price as an operator. Returns the key. */
export async function tryKeys(world: World): Promise<string> {
  const { host, port } = await world.service('berth-api');
  const base = `http://${host}:${port}`;
  const admin = await signIn(world.client, TENANT, base);
  const made = await admin('POST', '/keys', { namespace: TENANT, name: 'made', scopes: ['compute:read'] });
  expect(made.status, JSON.stringify(made.body)).toBe(201);
  const token = String(made.body['token']);
  const offers = async (): Promise<number> => {
    const headers = { authorization: `Bearer ${token}` };
    return (await fetch(`${base}/api/v1/offers`, { headers })).status;
  };
  await waitFor('the key works', async () => (await offers()) === 200);
  expect((await admin('POST', `/keys/${TENANT}/${String(made.body['id'])}/revoke`, {})).status).toBe(200);
  await waitFor('the key is dead', async () => (await offers()) === 401);
  const pool = await world.client.get(GPU_POOLS, { name: 'default' });
  const price = { product: '*', onDemand: '36', interruptible: '18' };
  const change = {
    version: specVersion(pool),
    currency: 'USD',
    sizes: pool.spec.sizes,
    prices: [price],
  };
  expect((await admin('PATCH', '/pools/default', change)).status).toBe(403);
  const { token: own } = await operator(world.client);
  const priced = await (await openSession(own, base))('PATCH', '/pools/default', change);
  expect(priced.status, JSON.stringify(priced.body)).toBe(200);
  return token;
}

async function name(world: World, id: string, displayName: string): Promise<void> {
  const patch = JSON.stringify({ spec: { displayName } });
  const { code, stderr } = await world.kubectl(['patch', 'gpuinstance', id, '-n', OTHER, '--type=merge', '-p', patch]);
  expect(code, stderr).toBe(0);
}

/** Sets the price of the pool in the page. */
async function setPrice(page: Page, price: string): Promise<void> {
  await page.getByRole('link', { name: 'Fleet' }).click();
  await page.getByRole('button', { name: 'Change the prices of default' }).click();
  await page.locator('#pool').getByLabel('On demand').fill(price);
  await page.locator('#pool').getByRole('button', { name: 'Save' }).click();
  await page.locator('.prices').getByText(`$${price}`).waitFor();
}

async function rent(page: Page): Promise<string> {
  await page.getByRole('link', { name: 'Rent', exact: true }).click();
  await page.getByRole('button', { name: 'Rent 1 × NVIDIA-L4', exact: true }).click();
  const dialog = page.locator('#rent');
  await dialog.getByLabel('Name', { exact: true }).fill('by the page');
  await dialog.getByLabel('Disk in GB').fill('1');
  await dialog.getByText('More', { exact: true }).click();
  await dialog.getByLabel('Script at the start').fill(ON_START);
  await dialog.getByRole('button', { name: 'Rent for $72.00 an hour' }).click();
  await page.getByRole('heading', { name: 'by the page' }).waitFor();
  await page.locator('.state.running').waitFor({ timeout: 120_000 });
  return page.url().split('/').at(-1) ?? '';
}

async function useTerminal(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Open terminal' }).click();
  const screen = page.locator('.xterm-rows');
  await waitFor('a prompt', async () => /[#$]\s*$/.test((await screen.innerText()).trim()));
  await page.keyboard.type('echo "the answer is $((6 * 7))"\n');
  const text = async (): Promise<string> => (await screen.innerText()).replaceAll('\u00A0', ' ');
  await waitFor('the answer', async () => (await text()).includes('the answer is 42'));
  await page.getByRole('button', { name: 'Close terminal' }).click();
}

async function counted(page: Page): Promise<string[]> {
  const lines = await page.locator('.log .line', { hasText: /^count \d+\s*$/ }).allInnerTexts();
  return lines.map((text) => text.trim());
}

/** Kills one replica after the other, so that each that serves the page is among them, and sees the page go on. */
async function killReplicas(world: World, page: Page, options: { initPid: number; id: string }): Promise<void> {
  const { initPid, id } = options;
  const running = async (): Promise<string[]> => {
    const pids = await replicasOf(initPid, 'api');
    const pods = await world.pods(NAMESPACE, API);
    const ready = pods.filter(({ status }) => status?.containerStatuses?.[0]?.ready === true);
    return pods.length === 2 && ready.length === 2 && pids.length === 2 ? pids : [];
  };
  const first = await waitFor('two replicas', async () => {
    const pids = await running();
    return pids.length === 2 && pids;
  });
  for (const [at, pid] of first.entries()) {
    const before = (await counted(page)).length;
    await kill(initPid, pid);
    await name(world, id, `after kill ${at}`);
    await page.getByRole('heading', { name: `after kill ${at}` }).waitFor();
    await waitFor('the log goes on', async () => (await counted(page)).length >= before + 3, 180_000);
    await waitFor(
      'the replica is back',
      async () => {
        const pids = await running();
        return pids.length === 2 && !pids.includes(pid);
      },
      180_000,
    );
  }
}

/** What a person does in the page, through the Ingress of the release, while its replicas die. */
export async function tryPage(world: World, initPid: number): Promise<void> {
  await using front = await openFront(world);
  await using view: DashboardView = await openDashboard(front.url);
  const { page } = view;
  const token = await world.kubectl(['create', 'token', 'operator', '-n', OTHER, '--audience=berth']);
  await view.signIn(token.stdout.trim());
  await page.getByRole('heading', { name: 'No instances yet' }).waitFor();
  await setPrice(page, '72.00');
  const id = await rent(page);
  await useTerminal(page);
  await waitFor('the log', async () => (await counted(page)).length >= 3);
  await killReplicas(world, page, { initPid, id });
  // None is missing and none came twice.
  const lines = await counted(page);
  expect(lines).toEqual(lines.map((_, at) => `count ${at + 1}`));
  await page.getByRole('link', { name: 'Instances', exact: true }).first().click();
  await page.getByRole('link', { name: 'after kill 1' }).waitFor();
  await name(world, id, 'by kubectl');
  await page.getByRole('link', { name: 'by kubectl' }).click();
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.locator('#action').getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('heading', { name: 'This instance is gone' }).waitFor({ timeout: 60_000 });
  await signOut(page);
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  expect(view.requested.filter((url) => !url.startsWith(front.url) && !url.startsWith('data:'))).toEqual([]);
  // A replica that dies breaks its answers off.
  expect(view.complaints.filter((text) => !/ERR_|status of (?:401|404)/.test(text))).toEqual([]);
}
