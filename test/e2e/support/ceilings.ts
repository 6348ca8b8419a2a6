import { join } from 'node:path';
import { expect } from 'vitest';
import { NAMESPACES, RESOURCE_QUOTAS } from '../../../src/kube/types.ts';
import { SSH_KEYS } from '../../../src/resources/ssh-key.ts';
import { TENANT_LIMITS } from '../../../src/resources/tenants/tenant-limit.ts';
import { TENANT_POLICIES } from '../../../src/resources/tenants/tenant-policy.ts';
import { ROOT } from '../../../tools/lib/paths.ts';
import { waitFor } from '../../support/wait-for.ts';
import type { World } from './world.ts';

const NAME = 'capped';

/** Puts the sample policy over a tenant, tries what it forbids, changes it, and tries again. */
export async function tryCeilings(world: World, publicKey: string): Promise<void> {
  const { client } = world;
  const ref = { namespace: NAME, name: 'berth' };
  const labels = { 'berth.dev/tenant': 'true', 'example.com/tier': 'trial' };
  await client.create(NAMESPACES, { metadata: { name: NAME, labels } });
  expect((await world.kubectl(['apply', '-f', join(ROOT, 'deploy/samples/tenantpolicy.yaml')])).code).toBe(0);
  const holds = (image: string) =>
    waitFor('the ceilings', async () => {
      const limit = await client.get(TENANT_LIMITS, ref).catch(() => undefined);
      return limit?.spec.images.includes(image);
    });
  const tried = (image: string) => {
    const metadata = { namespace: NAME, name: 'one' };
    const instance = { apiVersion: 'berth.dev/v1alpha1', kind: 'GPUInstance', metadata, spec: { image } };
    return world.kubectl(['create', '--dry-run=server', '-f', '-'], JSON.stringify(instance));
  };
  await holds('docker.io/library/*');
  expect((await tried('debian:12')).stderr).toBe('');
  expect((await tried('ghcr.io/any/app')).stderr).toContain('the operator can change images in TenantPolicy trial');

  const spec = { images: ['ghcr.io/any/*'], objects: { sshKeys: 0 } };
  await client.patch(TENANT_POLICIES, { name: 'trial' }, { spec }, { type: 'merge' });
  await holds('ghcr.io/any/*');
  await waitFor('the other image', async () => (await tried('ghcr.io/any/app')).code === 0);
  await waitFor('the quota', async () => {
    const { status } = await client.get(RESOURCE_QUOTAS, ref);
    return status?.hard?.['count/sshkeys.berth.dev'] === '0';
  });
  const key = { metadata: { namespace: NAME, name: 'one' }, spec: { publicKey, displayName: '' } };
  await expect(client.create(SSH_KEYS, key)).rejects.toThrow('exceeded quota: berth');
  await client.delete(TENANT_POLICIES, { name: 'trial' });
}
