import { NAMESPACES } from '../../../src/kube/types.ts';
import type { World } from './world.ts';

/** Whether RBAC lets the user do this in the namespace. */
export async function may(
  world: World,
  user: string,
  { verb, resource, namespace }: { verb: string; resource: string; namespace: string },
): Promise<boolean> {
  const { stdout } = await world.kubectl(['auth', 'can-i', verb, resource, '-n', namespace, '--as', user]);
  return stdout.trim() === 'yes';
}

/** Makes the namespace a tenant, or no tenant any more. */
export async function setTenant({ client }: World, name: string, isTenant: boolean): Promise<void> {
  const labels = { 'berth.dev/tenant': isTenant ? 'true' : null };
  await client.patch(NAMESPACES, { name }, { metadata: { labels } }, { type: 'merge' });
}
