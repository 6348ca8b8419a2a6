import type { TestProject } from 'vitest/node';
import { systemClock } from '../../../src/lib/clock.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { applyFinalizers } from '../../../tools/cluster/apply.ts';
import { kindsCounted } from '../../support/kinds-counted.ts';
import { isEven, SEED } from './seed.ts';

declare module 'vitest' {
  interface ProvidedContext {
    seed: number;
  }
}

/**
 * Prints the seed of the run. With an even seed the Kubernetes of the run adds the finalizers, and the pod of a first
 * start bears its claim.
 */
export async function setup(project: TestProject): Promise<void> {
  project.provide('seed', SEED);
  const isAdmitted = isEven(SEED);
  await Promise.all(
    project.getProvidedContext().clusters.map(async ({ kubeconfig }) => {
      const client = createKubeClient(await loadKubeConfig({ kubeconfig }), { clock: systemClock() });
      if (isAdmitted) await applyFinalizers(client, new AbortController().signal);
      await kindsCounted(client);
      await client.close();
    }),
  );
  const finalizers = isAdmitted
    ? 'added by admission, claims on pods'
    : 'added by the controller, claims in the status';
  process.stderr.write(`Fault suite: seed ${SEED}, finalizers ${finalizers}; BERTH_FAULT_SEED=${SEED} repeats it.\n`);
}
