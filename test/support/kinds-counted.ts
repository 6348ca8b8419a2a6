import { randomBytes } from 'node:crypto';
import { hardOf, isUncounted } from '../../src/controllers/tenants/reconcile.ts';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { NAMESPACES, RESOURCE_QUOTAS } from '../../src/kube/types.ts';
import { DEFAULT_CEILINGS } from '../../src/resources/tenants/ceilings.ts';
import { waitFor } from './wait-for.ts';

/** Longer than Kubernetes takes to find a new kind. */
const FOUND_MS = 120_000;

/**
 * Waits until Kubernetes counts Berth's kinds in quotas, half a minute after they were defined. Before that the
 * controller makes and deletes quotas, and the API server refuses an object now and then.
 */
export async function kindsCounted(client: KubeClient): Promise<void> {
  const namespace = `counted-${randomBytes(4).toString('hex')}`;
  const quota = { metadata: { namespace, name: 'counted' }, spec: { hard: hardOf(DEFAULT_CEILINGS) } };
  await client.create(NAMESPACES, { metadata: { name: namespace } });
  await client.create(RESOURCE_QUOTAS, quota);
  await waitFor(
    'Kubernetes to count the kinds of Berth',
    async () => {
      const seen = await client.get(RESOURCE_QUOTAS, quota.metadata);
      if (seen.status?.hard === undefined) return false;
      if (!isUncounted(seen)) return true;
      // Kubernetes looks at a new quota at once, and at one that it knows minutes later.
      await client.delete(RESOURCE_QUOTAS, quota.metadata);
      await client.create(RESOURCE_QUOTAS, quota);
      return false;
    },
    FOUND_MS,
  );
  await client.delete(NAMESPACES, { name: namespace });
}
