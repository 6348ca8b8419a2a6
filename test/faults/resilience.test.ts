import { describe, expect, test } from 'vitest';
import { NotFoundError } from '../../src/kube/errors.ts';
import { NODES, PODS, RESOURCE_QUOTAS } from '../../src/kube/types.ts';
import { GPU_INSTANCES } from '../../src/resources/instances/gpu-instance.ts';
import { SSH_KEYS } from '../../src/resources/ssh-key.ts';
import { USAGE_RECORDS } from '../../src/resources/usage-record.ts';
import { waitFor } from '../support/wait-for.ts';
import { createWorld, readyReason, violationsAtRest } from './support/world.ts';

const FINALIZER = 'berth.dev/cleanup';
const PUBLIC_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIH87DkjAM43pkSF8RdbLnuoFePocHvb+oWRYegK0u4OS me@host';

// The tests run side by side: the replica that leads serves the instances of all tests.
describe.concurrent('the controllers repair what other clients break', () => {
  // cluster-api test/framework, ValidateOwnerReferencesResilience and ValidateFinalizersResilience.
  test('owner references, labels and finalizers that somebody removes come back', async () => {
    await using world = await createWorld();
    await world.replica();
    await world.create('one');
    const before = await world.reached('one', 'Running');
    const [pod] = await world.pods();
    const ref = { namespace: world.namespace, name: pod?.metadata.name ?? '' };
    const strip = { metadata: { ownerReferences: [], labels: { 'berth.dev/instance': null } } };
    await world.client.patch(PODS, ref, strip, { type: 'merge' });
    await waitFor('the owner and the label to come back', async () => {
      const { metadata } = await world.client.get(PODS, ref);
      return (
        metadata.ownerReferences?.[0]?.uid === before.metadata.uid && metadata.labels?.['berth.dev/instance'] === 'one'
      );
    });
    const bare = { metadata: { labels: { 'berth.dev/instance-uid': null, 'berth.dev/instance': null } } };
    await world.client.patch(PODS, ref, bare, { type: 'merge' });
    await waitFor('the labels to come back', async () => {
      const { metadata } = await world.client.get(PODS, ref);
      return metadata.labels?.['berth.dev/instance-uid'] === before.metadata.uid;
    });
    const marks = Object.keys(pod?.metadata.labels ?? {});
    const labels = Object.fromEntries(marks.map((mark) => [mark, null]));
    await world.client.patch(PODS, ref, { metadata: { ownerReferences: [], labels } }, { type: 'merge' });
    await waitFor('all marks to come back', async () => {
      const { metadata } = await world.client.get(PODS, ref);
      const isMarked = marks.every((mark) => metadata.labels?.[mark] === pod?.metadata.labels?.[mark]);
      return isMarked && metadata.ownerReferences?.[0]?.uid === before.metadata.uid;
    });
    await world.patch('one', { metadata: { finalizers: [] } });
    await waitFor('the finalizer to come back', async () =>
      (await world.get('one'))?.metadata.finalizers?.includes(FINALIZER),
    );
    const after = await world.get('one');
    expect(after?.status?.podUid).toBe(before.status?.podUid);
    expect(world.observer.violations).toEqual([]);
  });

  test('an instance that loses its finalizer while it is being deleted leaves its bill and nothing else', async () => {
    await using world = await createWorld();
    const replica = await world.replica();
    await world.create('one', { gpu: { count: 2 } });
    await world.reached('one', 'Running');
    await world.remove('one');
    await world.patch('one', { metadata: { finalizers: [] } }).catch((error: unknown) => {
      // The controller may have been quicker.
      if (!(error instanceof NotFoundError)) throw error;
    });
    await world.gone('one');
    const [record, ...others] = await waitFor('the bill', async () => {
      const { items } = await world.client.list(USAGE_RECORDS, { namespace: world.namespace });
      return items.length > 0 && items;
    });
    expect(others).toEqual([]);
    expect(record?.spec).toMatchObject({ instance: 'one', gpuCount: 2, product: world.fleet.product });
    expect(await violationsAtRest(world, replica)).toEqual([]);
  });

  test('a pod that another client deletes is replaced, and the start counts as ended', async () => {
    await using world = await createWorld();
    const replica = await world.replica();
    await world.create('one', { gpu: { count: 8 } });
    const before = await world.reached('one', 'Running');
    await world.client.delete(PODS, { namespace: world.namespace, name: before.status?.podName ?? '' });
    const after = await waitFor('another start', async () => {
      const instance = await world.get('one');
      return instance?.status?.incarnation === 2 && readyReason(instance) === 'Running' ? instance : undefined;
    });
    expect(after.status?.failures?.count).toBe(1);
    expect(after.status?.usage?.gpuSeconds).toBeGreaterThanOrEqual(0);
    expect(await violationsAtRest(world, replica)).toEqual([]);
  });

  test('whoever deletes pods again and again does not make a storm', async () => {
    await using world = await createWorld();
    await world.replica();
    await world.create('one');
    await world.reached('one', 'Running');
    const end = performance.now() + 12_000;
    while (performance.now() < end) {
      for (const { metadata } of await world.pods()) await world.client.delete(PODS, metadata);
      await waitFor('a moment', () => new Promise<true>((resolve) => setTimeout(() => resolve(true), 100)));
    }
    // Pauses of 1, 4 and 16 s: three starts more at most in twelve seconds.
    expect((await world.get('one'))?.status?.incarnation).toBeLessThanOrEqual(4);
    expect(world.observer.violations).toEqual([]);
  });

  test('an instance shows that a key it names was deleted', async () => {
    await using world = await createWorld();
    await world.replica();
    const key = {
      metadata: { namespace: world.namespace, name: 'k' },
      spec: { publicKey: PUBLIC_KEY, displayName: '' },
    };
    await world.client.create(SSH_KEYS, key);
    const ready = await waitFor('the key to be read', async () => {
      const { status } = await world.client.get(SSH_KEYS, key.metadata);
      return status?.fingerprint === undefined ? undefined : status;
    });
    await world.create('one', { sshKeyIds: [ready.id ?? 0] });
    await world.reached('one', 'Running');
    await waitFor('the key to count its instance', async () => {
      const { status } = await world.client.get(SSH_KEYS, key.metadata);
      return status?.instances === 1;
    });
    await world.client.delete(SSH_KEYS, key.metadata);
    const instance = await waitFor('the instance to say so', async () => {
      const one = await world.get('one');
      return one?.status?.conditions?.some(({ type, reason }) => type === 'SSHKeys' && reason === 'KeyNotFound')
        ? one
        : undefined;
    });
    expect(readyReason(instance)).toBe('Running');
  });

  test('an instance whose node is deleted starts on another node', { timeout: 300_000 }, async () => {
    await using world = await createWorld({ nodes: 2 });
    const replica = await world.replica();
    await world.create('one', { gpu: { count: 8 } });
    const before = await world.reached('one', 'Running');
    const lost = before.status?.claim?.node ?? '';
    await world.client.delete(NODES, { name: lost });
    const after = await waitFor(
      'a start on the other node',
      async () => {
        const one = await world.get('one');
        return one?.status?.claim?.node !== undefined &&
          one.status.claim.node !== lost &&
          readyReason(one) === 'Running'
          ? one
          : undefined;
      },
      120_000,
    );
    expect(after.status?.incarnation).toBe(2);
    expect(await violationsAtRest(world, replica)).toEqual([]);
  });

  test('an on-demand instance preempts an interruptible one, which starts again', async () => {
    await using world = await createWorld({ nodes: 1 });
    const replica = await world.replica();
    await world.create('spot', { type: 'Interruptible', gpu: { count: 8 } });
    await world.reached('spot', 'Running');
    await world.create('sure', { gpu: { count: 4 }, onNoCapacity: 'Fail' });
    await world.reached('sure', 'Running');
    await world.reached('spot', 'Preempted');
    expect(await violationsAtRest(world, replica)).toEqual([]);
    await world.remove('sure');
    const back = await world.reached('spot', 'Running');
    expect(back.status?.incarnation).toBe(2);
    expect(await violationsAtRest(world, replica)).toEqual([]);
  });

  test('an instance that its quota holds back preempts no other', async () => {
    await using world = await createWorld({ nodes: 1 });
    const replica = await world.replica();
    await world.create('spot', { type: 'Interruptible', gpu: { count: 8 } });
    const before = await world.reached('spot', 'Running');
    const quota = {
      metadata: { namespace: world.namespace, name: 'none' },
      spec: { hard: { 'requests.nvidia.com/gpu': '0' } },
    };
    await world.client.create(RESOURCE_QUOTAS, quota);
    await waitFor('the quota to be counted', async () => {
      const { status } = await world.client.get(RESOURCE_QUOTAS, quota.metadata);
      return status?.hard !== undefined;
    });
    await world.create('sure', { gpu: { count: 4 } });
    await world.reached('sure', 'QuotaExceeded');
    const after = await world.get('spot');
    expect(after?.status).toMatchObject({ incarnation: 1, podUid: before.status?.podUid });
    expect(readyReason(after)).toBe('Running');
    expect(await violationsAtRest(world, replica)).toEqual([]);
  });

  test('who waits on demand has others give way as soon as that is enough', async () => {
    await using world = await createWorld({ nodes: 1 });
    const replica = await world.replica();
    await world.create('sure', { gpu: { count: 4 } });
    await world.create('spot', { type: 'Interruptible', gpu: { count: 4 } });
    await world.reached('sure', 'Running');
    await world.reached('spot', 'Running');
    await world.create('large', { gpu: { count: 8 } });
    await world.reached('large', 'WaitingForCapacity');
    expect(readyReason(await world.get('spot'))).toBe('Running');
    await world.remove('sure');
    await world.reached('large', 'Running');
    await world.reached('spot', 'Preempted');
    expect(await violationsAtRest(world, replica)).toEqual([]);
  });

  test('who waits longest is served first, and a large request does not hold up small ones', async () => {
    await using world = await createWorld({ nodes: 1 });
    await world.replica();
    await world.create('a', { gpu: { count: 4 } });
    await world.create('b', { gpu: { count: 2 } });
    await world.reached('a', 'Running');
    await world.reached('b', 'Running');
    await world.create('large', { gpu: { count: 8 } });
    await world.reached('large', 'WaitingForCapacity');
    await world.create('small', { gpu: { count: 2 } });
    await world.reached('small', 'Running');
    await world.create('later', { gpu: { count: 4 } });
    await world.reached('later', 'WaitingForCapacity');
    for (const name of ['a', 'b', 'small']) await world.remove(name);
    await Promise.race([world.reached('large', 'Running'), world.reached('later', 'Running')]);
    // Either may fit first. In the end both had their turn.
    const first = readyReason(await world.get('large')) === 'Running' ? 'large' : 'later';
    await world.remove(first);
    await world.reached(first === 'large' ? 'later' : 'large', 'Running');
  });

  test('two instances of one name in a row are two instances', async () => {
    await using world = await createWorld();
    const replica = await world.replica();
    for (let round = 0; round < 3; round += 1) {
      await world.create('again', { gpu: { count: 8 } });
      await world.reached('again', 'Running');
      await world.client.delete(GPU_INSTANCES, { namespace: world.namespace, name: 'again' });
      await world.gone('again');
    }
    expect(await violationsAtRest(world, replica)).toEqual([]);
  });
});
