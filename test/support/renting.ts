import { inject } from 'vitest';
import { createKey } from '../../src/access/create-key.ts';
import { GPU_INSTANCES } from '../../src/resources/instances/gpu-instance.ts';
import { type BerthProcess, startBerth } from './berth-process.ts';
import { type Call, clientOf } from './http/client.ts';
import type { TestNamespace } from './test-cluster.ts';
import { waitFor } from './wait-for.ts';

/** Starts Berth, and makes a key of the tenant that works. */
export async function startRenting(
  { client, name }: TestNamespace,
  displayName: string,
): Promise<{ berth: BerthProcess; call: Call }> {
  const berth = await startBerth(inject('cluster').kubeconfig);
  const { token } = await createKey(client, { namespace: name, displayName });
  const call = clientOf(berth.url, token);
  await waitFor('the key', async () => (await call('GET', '/offers')).status === 200);
  return { berth, call };
}

/** Deletes the instances of the tenant, and ends Berth when they are gone. */
export async function endRenting({ client, name: namespace }: TestNamespace, berth: BerthProcess): Promise<void> {
  const { items } = await client.list(GPU_INSTANCES, { namespace });
  await Promise.all(items.map(({ metadata }) => client.delete(GPU_INSTANCES, metadata)));
  await waitFor('no instance', async () => (await client.list(GPU_INSTANCES, { namespace })).items.length === 0);
  await berth[Symbol.asyncDispose]();
}
