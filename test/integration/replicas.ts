import type { TestProject } from 'vitest/node';
import { type Addresses, startReplicas } from '../support/http/replicas.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The HTTP interface that the integration tests share: what passes, passes behind a load balancer. */
    api: Addresses;
  }
}

/** Starts two replicas of the api role on the cluster of the tests, and ends them after the last test. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { kubeconfig } = project.getProvidedContext().cluster;
  const api = await startReplicas(kubeconfig);
  project.provide('api', { url: api.url, replicas: api.replicas });
  return async () => {
    await api[Symbol.asyncDispose]();
  };
}
