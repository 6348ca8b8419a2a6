import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { signInLink } from '../../../tools/cluster/sign-in.ts';
import { administrator } from '../../support/administrator.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { accountOf, type DashboardView, openDashboard, signOut } from '../../support/dashboard-view.ts';
import { blockWith, readManual } from '../../support/manual.ts';
import { describeWith } from '../../support/needs.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';

const run = promisify(execFile);

/** As `npm start` and `npm run sign-in` make it: all of Berth in one process, and the account of the local cluster. */
describeWith('chromium')('the link that signs in', () => {
  let tenant: TestNamespace;
  let berth: BerthProcess;
  let view: DashboardView;
  let removeAdministrator: () => Promise<void>;

  beforeAll(async () => {
    tenant = await testNamespace();
    removeAdministrator = await administrator(tenant.client);
    berth = await startBerth(inject('cluster').kubeconfig, 'all', await tenant.home(), {
      env: { BERTH_LOG_LEVEL: 'trace' },
    });
    view = await openDashboard(berth.url);
  }, 120_000);
  afterAll(async () => {
    await removeAdministrator();
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
    const { programs = '', kubeconfig } = inject('cluster');
    const { name } = tenant;
    const lines = blockWith(await readManual('build/local-cluster.md'), 'kubectl create serviceaccount me');
    // In a namespace of this test, which is the cluster's only other difference from that of the reader.
    const pasted = lines.replace(/^set -a;.*\n/, '').replace('serviceaccount=default:me', `serviceaccount=${name}:me`);
    const inNamespace = `set -eo pipefail; kubectl() { command kubectl --namespace=${name} "$@"; }\n${pasted}`;
    const env = { ...process.env, KUBECONFIG: kubeconfig, PATH: `${programs}:${process.env['PATH']}` };
    const token = (await run('bash', ['-c', inNamespace], { env })).stdout.trim().split('\n').at(-1) ?? '';
    await view.signIn(token);
    await page.getByRole('heading', { name: 'No instances yet' }).waitFor();
    for (const place of ['Usage', 'Templates', 'Models', 'SSH keys', 'Registries', 'API keys']) {
      await page.getByRole('link', { name: place, exact: true }).click();
      await page.getByRole('heading', { level: 1, name: place }).waitFor();
      await page.getByRole('heading', { level: 2 }).first().waitFor();
      expect([place, await page.getByRole('alert').allTextContents()]).toEqual([place, []]);
    }
    expect(await page.getByRole('link', { name: 'Fleet' }).count()).toBe(0);
  }, 120_000);
});
