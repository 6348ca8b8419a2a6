import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { makeAdministrator, signInLink } from '../../../tools/cluster/sign-in.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { accountOf, type DashboardView, openDashboard, signOut } from '../../support/dashboard-view.ts';
import { describeWith } from '../../support/needs.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';

/** As `npm start` and `npm run sign-in` make it: all of Berth in one process, and the account of the local cluster. */
describeWith('chromium')('the link that signs in', () => {
  let tenant: TestNamespace;
  let berth: BerthProcess;
  let view: DashboardView;

  beforeAll(async () => {
    tenant = await testNamespace();
    await makeAdministrator(tenant.client, AbortSignal.timeout(30_000));
    berth = await startBerth(inject('cluster').kubeconfig, 'all', await tenant.home(), {
      env: { BERTH_LOG_LEVEL: 'trace' },
    });
    view = await openDashboard(berth.url);
  }, 120_000);
  afterAll(async () => {
    const paths = [
      '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/berth-administrator',
      '/api/v1/namespaces/default/serviceaccounts/berth-administrator',
    ];
    for (const path of paths) await tenant.client.raw('DELETE', path);
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
  }, 120_000);
});
