import type { TestProject } from 'vitest/node';
import { type Addresses, startReplicas } from '../support/http/replicas.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The HTTP interface on the cluster of the worker: what passes, passes behind a load balancer. */
    api: Addresses;
    /** That of each worker. */
    apis: readonly Addresses[];
  }
}

/** Starts two replicas of the api role on each cluster of the tests, and ends them after the last test. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  await using stack = new AsyncDisposableStack();
  const apis = await Promise.all(
    project.getProvidedContext().clusters.map(async ({ kubeconfig }) => {
      const { url, replicas } = stack.use(await startReplicas(kubeconfig));
      return { url, replicas };
    }),
  );
  const [api] = apis;
  if (api === undefined) throw new Error('The tests have no cluster.');
  project.provide('apis', apis);
  // Each worker puts its own in its place.
  project.provide('api', { ...api });
  const started = stack.move();
  return () => started.disposeAsync();
}
