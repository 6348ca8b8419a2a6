import { inject } from 'vitest';
import { BUSYBOX_IMAGE } from '../../tools/cluster/built/real-node.ts';
import { type BerthProcess, startBerth } from './berth-process.ts';
import { type Replicas, startReplicas } from './http/replicas.ts';
import { type TestNamespace, testNamespace } from './test-cluster.ts';

/** What the page needs, each role in processes of its own, with a namespace to rent in. */
export interface DashboardWorld extends AsyncDisposable {
  tenant: TestNamespace;
  /** Berth's own. */
  namespace: string;
  api: Replicas;
  dashboard: BerthProcess;
}

/**
 * The dashboard, two replicas of the api role behind a proxy, and the controller, in a namespace of the shared cluster.
 * @param settings of dashboard and api, beside their own
 */
export async function dashboardWorld(settings: Record<string, string> = {}): Promise<DashboardWorld> {
  const { kubeconfig } = inject('cluster');
  const tenant = await testNamespace();
  const namespace = await tenant.home();
  const dashboard = await startBerth(kubeconfig, 'dashboard', namespace, {
    env: { ...settings, BERTH_TRUST_PROXY: '1' },
  });
  const env = { ...settings, BERTH_DASHBOARD_URL: dashboard.url, BERTH_DEFAULT_IMAGE: BUSYBOX_IMAGE };
  const [api, controller] = await Promise.all([
    startReplicas(kubeconfig, { namespace, env }),
    startBerth(kubeconfig, 'controller', namespace),
  ]);
  return {
    tenant,
    namespace,
    api,
    dashboard,
    async [Symbol.asyncDispose]() {
      for (const one of [api, dashboard, controller, tenant]) await one[Symbol.asyncDispose]();
    },
  };
}
