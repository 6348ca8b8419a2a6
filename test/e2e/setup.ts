import type { TestProject } from 'vitest/node';
import { NAMESPACES } from '../../src/kube/types.ts';
import { builtDriver } from './support/built-driver.ts';
import type { Driver, E2eCluster } from './support/driver.ts';
import { findKindDriver } from './support/kind-driver.ts';
import { setStage } from './support/stage.ts';

declare module 'vitest' {
  interface ProvidedContext {
    e2e: Pick<E2eCluster, 'kubeconfig' | 'auditLog' | 'kubectl' | 'initPid' | 'hostAddress'> & {
      helm: string;
      chart: string;
      /** The namespaces of the cluster before anything was installed. */
      namespaces: string[];
    };
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const driver: Driver = process.env['BERTH_E2E_DRIVER'] === 'kind' ? await findKindDriver() : builtDriver;
  const { cluster, helm, chart } = await setStage('e2e', driver);
  const { kubeconfig, auditLog, kubectl, initPid, hostAddress } = cluster;
  const namespaces = (await cluster.client.list(NAMESPACES)).items.map(({ metadata }) => metadata.name);
  project.provide('e2e', { kubeconfig, auditLog, helm, chart, kubectl, initPid, hostAddress, namespaces });
  return () => cluster.stop();
}
