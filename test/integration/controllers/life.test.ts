import { expect, test } from 'vitest';
import { KubeError } from '../../../src/kube/errors.ts';
import {
  EVENTS,
  type KubeObject,
  NAMESPACES,
  PODS,
  RESOURCE_QUOTAS,
  type ResourceType,
} from '../../../src/kube/types.ts';
import { API_KEYS } from '../../../src/resources/api-key.ts';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { GPU_POOLS } from '../../../src/resources/gpu-pool.ts';
import { INSTANCE_TEMPLATES, templateHash } from '../../../src/resources/instance-template.ts';
import { numericId } from '../../../src/resources/ids.ts';
import { SSH_KEYS } from '../../../src/resources/ssh-key.ts';
import { USAGE_RECORDS } from '../../../src/resources/usage-record.ts';
import { createWorld } from '../../faults/support/world.ts';
import { waitFor } from '../../support/wait-for.ts';

// Whoever else runs controllers in this cluster at the same time holds the lease first.
const LEASE_WAIT_MS = 50_000;

const WEBHOOKS: ResourceType<KubeObject & { webhooks: object[] }> = {
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: 'ValidatingWebhookConfiguration',
  plural: 'validatingwebhookconfigurations',
  namespaced: false,
};

test('an instance from creation to its usage record', async () => {
  await using world = await createWorld();
  await world.replica();
  await world.create('one', { gpu: { count: 2 }, env: [{ name: 'A', value: 'b' }] });
  const ready = await world.reached('one', 'Running', LEASE_WAIT_MS);
  expect(ready.status).toMatchObject({
    claim: { product: world.fleet.product, gpuCount: 2, pricePerHour: '7200.00', simulated: true },
    ssh: { host: 'ssh.test', port: 2222, user: `one.${world.namespace}` },
    podName: 'one-1',
    incarnation: 1,
    diskPersistent: false,
  });
  const stages = ready.status?.stages ?? {};
  const times = (['accepted', 'claimed', 'scheduled', 'pulled', 'started', 'ready'] as const).map((stage) =>
    Date.parse(stages[stage] ?? ''),
  );
  expect(times).toEqual(times.toSorted((a, b) => a - b));
  const [pod] = await world.pods();
  expect(pod?.spec).toMatchObject({ automountServiceAccountToken: false, priorityClassName: 'berth-on-demand' });
  const told = await waitFor('an Event about it', async () => {
    const { items } = await world.client.list(EVENTS, { namespace: world.namespace });
    return items.find(({ involvedObject, reason }) => involvedObject.name === 'one' && reason === 'Running');
  });
  expect(told.message).toContain('2 x');
  await world.remove('one');
  await world.gone('one');
  const { items } = await world.client.list(USAGE_RECORDS, { namespace: world.namespace });
  expect(items).toHaveLength(1);
  // A price of 3,600 per hour and GPU is a unit per GPU second.
  const { gpuSeconds, cost } = items[0]?.spec ?? { gpuSeconds: -1, cost: '' };
  expect(Number(cost)).toBeCloseTo(gpuSeconds, 1);
});

test('a pod gets every long text of its instance, which the caches of the controller lack, at each start', async () => {
  await using world = await createWorld();
  await world.replica();
  const [onStart, value] = [`true # ${'s'.repeat(40_000)}`, 'e'.repeat(30_000)];
  await world.create('one', { onStart, env: [{ name: 'A', value }], stats: 't'.repeat(100_000) });
  for (const start of ['one-1', 'one-2']) {
    await world.patch('one', { spec: { powerState: 'Running' } });
    await world.reached('one', 'Running', LEASE_WAIT_MS);
    const [pod] = await world.pods();
    const main = pod?.spec?.containers[0];
    expect([pod?.metadata.name, main?.command?.at(-1) === onStart]).toEqual([start, true]);
    expect(main?.env?.find(({ name }) => name === 'A')?.value === value).toBe(true);
    await world.patch('one', { spec: { powerState: 'Stopped' } });
    await world.reached('one', 'Stopped');
  }
});

test.each(['baseline', 'restricted'])('pods are admitted where Pod Security %s is enforced', async (level) => {
  await using world = await createWorld();
  const labels = { 'pod-security.kubernetes.io/enforce': level };
  await world.client.patch(NAMESPACES, { name: world.namespace }, { metadata: { labels } }, { type: 'merge' });
  await world.replica();
  for (const runtype of ['ssh', 'jupyter', 'args'] as const) {
    await world.create(runtype, { runtype });
    await world.reached(runtype, 'Running', LEASE_WAIT_MS);
  }
});

test('a quota without room is a reason, and room heals it', async () => {
  await using world = await createWorld();
  const quota = {
    metadata: { namespace: world.namespace, name: 'q' },
    spec: { hard: { 'requests.nvidia.com/gpu': '1' } },
  };
  await world.client.create(RESOURCE_QUOTAS, quota);
  await waitFor('the quota to be counted', async () => {
    const { status } = await world.client.get(RESOURCE_QUOTAS, quota.metadata);
    return status?.hard !== undefined;
  });
  await world.replica();
  await world.create('two', { gpu: { count: 2 } });
  const waiting = await world.reached('two', 'QuotaExceeded', LEASE_WAIT_MS);
  expect(waiting.status?.claim).toBeUndefined();
  const hard = { 'requests.nvidia.com/gpu': '2' };
  await world.client.patch(RESOURCE_QUOTAS, quota.metadata, { spec: { hard } }, { type: 'merge' });
  await world.reached('two', 'Running');
});

