import { expect } from 'vitest';
import { PODS, SECRETS } from '../../../src/kube/types.ts';
import { INSTANCE_HISTORIES } from '../../../src/resources/instance-history.ts';
import { waitFor } from '../../support/wait-for.ts';
import { account, CREATE, custom } from './attack.ts';
import type { Tenant } from './http.ts';
import { NAMESPACE, TENANT } from './release.ts';
import { waysOf } from './ssh.ts';
import type { World } from './world.ts';

const MINUTES = 60_000;

/** The password of a registry goes where no role reads it, and goes with its record. */
async function tryRegistries({ client }: World, user: Tenant): Promise<void> {
  const credentials = { name: 'mine', server: 'registry.example.com', username: 'me', password: 'of the registry' };
  const made = await user.call('POST', '/api/v1/registries', credentials);
  expect(made.status, JSON.stringify(made.body)).toBe(201);
  const ref = { namespace: TENANT, name: 'mine' };
  expect((await client.get(SECRETS, ref)).type).toBe('kubernetes.io/dockerconfigjson');
  expect((await user.call('DELETE', '/api/v1/registries/mine')).status).toBe(200);
  await waitFor('no replica knows them', async () => {
    return (await user.call('DELETE', '/api/v1/registries/mine')).status === 404;
  });
  await waitFor('the Secret is gone', async () => {
    const { items } = await client.list(SECRETS, { namespace: TENANT });
    return items.every(({ metadata }) => metadata.name !== ref.name);
  });
}

/** The history of an instance is kept, and one whose week is over is removed by the next leader. */
async function tryHistories(world: World, user: Tenant, id: string): Promise<void> {
  const { client } = world;
  await waitFor('the history', async () => {
    const { body } = await user.call('GET', `/api/v1/instances/${id}/events`);
    return (body['data'] as { reason: string }[]).some(({ reason }) => reason === 'Ready');
  });
  const endedAt = '2026-01-01T00:00:00Z';
  const old = {
    ...custom('InstanceHistory', TENANT, { instance: 'old', instanceUid: 'u', dropped: 0, entries: [], endedAt }),
    metadata: { namespace: TENANT, name: 'h-old', annotations: { 'berth.dev/ended-at': endedAt } },
  };
  const made = await world.kubectl([...CREATE, '--as', account('controller')], JSON.stringify(old));
  expect(made.stderr).toBe('');
  for (const { metadata } of await world.pods(NAMESPACE, 'app.kubernetes.io/component=controller')) {
    await client.delete(PODS, metadata);
  }
  const left = async (): Promise<string[]> => {
    const { items } = await client.list(INSTANCE_HISTORIES, { namespace: TENANT });
    return items.map(({ spec }) => spec.instance);
  };
  await waitFor('it is gone', async () => !(await left()).includes('old'), 3 * MINUTES);
  await waitFor('the history is written', async () => (await left()).includes(id), MINUTES);
}

/** What a key alone shows of an instance and keeps for its tenant: log, history, credentials of registries. */
export async function tryRecords(world: World, user: Tenant, id: string): Promise<void> {
  const { status, body } = await user.call('GET', `/api/v1/instances/${id}/logs`);
  expect([status, body['instance_id']], JSON.stringify(body)).toEqual([200, id]);
  // The policies let the gateway reach the helper in the instance.
  expect(await waysOf(world)).toEqual(new Set(['direct']));
  await tryRegistries(world, user);
  await tryHistories(world, user, id);
}
