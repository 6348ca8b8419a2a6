import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { parse } from 'yaml';
import { readManifests } from '../../../tools/cluster/apply.ts';
import { signInLink } from '../../../tools/cluster/sign-in.ts';
import { ROOT } from '../../../tools/lib/paths.ts';
import { administrator } from '../../support/administrator.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { accountOf, type DashboardView, openDashboard, signOut } from '../../support/dashboard-view.ts';
import { blockWith, readManual } from '../../support/manual.ts';
import { describeWith } from '../../support/needs.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';

const run = promisify(execFile);
const CLUSTER_ROLES = '/apis/rbac.authorization.k8s.io/v1/clusterroles';

/** The lines under a title of the notes that `helm install` prints with the chart's defaults. */
async function linesOfNotes(title: string): Promise<string> {
  const snapshot = await readFile(join(ROOT, 'charts/berth/tests/__snapshot__/notes_test.yaml.snap'), 'utf8');
  const [rendered] = Object.values(parse(snapshot) as Record<string, { 1: string }>);
  const notes = parse(rendered?.[1] ?? '') as string;
  const section = notes.split(/^\d\. /m).find((text) => text.startsWith(title)) ?? '';
  const lines = section.split('\n').filter((line) => line.startsWith('   '));
  return lines.map((line) => line.slice(3)).join('\n');
}

/** Makes the roles for people that the chart brings; the returned function removes them. */
async function rolesOfChart(client: TestNamespace['client']): Promise<() => Promise<void>> {
  const names = ['berth-view', 'berth-edit', 'berth-admin'];
  const manifests = await readManifests(join(ROOT, 'deploy/base'));
  const roles = manifests.filter(({ kind, metadata }) => kind === 'ClusterRole' && names.includes(metadata.name));
  for (const role of roles) await client.raw('POST', CLUSTER_ROLES, role);
  return async () => {
    for (const name of names) await client.raw('DELETE', `${CLUSTER_ROLES}/${name}`);
  };
}

/** As `npm start` and `npm run sign-in` make it: all of Berth in one process, and the account of the local cluster. */
describeWith('chromium')('the link that signs in', () => {
  let tenant: TestNamespace;
  let berth: BerthProcess;
  let view: DashboardView;
  let removeAdministrator: () => Promise<void>;
  let removeRoles: () => Promise<void>;

  /** Runs lines as a reader pastes them. Returns what they print, line by line. */
  async function paste(lines: string): Promise<string[]> {
    const { programs = '', kubeconfig } = inject('cluster');
    const env = { ...process.env, KUBECONFIG: kubeconfig, PATH: `${programs}:${process.env['PATH']}` };
    return (await run('bash', ['-c', `set -eo pipefail; ${lines}`], { env })).stdout.trim().split('\n');
  }

  /** Opens every page that a renter has, of which none complains. */
  async function visitAll(): Promise<void> {
    const { page } = view;
    for (const place of ['Usage', 'Templates', 'Models', 'SSH keys', 'Registries', 'API keys']) {
      await page.getByRole('link', { name: place, exact: true }).click();
      await page.getByRole('heading', { level: 1, name: place }).waitFor();
      await page.getByRole('heading', { level: 2 }).first().waitFor();
      expect([place, await page.getByRole('alert').allTextContents()]).toEqual([place, []]);
    }
  }

  beforeAll(async () => {
    tenant = await testNamespace();
    removeAdministrator = await administrator(tenant.client);
    removeRoles = await rolesOfChart(tenant.client);
    berth = await startBerth(inject('cluster').kubeconfig, 'all', await tenant.home(), {
      env: { BERTH_LOG_LEVEL: 'trace' },
    });
    view = await openDashboard(berth.url);
  }, 120_000);
  afterAll(async () => {
    await removeAdministrator();
    await removeRoles();
    for (const one of [view, berth, tenant]) await one[Symbol.asyncDispose]();
  });

  it('leads to the start page, as somebody who may do all, and leaves no code behind', async () => {
    const { page } = view;
    const link = await signInLink(tenant.client, `${berth.url}/api/v1`);
    const code = link.split('#code=')[1] ?? '';
    expect(code.length).toBeGreaterThan(40);
    await page.goto(link);
    await accountOf(page).waitFor();
    await page.getByRole('link', { name: 'Fleet', exact: true }).waitFor();
    await page.getByRole('link', { name: 'Rent', exact: true }).waitFor();
    expect(page.url()).not.toContain('code');
    expect(view.requested.join('\n')).not.toContain(code);
    expect(berth.log()).toContain('/dashboard/api/session/by-code');
    expect(berth.log()).not.toContain(code);
    await page.reload();
    await accountOf(page).waitFor();
    expect(view.complaints).toEqual([]);

    await signOut(page);
    await page.getByLabel('Kubernetes token').waitFor();
    // The page is open already: only the fragment changes.
    await page.goto(link);
    await page.getByText('This link was used, or is older than a minute.').waitFor();
    await page.getByLabel('Kubernetes token').waitFor();
    expect(page.url()).not.toContain('code');
    expect(await view.findings()).toEqual([]);
    await view.picture('sign-in-link-used');

    await page.goto(await signInLink(tenant.client, `${berth.url}/api/v1`));
    await accountOf(page).waitFor();
    expect(page.url()).not.toContain('code');
    await signOut(page);
  }, 120_000);

  it('lets in a person with less by the lines of the document', async () => {
    const { page } = view;
    const { name } = tenant;
    const lines = blockWith(await readManual('build/local-cluster.md'), 'kubectl create serviceaccount me');
    // In a namespace of this test, which is the cluster's only other difference from that of the reader.
    const pasted = lines.replace(/^set -a;.*\n/, '').replace('serviceaccount=default:me', `serviceaccount=${name}:me`);
    const printed = await paste(`kubectl() { command kubectl --namespace=${name} "$@"; }\n${pasted}`);
    await page.context().clearCookies();
    await view.signIn(printed.at(-1) ?? '');
    await page.getByRole('heading', { name: 'No instances yet' }).waitFor();
    await visitAll();
    expect(await page.getByRole('link', { name: 'Fleet' }).count()).toBe(0);
  }, 120_000);

  it('lets in somebody who may do all in a namespace by the lines of the notes of the chart', async () => {
    const { page } = view;
    const { name } = tenant;
    // In a namespace of this test, which is the only difference from what the reader pastes.
    const printed = await paste((await linesOfNotes('Sign in to the dashboard')).replaceAll('alice', name));
    // Only at a terminal kubectl ends the token with a newline.
    const [token = '', hint] = printed.at(-1)?.split('Open http') ?? [];
    expect(hint).toContain('/dashboard and paste the token.');
    await page.context().clearCookies();
    await view.signIn(token);
    await accountOf(page).filter({ hasText: name }).waitFor();
    await visitAll();
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByLabel('Name', { exact: true }).fill('by the notes');
    await page.locator('#create').getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('heading', { name: 'Key created' }).waitFor();
  }, 120_000);
});