test('a webhook that nobody answers gives the place back and is named, and its end heals', async () => {
  await using world = await createWorld();
  const { namespace, client } = world;
  const webhook = {
    metadata: { name: namespace },
    webhooks: [
      {
        name: 'away.berth.test',
        clientConfig: { url: 'https://127.0.0.1:1/' },
        rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        timeoutSeconds: 1,
      },
    ],
  };
  await client.create(WEBHOOKS, webhook);
  try {
    await waitFor('the webhook to be in the way', async () => {
      const spec = { schedulerName: 'nobody', containers: [{ name: 'c', image: 'i' }] };
      try {
        await client.create(PODS, { metadata: { namespace, name: 'probe' }, spec });
      } catch (error) {
        return error instanceof KubeError && error.message.includes('failed calling webhook');
      }
      await client.delete(PODS, { namespace, name: 'probe' });
      return false;
    });
    await world.replica();
    await world.create('one', { gpu: { count: 8 } });
    await world.reached('one', 'PodRejected', LEASE_WAIT_MS);
    const free = await waitFor('the place to be given back, with the reason', async () => {
      const { claim, conditions, usage } = (await world.get('one'))?.status ?? {};
      const told = /away\.berth\.test.*refused\. The next start is due/.test(conditions?.[0]?.message ?? '');
      return claim === undefined && told ? { usage } : undefined;
    });
    expect(free.usage?.gpuSeconds ?? 0).toBe(0);
  } finally {
    await client.delete(WEBHOOKS, webhook.metadata);
  }
  await world.reached('one', 'Running', 60_000);
});

test('a template is merged, and one that is missing is waited for', async () => {
  await using world = await createWorld();
  await world.replica();
  const spec = {
    displayName: 't',
    image: 'pytorch/pytorch:2',
    env: [
      { name: 'A', value: 't' },
      { name: 'B', value: 't' },
    ],
  };
  await world.create('early', { templateHashId: templateHash(spec), env: [{ name: 'A', value: 'own' }] });
  await world.reached('early', 'TemplateNotFound', LEASE_WAIT_MS);
  const made = await world.client.create(INSTANCE_TEMPLATES, {
    metadata: { namespace: world.namespace, name: 't' },
    spec,
  });
  await world.reached('early', 'Running');
  const [pod] = await world.pods();
  const main = pod?.spec?.containers[0];
  expect(main?.image).toBe('pytorch/pytorch:2');
  expect(main?.env).toEqual(
    expect.arrayContaining([
      { name: 'A', value: 'own' },
      { name: 'B', value: 't' },
    ]),
  );
  const { status } = await world.client.get(INSTANCE_TEMPLATES, made.metadata);
  expect(status).toMatchObject({ id: numericId(made.metadata.uid ?? ''), hashId: templateHash(spec) });
});

test('keys, API keys and pools say how they are', async () => {
  await using world = await createWorld();
  await world.replica();
  const { namespace } = world;
  const hash = '0'.repeat(64);
  await world.client.create(SSH_KEYS, {
    metadata: { namespace, name: 'bad' },
    spec: { publicKey: 'ssh-dss AAAA', displayName: '' },
  });
  const apiKey = { hash, prefix: '', displayName: '', scopes: ['models' as const], revoked: false };
  await world.client.create(API_KEYS, { metadata: { namespace, name: 'good' }, spec: apiKey });
  await world.client.create(API_KEYS, {
    metadata: { namespace, name: 'old' },
    spec: { ...apiKey, expiresAt: '2020-01-01T00:00:00Z' },
  });
  const reasons = async (): Promise<unknown> => {
    const bad = await world.client.get(SSH_KEYS, { namespace, name: 'bad' });
    const good = await world.client.get(API_KEYS, { namespace, name: 'good' });
    const old = await world.client.get(API_KEYS, { namespace, name: 'old' });
    return [bad, good, old].map(({ status }) => status?.conditions?.[0]?.reason).join();
  };
  await waitFor('the reasons', async () => (await reasons()) === 'InvalidKey,Valid,Expired', LEASE_WAIT_MS);
  await world.create('one', { gpu: { count: 4 } });
  await world.reached('one', 'Running');
  await waitFor('the counts of the pool', async () => {
    const { status } = await world.client.get(GPU_POOLS, { name: world.fleet.pool });
    return status?.nodes === 2 && status.gpus === 16 && status.free === 12;
  });
});

test('an offer with less disk than the client saw is refused, and nothing is kept', async () => {
  await using world = await createWorld();
  await world.replica();
  await world.create('one', { offerDiskSpace: 1_048_576, onNoCapacity: 'Fail' });
  const refused = await world.reached('one', 'OfferChanged', LEASE_WAIT_MS);
  expect(refused.status?.claim).toBeUndefined();
  expect(refused.spec.powerState).toBe('Running');
  expect(await world.pods()).toEqual([]);
  const { items } = await world.client.list(GPU_INSTANCES, { namespace: world.namespace });
  expect(items).toHaveLength(1);
});
