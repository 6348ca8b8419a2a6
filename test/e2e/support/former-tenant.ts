import { expect } from 'vitest';
import { waitFor } from '../../support/wait-for.ts';
import { tenant } from './http.ts';
import { setTenant } from './people.ts';
import type { World } from './world.ts';

interface Former {
  namespace: string;
  publicKey: string;
}

/** Takes the label of a tenant away, and reads what a caller is told. */
export async function tryFormerTenant(world: World, { namespace, publicKey }: Former): Promise<void> {
  const { host, port } = await world.service('berth-api');
  const former = await tenant(world.client, namespace, `http://${host}:${port}`);
  const register = () => former.call('POST', '/api/v1/ssh-keys', { name: 'any', public_key: publicKey });
  await waitFor('the key works', async () => (await register()).status === 201);
  await setTenant(world, namespace, false);
  const { error } = await waitFor('the label is missed', async () => {
    const { status, body } = await register();
    return status === 403 && (body as { error: { code: string; message: string } });
  });
  expect(error.code).toBe('not_a_tenant');
  expect(error.message).toContain(`kubectl label namespace ${namespace} berth.dev/tenant=true`);
  await setTenant(world, namespace, true);
}
