import type { TestProject } from 'vitest/node';
import { builtDriver } from './support/built-driver.ts';
import type { Driver } from './support/driver.ts';
import { kindDriver } from './support/kind-driver.ts';
import { setStage } from './support/stage.ts';

declare module 'vitest' {
  interface ProvidedContext {
    e2e: { kubeconfig: string; auditLog: string; helm: string; chart: string; kubectl: string; initPid?: number };
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const driver: Driver = process.env['BERTH_E2E_DRIVER'] === 'kind' ? kindDriver : builtDriver;
  const { cluster, helm, chart } = await setStage('e2e', driver);
  const { kubeconfig, auditLog, kubectl, initPid } = cluster;
  project.provide('e2e', { kubeconfig, auditLog, helm, chart, kubectl, ...(initPid !== undefined && { initPid }) });
  return () => cluster.stop();
}
