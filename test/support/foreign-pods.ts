import { findCondition } from '../../src/kube/conditions.ts';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { RESOURCE_CLAIMS, type ResourceClaim } from '../../src/kube/devices.ts';
import { type Pod, PODS } from '../../src/kube/types.ts';
import { waitFor } from './wait-for.ts';

/** Pods of others on the nodes with this label, whose value is the namespace. */
export interface Foreign {
  client: KubeClient;
  namespace: string;
  label: string;
  /** Has the scheduler look again at those that wait. */
  wake?: () => Promise<unknown>;
}

/**
 * Makes pods that ask for one of a resource each, and resolves with how many have a node: once the scheduler has looked at
 * each, and `isDone` says that it will place no more of them.
 */
export async function placePods(
  foreign: Foreign,
  resources: readonly string[],
  prefix: string,
  isDone: (placed: number) => boolean | Promise<boolean>,
): Promise<number> {
  const { client, namespace, label, wake } = foreign;
  const names = resources.map((_, index) => `${prefix}-${index}`);
  for (const [index, resource] of resources.entries()) {
    const pod: Pod = {
      metadata: { namespace, name: names[index] ?? '' },
      spec: {
        containers: [{ name: 'main', image: 'foreign', resources: { limits: { [resource]: '1' } } }],
        nodeSelector: { [label]: namespace },
        tolerations: [{ operator: 'Exists' }],
      },
    };
    await client.create(PODS, pod);
  }
  return await waitFor(`the scheduler to have looked at all of ${resources.length} ${resources[0]}`, async () => {
    const found = await Promise.all(names.map((name) => client.get(PODS, { namespace, name })));
    const isSeen = found.every(({ status }) => findCondition(status?.conditions, 'PodScheduled') !== undefined);
    const placed = found.filter(({ spec }) => spec?.nodeName !== undefined).length;
    // One that has a claim already has its node a moment later.
    if (isSeen && (await isDone(placed)) && (await claimsOf(foreign, prefix)).length === placed) return placed;
    if (isSeen) await wake?.();
    return false;
  });
}

/** Removes those of a prefix, and waits until their claims are gone too. */
export async function removePods(foreign: Foreign, prefix: string): Promise<void> {
  const { client, namespace } = foreign;
  const { items } = await client.list(PODS, { namespace });
  const own = items.filter(({ metadata }) => metadata.name.startsWith(prefix));
  // Those that wait go first. One that goes while the scheduler places it leaves its device taken there for good.
  const waitingFirst = own.toSorted(
    (a, b) => Number(a.spec?.nodeName !== undefined) - Number(b.spec?.nodeName !== undefined),
  );
  for (const { metadata } of waitingFirst) await client.delete(PODS, metadata, { gracePeriodSeconds: 0 });
  await waitFor('their claims to be gone', async () => (await claimsOf(foreign, prefix)).length === 0);
}

/** The claims whose names begin so. Kubernetes keeps one until what it has is given back. */
export async function claimsOf({ client, namespace }: Foreign, prefix: string): Promise<ResourceClaim[]> {
  const { items } = await client.list(RESOURCE_CLAIMS, { namespace });
  return items.filter(({ metadata }) => metadata.name.startsWith(prefix));
}
